from typing import Any

import pytest
from asking import TestClient, problem
from working import TEXTS, train, upload

URL = "/api/v1/models/{}/predict"
TREE = b"parent,child\nroot,food\nroot,water\nfood,fruit\nfood,vegetable\n"
LEEK = {"text": "The GREEN apple, a leek"}


def ask(client: TestClient, model: str, instance: Any, **more: Any) -> dict[str, Any]:
    response = client.post(URL.format(model), json={"instances": [instance], **more})
    assert response.status_code == 200, response.text
    prediction: dict[str, Any] = response.json()["predictions"][0]
    return prediction


def test_parts_of_a_text_add_up_and_say_where_its_terms_stand(models: TestClient) -> None:
    answer = ask(models, "foods", LEEK, explain=10, top_k=2)
    (step,) = answer["explanation"]
    first, second = answer["top"]
    assert (step["label"], step["rival"]) == (first["label"], second["label"])
    terms = step["lifted_by"] + step["lowered_by"]
    assert sum(term["part"] for term in terms) + step["intercept"] + step["rest"] == pytest.approx(step["lead"])
    assert step["lead"] == pytest.approx(first["score"] - second["score"], abs=1e-5)
    text = LEEK["text"]
    cut = {term["feature"]: [text[begin:end] for begin, end in term["spans"]] for term in terms}
    assert cut == {"green": ["GREEN"], "apple": ["apple"], "leek": ["leek"]}


def test_only_as_many_features_are_named_as_are_asked_for(models: TestClient) -> None:
    (step,) = ask(models, "foods", LEEK, explain=1)["explanation"]
    assert len(step["lifted_by"]) == 1
    assert len(step["lowered_by"]) <= 1
    named = step["lifted_by"] + step["lowered_by"]
    assert sum(term["part"] for term in named) + step["rest"] + step["intercept"] == pytest.approx(step["lead"])
    assert "explanation" not in ask(models, "foods", LEEK)


def test_features_are_called_as_instances_call_them(models: TestClient) -> None:
    (step,) = ask(models, "shapes", {"features": {"width": 9, "height": 1}}, explain=5)["explanation"]
    assert {term["feature"] for term in step["lifted_by"] + step["lowered_by"]} == {"width", "height"}
    (step,) = ask(models, "letters", {"indices": [1, 4], "values": [1, 0.5]}, explain=5)["explanation"]
    terms = {term["feature"]: term["value"] for term in step["lifted_by"] + step["lowered_by"]}
    assert terms == {1: 1.0, 4: 0.5}


def test_labels_can_be_chosen_and_left_out(models: TestClient) -> None:
    best = ask(models, "foods", LEEK, top_k=3)["top"]
    assert ask(models, "foods", LEEK, top_k=3, exclude=[best[0]["label"]])["top"] == best[1:]
    (only,) = ask(models, "foods", LEEK, top_k=3, include=[best[2]["label"]])["top"]
    assert only == best[2]
    both = ask(models, "foods", LEEK, include=[best[0]["label"], best[1]["label"]], exclude=[best[0]["label"]])
    assert both["label"] == best[1]["label"]


@pytest.fixture
def taxonomy(models: TestClient) -> TestClient:
    """The model plants over a label tree."""
    made = models.post("/api/v1/hierarchies", params={"name": "plants", "format": "csv"}, content=TREE)
    assert made.status_code == 201, made.text
    upload(models, "plants", TEXTS, "jsonl")
    done = train(models, "plants", "plants", solver="orthogonal_transfer", hierarchy="plants")
    assert done["state"] == "succeeded", done
    return models


