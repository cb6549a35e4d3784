"""Versions are deleted, restored and tagged by their routes."""

from asking import TestClient, problem
from working import answers, train

MODEL = "/api/v1/models/letters"
VERSION = f"{MODEL}/versions/1"
INSTANCE = {"instances": [{"indices": [0], "values": [1.0]}]}


def test_a_deleted_version_answers_no_more_and_as_before_when_it_is_restored(models: TestClient) -> None:
    train(models, "letters", "letters", params={"C": 0.5})
    before = answers(models, "letters", INSTANCE, version=1)
    reported = models.delete(VERSION, params={"dry_run": True}).json()
    assert (reported["dry_run"], reported["versions"]) == (True, [1])
    assert models.delete(VERSION).json()["versions"] == [1]
    problem(models.get(VERSION), 404)
    problem(models.delete(VERSION), 404)
    assert models.post(f"{VERSION}/restore").json() == {"model": "letters", "versions": [1]}
    assert answers(models, "letters", INSTANCE, version=1) == before


def test_an_answer_names_its_version_by_the_hash_of_its_artefact(models: TestClient) -> None:
    answer = models.post(f"{MODEL}/predict", json=INSTANCE).json()
    assert answer["version_sha256"] == models.get(VERSION).json()["sha256"]


def test_a_held_version_is_refused_with_its_reasons(models: TestClient) -> None:
    models.put(f"{MODEL}/aliases/production", json={"version": 1})
    for url in (VERSION, MODEL):
        assert "production" in problem(models.delete(url), 409, "conflict")["errors"][0]["detail"]
        assert models.delete(url, params={"dry_run": True}).json()["held"][0]["version"] == 1


def test_tags_are_changed_only_as_they_were_seen(models: TestClient) -> None:
    tag = models.get(VERSION).headers["etag"]
    changed = models.patch(VERSION, json={"tags": {"stage": "try"}, "notes": "first"}, headers={"If-Match": tag})
    assert (changed.status_code, changed.json()["tags"]) == (200, {"stage": "try"})
    problem(models.patch(VERSION, json={"notes": "x"}, headers={"If-Match": tag}), 412)
    problem(models.patch(VERSION, json={"notes": "x"}, headers={"If-Match": "x"}), 412)
    problem(models.patch(VERSION, json={"seed": 1}), 422)
    assert models.get(VERSION).json() == changed.json()
    assert models.get(VERSION).headers["etag"] == changed.headers["etag"] != tag


def test_rules_of_retention_are_previewed_and_kept(models: TestClient) -> None:
    train(models, "letters", "letters")
    reported = models.put(f"{MODEL}/retention?dry_run=true", json={"keep_last": 1}).json()
    assert (reported["goes"], models.get(f"{MODEL}/retention").json()["keep_last"]) == ([1], None)
    assert models.put(f"{MODEL}/retention", json={"keep_last": 1}).json()["goes"] == [1]
    problem(models.put(f"{MODEL}/retention", json={"keep_last": 0}), 422)
    problem(models.put(f"{MODEL}/retention", json={}), 422)
    assert models.get("/api/v1/storage").json()["collected"] is False
    assert models.post("/api/v1/storage/collect").json()["collected"] is True
