"""An archive is taken from one service to another, by their routes."""

import shutil
from pathlib import Path

import pytest
from asking import TestClient, bearer, problem
from working import Home, answers

from app.config import settings
from app.main import create_app
from app.store import db

EXPORT = "/api/v1/models/foods/versions/1/export"
ASKED = {"instances": [{"text": "red long sea"}, {"text": "a green apple"}], "top_k": 3}


def test_another_service_predicts_the_same_bits(
    models: TestClient, empty_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = models.get(EXPORT)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip")
    assert answer.headers["content-disposition"] == 'attachment; filename="foods-1.npz"'
    before = answers(models, "foods", ASKED)
    shutil.copytree(empty_home[0], tmp_path / "other")
    monkeypatch.setenv("POLYMARGIN_HOME", str(tmp_path / "other"))
    settings.cache_clear()
    db.dispose()
    with TestClient(create_app(settings()), headers=bearer(empty_home[1]["admin"])) as other:
        made = other.post("/api/v1/models/import", content=answer.content, headers={"Idempotency-Key": "a"})
        assert (made.status_code, made.headers["location"]) == (201, "/api/v1/models/foods/versions/1")
        again = other.post("/api/v1/models/import", content=answer.content, headers={"Idempotency-Key": "a"})
        assert (again.json(), again.headers["idempotency-replayed"]) == (made.json(), "true")
        assert answers(other, "foods", ASKED) == before
        named = other.post("/api/v1/models/import?name=dishes", content=answer.content).json()
        assert (named["model"], named["origin"]["model"]) == ("dishes", "foods")
        other.headers.update(bearer(empty_home[1]["editor"]))
        problem(other.post("/api/v1/models/import", content=answer.content), 403)


def test_what_is_no_archive_is_a_fault_of_the_request(models: TestClient) -> None:
    archive = bytearray(models.get(EXPORT).content)
    archive[len(archive) // 2] ^= 1
    for wrong in (b"nonsense", bytes(archive)):
        document = problem(models.post("/api/v1/models/import", content=wrong), 422, "invalid_input")
        assert document["errors"]
    assert models.get("/api/v1/models/foods").json()["versions"] == [1]