def test_along_a_tree_every_step_is_explained_and_a_node_stands_for_all_below(taxonomy: TestClient) -> None:
    answer = ask(taxonomy, "plants", LEEK, explain=5, include=["food"], top_k=3)
    assert {entry["label"] for entry in answer["top"]} == {"fruit", "vegetable"}
    assert [step["label"] for step in answer["explanation"]] == [step["label"] for step in answer["path"]]
    for step, on_path in zip(answer["explanation"], answer["path"], strict=True):
        assert step["lead"] == pytest.approx(on_path["margin"], abs=1e-5)
    assert ask(taxonomy, "plants", LEEK, exclude=["food"])["label"] == "water"


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ({"include": []}, "/include"),
        ({"include": "fruit"}, "/include"),
        ({"include": [1]}, "/include"),
        ({"include": ["fruit", "none"]}, "/include/1"),
        ({"exclude": ["none"]}, "/exclude/0"),
        ({"exclude": ["fruit", "vegetable", "water"]}, "/exclude"),
        ({"explain": -1}, "/explain"),
        ({"explain": True}, "/explain"),
        ({"explain": 101}, "/explain"),
    ],
)
def test_what_cannot_be_chosen_or_explained_is_pointed_at(models: TestClient, more: Any, pointer: str) -> None:
    response = models.post(URL.format("foods"), json={"instances": [LEEK], **more})
    assert problem(response, 422)["errors"][0]["pointer"] == pointer


def test_answers_of_learnt_label_trees_are_explained_though_their_features_have_no_weight_of_their_own(
    models: TestClient,
) -> None:
    assert train(models, "foods", "grown", solver="label_trees")["state"] == "succeeded"
    answer = ask(models, "grown", LEEK, explain=100, top_k=2)
    (step,) = answer["explanation"]
    parts = [term["part"] for term in (*step["lifted_by"], *step["lowered_by"])]
    assert parts
    assert sum(parts) + step["intercept"] + step["rest"] == pytest.approx(step["lead"], abs=1e-5)
    first, second = (entry["score"] for entry in answer["top"])
    assert step["lead"] == pytest.approx(first - second, abs=1e-5)
    terms = problem(models.get("/api/v1/models/grown/versions/1/terms", params={"label": answer["label"]}), 422)
    assert "--explain" in terms["detail"]
    assert 'id="terms"' not in models.get("/models/grown/versions/1").text


def test_a_kernel_machine_cannot_be_explained(models: TestClient) -> None:
    assert train(models, "letters", "kernels", solver="kernel_weston_watkins")["state"] == "succeeded"
    body = {"instances": [{"indices": [1], "values": [1]}], "explain": 3}
    said = problem(models.post(URL.format("kernels"), json=body), 422)["errors"][0]["detail"]
    assert "compares whole rows" in said
    for model, can in (("letters", True), ("kernels", False)):
        text = models.get(f"/playground?model={model}").text
        assert ("compares whole rows" in text) == (not can)
        assert ('type="checkbox" checked' in text, 'type="checkbox" disabled' in text) == (can, not can)


def test_every_label_of_a_predicted_set_is_explained(models: TestClient) -> None:
    pairs = [("red", "green"), ("green", "blue"), ("red", "blue")] * 8
    lines = [f'{{"text": "{a} {b} {a}", "label": ["{a}", "{b}"]}}' for a, b in pairs]
    upload(models, "pairs", "\n".join(lines).encode(), "jsonl")
    assert train(models, "pairs", "pairs", solver="hm3")["state"] == "succeeded"
    answer = ask(models, "pairs", {"text": "red blue red"}, explain=5)
    assert {node["label"] for node in answer["subtree"]} == {"red", "blue"}
    for step, node in zip(answer["explanation"], answer["subtree"], strict=True):
        assert (step["label"], step["rival"]) == (node["label"], None)
        assert step["lead"] == pytest.approx(node["margin"], abs=1e-5)
        assert step["lifted_by"][0]["feature"] == node["label"]
        parts = [term["part"] for term in (*step["lifted_by"], *step["lowered_by"])]
        assert sum(parts) + step["intercept"] + step["rest"] == pytest.approx(step["lead"])
