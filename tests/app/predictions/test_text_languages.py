"""A model for each language in one version: trained, asked, and in files, with the language of each text."""

import json
import random
from typing import Any

import pytest
from asking import TestClient, problem
from working import answers, run, train, upload

_TOPICS = {
    "forest": {"fi": ["metsät", "puut", "kuuset", "metsänhoito"], "sv": ["skogar", "träden", "granar", "skogsbruk"]},
    "school": {"fi": ["koulut", "oppilaat", "opettajat", "luokat"], "sv": ["skolor", "elever", "lärarna", "klasser"]},
}
_AROUND = {
    "fi": "Tämä suomenkielinen kirja kertoo aiheesta {} ja myös aiheesta {} hyvin laajasti",
    "sv": "Den här svenska boken handlar om {} och dessutom om {} på ett utförligt sätt",
}


def _text(topic: str, language: str, chance: random.Random) -> str:
    return _AROUND[language].format(*chance.sample(_TOPICS[topic][language], 2))


@pytest.fixture
def trained(client: TestClient) -> TestClient:
    chance = random.Random(0)
    rows = [
        {"id": f"{topic}{language}{at}", "text": _text(topic, language, chance), "label": topic}
        for at in range(24)
        for topic in _TOPICS
        for language in ("fi", "sv")
    ]
    assert (
        upload(client, "books", "".join(json.dumps(row) + "\n" for row in rows).encode(), "jsonl")["state"] == "ready"
    )
    job = train(client, "books", "topics", text={"min_df": 1, "by_language": ["fi", "sv"], "stop_words": "auto"})
    assert job["state"] == "succeeded", job["error"]
    return client


def test_answers_warn_of_languages_that_no_training_text_was_in(trained: TestClient) -> None:
    french = "Ce livre présente les écoles, les élèves et leurs professeurs partout en France"
    texts = ["I boken presenteras skolan, eleverna och lärarna i hela landet", french, "École", ""]

    def unseen(**asked: Any) -> list[str | None]:
        found = answers(trained, "topics", {"instances": [{"text": text} for text in texts], **asked})
        return [one.get("unseen_language") for one in found["predictions"]]

    assert unseen() == [None] * 4
    assert unseen(text_language="auto") == [None, "fr", None, None]
    assert unseen(text_language="fr-CA") == ["fr-CA"] * 4
    assert unseen(text_language="nb") == unseen(text_language="fi-FI") == [None] * 4
    asked = {"instances": [{"text": ""}], "text_language": "no language"}
    faults = problem(trained.post("/api/v1/models/topics/predict", json=asked), 422, "invalid_input")["errors"]
    assert faults[0]["pointer"] == "/text_language"


def test_jobs_warn_of_languages_that_no_training_text_was_in(trained: TestClient) -> None:
    words = ("écoles", "élèves", "professeurs", "livres", "maisons", "forêts", "arbres", "classes", "villes", "pays")
    french = [
        f"Ce petit livre présente toutes les {one} et les {other} de la France" for one in words for other in words
    ]
    rows = [{"id": str(at), "text": text} for at, text in enumerate(french)]
    upload(trained, "new", "".join(json.dumps(row) + "\n" for row in rows).encode(), "jsonl", for_model="topics")
    for dataset, warning in (
        ("new", "100% of the texts are in the language fr; hardly any training text was (training texts: fi, sv). "
             "The model knows no word in the text of 100 rows; the text does not affect the prediction there"),
        ("books", "96 of 96 rows are in the training data of this version: how often its answers there are right says "
         "nothing about new rows"),
    ):  # fmt: skip
        made = trained.post("/api/v1/jobs", json={"kind": "predict", "model": "topics", "dataset": dataset})
        run(made.json()["id"])
        job = trained.get(f"/api/v1/jobs/{made.json()['id']}").json()
        assert job["state"] == "succeeded"
        assert job["result"]["warning"] == warning


def test_answers_name_the_language_of_each_text(trained: TestClient) -> None:
    texts = [
        "Kirjassa esitellään Suomen metsiä, puita ja kuusia koko maassa",
        "I boken presenteras skolan, eleverna och lärarna i hela landet",
        "Ce livre présente les écoles, les élèves et leurs professeurs partout en France",
    ]
    asked = {"instances": [{"text": text} for text in texts], "explain": 3}
    found = answers(trained, "topics", asked)["predictions"]
    assert [one["text_language"] for one in found] == ["fi", "sv", "other"]
    assert [one["label"] for one in found[:2]] == ["forest", "school"]
    assert found[2]["known_terms"] == 0
    terms = [term["feature"] for step in found[1]["explanation"] for term in step["lifted_by"]]
    assert terms
    assert all(term.startswith("sv:") for term in terms)
    version = trained.get("/api/v1/models/topics/versions/1").json()
    recipe = version["request"]["text"]["by_language"]
    assert recipe["sv"] == {"stop_words": "sv", "stem": None, "lemmas": ["sv"]}


def test_files_have_the_language_of_each_row(trained: TestClient) -> None:
    body: dict[str, Any] = {"kind": "predict", "model": "topics", "dataset": "books", "format": "jsonl"}
    job = trained.post("/api/v1/jobs", json=body).json()["id"]
    run(job)
    lines = [json.loads(line) for line in trained.get(f"/api/v1/jobs/{job}/predictions").text.splitlines()]
    assert len(lines) == 96
    assert all(line["text_language"] in line["id"] for line in lines)
    assert all(line["label"] in line["id"] for line in lines)


def test_a_language_that_the_dataset_does_not_have_is_refused(trained: TestClient) -> None:
    body = {"kind": "train", "dataset": "books", "model": "m", "solver": "weston_watkins"}
    refused = trained.post("/api/v1/jobs", json=body | {"text": {"by_language": ["de", "ja"]}})
    (item,) = problem(refused, 422)["errors"]
    assert item["pointer"] == "/text/by_language"
    refused = trained.post("/api/v1/jobs", json=body | {"text": {"by_language": ["fi", "xx"]}})
    (item,) = problem(refused, 422)["errors"]
    assert "unknown languages: xx; give codes" in item["detail"]


def test_an_instance_with_another_key_is_refused_by_the_key(trained: TestClient) -> None:
    asked = {"instances": [{"id": "7", "text": "puut"}]}
    refused = trained.post("/api/v1/models/topics/predict", json=asked)
    (item,) = problem(refused, 422)["errors"]
    assert item["pointer"] == "/instances/0"
    assert "leave out 'id'" in item["detail"]
