"""Annif's clients get subjects of a thesaurus, not what is above them, and give them back by their URIs."""

import shutil
from pathlib import Path

import pytest
from asking import TestClient, bearer
from working import Home, living_in, train, upload

from app.config import Settings
from app.main import create_app

BASE = "https://example.org/crafts/"
THESAURUS = f"""
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix : <{BASE}> .
:food a skos:Concept ; skos:prefLabel "Food"@en .
:craft a skos:Concept ; skos:prefLabel "Crafts"@en .
:baking a skos:Concept ; skos:prefLabel "Baking"@en, "Leivonta"@fi ; skos:broader :craft, :food .
:soup a skos:Concept ; skos:prefLabel "Soups"@en ; skos:broader :food .
:weaving a skos:Concept ; skos:prefLabel "Weaving"@en ; skos:broader :craft .
:loaves a skos:Concept ; skos:prefLabel "Loaves"@en ; owl:deprecated true ; dct:isReplacedBy :baking .
"""
LINES = f"""dough oven\t<{BASE}baking>
broth pot\t<{BASE}soup>
loom wool\t<{BASE}weaving>
dough oven broth pot\t<{BASE}baking> <{BASE}soup>
"""


@pytest.fixture(scope="module")
def subjects_home(trained_home: Path, empty_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that has the model subjects, too."""
    folder = tmp_path_factory.mktemp("subjects")
    shutil.copytree(trained_home, folder, dirs_exist_ok=True)
    with living_in(folder), TestClient(create_app(), headers=bearer(empty_home[1]["admin"])) as client:
        asked = {"name": "crafts", "format": "skos", "syntax": "turtle", "tree": "deepest"}
        response = client.post("/api/v1/hierarchies", params=asked, content=THESAURUS.encode())
        assert response.status_code == 201, response.text
        assert upload(client, "corpus", LINES.encode() * 8, "annif")["state"] == "ready"
        job = train(client, "corpus", "subjects", solver="node_svm", hierarchy="crafts", text={"min_df": 1})
        assert job["state"] == "succeeded", job
        text = {"min_df": 1, "language": "fi"}
        job = train(client, "corpus", "aiheet", solver="node_svm", hierarchy="crafts", text=text)
        assert job["state"] == "succeeded", job
    return folder


@pytest.fixture
def subjects(subjects_home: Path, config: Settings, client: TestClient) -> TestClient:
    shutil.copytree(subjects_home, config.home, dirs_exist_ok=True)
    return client


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


def test_an_empty_text_has_no_subjects(subjects: TestClient) -> None:
    for text in ("", " \n"):
        assert subjects.post("/v1/projects/subjects/suggest", data={"text": text}).json() == {"results": []}
    documents = {"documents": [{"text": ""}, {"text": "loom wool"}]}
    empty, other = subjects.post("/v1/projects/subjects/suggest-batch", json=documents).json()
    assert (empty["results"], bool(other["results"])) == ([], True)


def suggested(client: TestClient, project: str, **more: str) -> list[str]:
    """The first label of a form and of a batch, which is the same."""
    given = {"text": "dough oven", "limit": "1", **more}
    form = client.post(f"/v1/projects/{project}/suggest", data=given).json()["results"]
    documents = {"documents": [{"text": "dough oven"}, {"text": "loom wool"}]}
    batch = client.post(f"/v1/projects/{project}/suggest-batch", params={"limit": "1", **more}, json=documents).json()
    assert batch[0]["results"] == form
    return [one["results"][0]["label"] for one in batch]


def test_labels_are_in_the_language_of_the_project_or_in_the_one_asked_for(subjects: TestClient) -> None:
    assert suggested(subjects, "aiheet") == ["Leivonta", "Weaving"]
    assert suggested(subjects, "aiheet", language="en") == ["Baking", "Weaving"]
    assert suggested(subjects, "aiheet", language="fi") == ["Leivonta", "Weaving"]
    assert suggested(subjects, "subjects") == ["Baking", "Weaving"]
    assert suggested(subjects, "subjects", language="fi-FI") == ["Leivonta", "Weaving"]


def test_a_language_that_the_vocabulary_does_not_have_is_refused(subjects: TestClient) -> None:
    at, documents = "/v1/projects/aiheet/suggest", {"documents": [{"text": "dough"}]}
    form = subjects.post(at, data={"text": "dough", "language": "sv"})
    batch = subjects.post(f"{at}-batch?language=sv", json=documents)
    for refused in (form, batch):
        assert refused.status_code == 400
        assert refused.json()["detail"] == "The vocabulary has no labels in the language 'sv'."


def test_feedback_has_the_labels_that_training_would_make_of_it(subjects: TestClient) -> None:
    for written in (f"{BASE}loaves", "Leivonta", "baking", f"{BASE}baking"):
        given = {"instance": {"text": "a loaf"}, "labels": [written, f"{BASE}baking"]}
        response = subjects.post("/api/v1/models/subjects/feedback", json=given)
        assert response.status_code == 201, response.text
        assert response.json()["labels"] == [f"{BASE}baking"]
    given = {"instance": {"text": "a loaf"}, "labels": ["Loaves"]}
    refused = subjects.post("/api/v1/models/subjects/feedback", json=given)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["detail"] == "the model's label tree has no label 'Loaves'"
    retired = [{"text": "a loaf", "subjects": [{"uri": f"<{BASE}loaves>", "label": "Loaves"}]}]
    assert subjects.post("/v1/projects/subjects/learn", json=retired).status_code == 204
    (report, *_) = subjects.get("/api/v1/models/subjects/feedback").json()["items"]
    assert report["labels"] == [f"{BASE}baking"]


def test_subjects_are_learnt_by_their_uris_whatever_their_labels_are(subjects: TestClient) -> None:
    baking = {"uri": f"<{BASE}baking>", "label": "Baking"}
    learnt = subjects.post("/v1/projects/subjects/learn", json=[{"text": "a loaf", "subjects": [baking]}])
    assert learnt.status_code == 204, learnt.text
    (report,) = subjects.get("/api/v1/models/subjects/feedback").json()["items"]
    assert report["labels"] == [f"{BASE}baking"]


def test_subjects_are_learnt_by_their_names_alone_where_one_concept_has_it(subjects: TestClient) -> None:
    url = "/v1/projects/subjects/learn"
    learnt = subjects.post(url, json=[{"text": "a loaf", "subjects": [{"label": "ba\u200bＫing"}]}])
    assert learnt.status_code == 204, learnt.text
    (report,) = subjects.get("/api/v1/models/subjects/feedback").json()["items"]
    assert report["labels"] == [f"{BASE}baking"]


def test_a_name_that_two_concepts_have_is_refused_with_their_uris(models: TestClient) -> None:
    twins = THESAURUS + ':cup a skos:Concept ; skos:prefLabel "Soups"@de ; skos:broader :craft .'
    asked = {"name": "twins", "format": "skos", "syntax": "turtle", "tree": "deepest"}
    assert models.post("/api/v1/hierarchies", params=asked, content=twins.encode()).status_code == 201
    lines = LINES + f"cup tea\t<{BASE}cup>\n"
    assert upload(models, "twin-corpus", lines.encode() * 8, "annif")["state"] == "ready"
    job = train(models, "twin-corpus", "twins", solver="node_svm", hierarchy="twins", text={"min_df": 1})
    assert job["state"] == "succeeded", job
    refused = models.post("/v1/projects/twins/learn", json=[{"text": "a pot", "subjects": [{"label": "Soups"}]}])
    assert refused.status_code == 422
    (item,) = refused.json()["errors"]
    assert item["pointer"] == "/0/subjects/0"
    assert item["detail"].startswith("2 concepts are called 'Soups': ")
    assert f"{BASE}cup" in item["detail"]


def test_vocabularies_are_listed_and_a_project_names_its_own(subjects: TestClient) -> None:
    (vocab,) = subjects.get("/v1/vocabs").json()["vocabs"]
    assert vocab == {"vocab_id": "crafts", "languages": ["en", "fi"], "size": 5, "loaded": True}
    assert subjects.get("/v1/projects/subjects").json()["vocab"] == vocab
    assert subjects.get("/v1/projects/foods").json()["vocab"] is None


def test_the_language_of_a_project_is_that_of_its_texts(subjects: TestClient) -> None:
    german = "Der Bauer geht heute mit %d Kühen über die lange Straße zum alten Markt\t<https://example.org/m>\n"
    soup = "Die Suppe kocht schon lange auf dem Herd\t<https://example.org/s>\n"
    lines = "".join(german % at for at in range(30)) + soup * 10
    assert upload(subjects, "markt", lines.encode(), "annif")["state"] == "ready"
    assert train(subjects, "markt", "markt", solver="node_svm")["state"] == "succeeded"
    assert train(subjects, "corpus", "named", solver="node_svm", text={"language": "fi"})["state"] == "succeeded"
    languages = {one["project_id"]: one["language"] for one in subjects.get("/v1/projects").json()["projects"]}
    assert (languages["markt"], languages["named"], languages["foods"]) == ("de", "fi", "und")


def test_the_language_of_a_text_is_detected_among_candidates(models: TestClient) -> None:
    asked = {"text": "Der Hund schläft unter dem alten Tisch in der Küche.", "languages": ["en", "de"]}
    results = models.post("/v1/detect-language", json=asked).json()["results"]
    assert results[0]["language"] == "de"
    assert {one["language"] for one in results} == {"en", "de", None}
    assert sum(one["score"] for one in results) == pytest.approx(1)
    for text in (asked["text"], "1234"):
        results = models.post("/v1/detect-language", json={"text": text, "languages": ["ja"]}).json()["results"]
        assert results[0]["language"] is None
    for wrong in ({"text": "a"}, {"languages": ["en"]}, {"text": "a", "languages": ["xx"]}, {"text": 1}):
        assert models.post("/v1/detect-language", json=wrong).status_code == 422, wrong


def test_models_that_read_no_texts_are_no_projects_whether_or_not_their_dataset_is_there(models: TestClient) -> None:
    assert [one["project_id"] for one in models.get("/v1/projects").json()["projects"]] == ["foods"]
    for name in ("letters", "foods", "shapes"):
        response = models.delete(f"/api/v1/datasets/{name}", params={"force": "true"})
        assert response.status_code == 204, response.text
    (project,) = models.get("/v1/projects").json()["projects"]
    assert (project["project_id"], project["language"]) == ("foods", "und")
