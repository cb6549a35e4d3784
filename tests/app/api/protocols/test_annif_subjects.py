"""Annif's clients get subjects of a thesaurus, not what is above them, and give them back by their URIs."""

import pytest
from asking import TestClient
from working import train, upload

BASE = "https://example.org/crafts/"
THESAURUS = f"""
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix : <{BASE}> .
:food a skos:Concept ; skos:prefLabel "Food"@en .
:craft a skos:Concept ; skos:prefLabel "Crafts"@en .
:baking a skos:Concept ; skos:prefLabel "Baking"@en ; skos:broader :craft, :food .
:soup a skos:Concept ; skos:prefLabel "Soups"@en ; skos:broader :food .
:weaving a skos:Concept ; skos:prefLabel "Weaving"@en ; skos:broader :craft .
"""
LINES = f"""dough oven\t<{BASE}baking>
broth pot\t<{BASE}soup>
loom wool\t<{BASE}weaving>
dough oven broth pot\t<{BASE}baking> <{BASE}soup>
"""


@pytest.fixture
def subjects(models: TestClient) -> TestClient:
    asked = {"name": "crafts", "format": "skos", "syntax": "turtle", "tree": "deepest"}
    response = models.post("/api/v1/hierarchies", params=asked, content=THESAURUS.encode())
    assert response.status_code == 201, response.text
    assert upload(models, "corpus", LINES.encode() * 8, "annif")["state"] == "ready"
    job = train(models, "corpus", "subjects", solver="node_svm", hierarchy="crafts", text={"min_df": 1})
    assert job["state"] == "succeeded", job
    return models


def test_suggestions_leave_out_what_is_above_them_by_any_parent(subjects: TestClient) -> None:
    answer = subjects.post("/api/v1/models/subjects/predict", json={"instances": [{"text": "dough oven"}]}).json()
    assert {entry["label"].removeprefix(BASE) for entry in answer["predictions"][0]["subtree"]} == {
        "food", "craft", "baking",
    }  # fmt: skip
    url = "/v1/projects/subjects/suggest"
    first = subjects.post(url, data={"text": "dough oven", "limit": "1"}).json()["results"]
    assert [(one["uri"], one["label"]) for one in first] == [(f"{BASE}baking", "Baking")]
    both = subjects.post(url, data={"text": "dough oven broth pot", "limit": "2"}).json()["results"]
    assert {one["label"] for one in both} == {"Baking", "Soups"}
    documents = {"documents": [{"text": "loom wool"}]}
    batch = subjects.post("/v1/projects/subjects/suggest-batch?limit=1", json=documents).json()
    assert [one["label"] for one in batch[0]["results"]] == ["Weaving"]


def test_subjects_are_learnt_by_their_uris_whatever_their_labels_are(subjects: TestClient) -> None:
    baking = {"uri": f"{BASE}baking", "label": "Baking"}
    learnt = subjects.post("/v1/projects/subjects/learn", json=[{"text": "a loaf", "subjects": [baking]}])
    assert learnt.status_code == 204, learnt.text
    (report,) = subjects.get("/api/v1/models/subjects/feedback").json()["items"]
    assert report["labels"] == [f"{BASE}baking"]
