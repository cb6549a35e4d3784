"""What annotators and clients of Annif say is right is kept as feedback, of which the next version is trained."""

from typing import Any

import pytest
from asking import TestClient, bearer, problem
from fastapi import FastAPI

from app.hierarchies.version_labels import VersionLabels
from app.protocols import annif

CONFIG = '<View><Text name="t" value="$body"/><Choices name="c" toName="t"><Choice value="water"/></Choices></View>'


def waiting(client: TestClient, model: str) -> list[tuple[Any, list[str], str | None]]:
    """The feedback that waits, the oldest first."""
    items = client.get(f"/api/v1/models/{model}/feedback?waiting=true").json()["items"]
    return [(each["instance"], each["labels"], each["answer"]) for each in reversed(items)]


def test_what_annif_is_to_learn_is_kept_as_feedback_all_or_none(
    models: TestClient, app: FastAPI, secrets: dict[str, str]
) -> None:
    url = "/v1/projects/foods/learn"
    leek, bird = (
        {"text": text, "subjects": [{"uri": label}]} for text, label in (("leek", "vegetable"), ("a", "bird"))
    )
    several = {"text": "a", "subjects": [{"uri": "fruit"}, {"uri": "water"}]}
    for body in ({}, [], [1], [{"text": 3, "subjects": []}], [leek, several], [leek, {"text": 1} | bird, {}]):
        problem(models.post(url, json=body), 422)
    assert problem(models.post(url, json=[leek, several]), 422)["errors"][0]["pointer"] == "/1/subjects"
    for bad, pointer, said in (
        ({"text": "a"}, "/1/subjects", "subjects are needed"),
        ({"text": 1, "subjects": [{"uri": "fruit"}]}, "/1/text", ""),
    ):
        fault = problem(models.post(url, json=[leek, bad]), 422)["errors"][0]
        assert (fault["pointer"], said in fault["detail"]) == (pointer, True)
    assert waiting(models, "foods") == []
    with TestClient(app, headers=bearer(secrets["viewer"])) as viewer:
        problem(viewer.post(url, json=[leek]), 403)
    response = models.post(url, json=[leek, bird])
    assert (response.status_code, response.content) == (204, b"")
    assert waiting(models, "foods") == [({"text": "leek"}, ["vegetable"], None), ({"text": "a"}, ["bird"], None)]


def test_annif_names_subjects_by_their_uri_as_the_vocabulary_or_the_model_knows_it() -> None:
    uri, label = "http://x.example/1", "leeks"
    subjects = [{"uri": uri, "label": "Leek"}, {"uri": "u", "label": "sea"}, {"uri": "v", "label": "Pear"}]
    more = [{"uri": "w", "label": "unknown"}, {"uri": "w"}, {"label": "new"}, 3]
    found = annif._subjects({"subjects": subjects + more}, {uri: label}, {"leeks", "sea", "v", "None"}, VersionLabels())
    assert found == ["leeks", "sea", "v", "w", "w", "new", None]


def annotated(tag: str, value: Any, id: int = 7, action: str = "ANNOTATION_CREATED", **more: Any) -> dict[str, Any]:
    """An event as Label Studio sends it, in short."""
    config = CONFIG.replace("Choices", tag)
    region = {"from_name": "c", "to_name": "t", "type": tag.lower(), "value": {tag.lower(): value}}
    other = {"from_name": "other", "to_name": "t", "type": "textarea", "value": {"text": ["x"]}}
    return {
        "action": action,
        "annotation": {"id": id, "was_cancelled": False, "result": [other, region], **more},
        "project": {"id": 1, "label_config": config},
        "task": {"id": 5, "data": {"body": "the blue sea", "other": 3}},
    }


def test_annotations_of_label_studio_are_kept_as_feedback_and_a_changed_one_takes_the_place_of_the_first(
    models: TestClient, app: FastAPI, secrets: dict[str, str]
) -> None:
    url, text = "/label-studio/foods/webhook", {"text": "the blue sea"}
    for event in (
        annotated("Choices", ["fruit"], 7),
        annotated("Taxonomy", [["things", "water"]], 8),
        annotated("Choices", ["fruit"], 9, was_cancelled=True),
        annotated("Choices", ["fruit"], 10, result=[]),
        annotated("Choices", ["water"], 7, "ANNOTATION_UPDATED"),
        annotated("Choices", ["fruit"], 11, "ANNOTATIONS_DELETED"),
    ):
        assert models.post(url, json=event).status_code == 200
    assert waiting(models, "foods") == [(text, ["water"], "label-studio:8"), (text, ["water"], "label-studio:7")]
    with TestClient(app, headers=bearer(secrets["viewer"])) as viewer:
        problem(viewer.post(url, json=annotated("Choices", ["fruit"])), 403)


@pytest.mark.parametrize(
    ("event", "pointer"),
    [
        ({"action": "ANNOTATION_CREATED"}, "/annotation"),
        ({**annotated("Choices", ["fruit"]), "project": {}}, "/project/label_config"),
        ({**annotated("Choices", ["fruit"]), "task": {}}, "/task/data"),
        (annotated("Choices", "fruit"), "/annotation/result"),
        (annotated("Taxonomy", ["fruit"]), "/annotation/result"),
        (annotated("Choices", [3]), "/0/labels/0"),
        (annotated("Choices", ["fruit", "water"]), "/0/labels"),
    ],
)
def test_an_annotation_that_cannot_be_kept_is_pointed_at(models: TestClient, event: Any, pointer: str) -> None:
    refused = problem(models.post("/label-studio/foods/webhook", json=event), 422)
    assert refused["errors"][0]["pointer"] == pointer
    assert waiting(models, "foods") == []
