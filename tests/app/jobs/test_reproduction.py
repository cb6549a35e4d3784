"""A version that is trained again from its own lineage has the same bits, and if it has not, that is reported."""

import hashlib
from pathlib import Path

import pytest
from asking import TestClient
from working import train, upload

from app.client import Client
from app.models import service as registry
from app.remote.errors import ClientError
from app.store.db import sessions
from app.store.files import files


@pytest.fixture
def service(wired: None, models: TestClient, secrets: dict[str, str]) -> Client:
    return Client("http://127.0.0.1", secrets["editor"])


@pytest.mark.parametrize("name", ["letters", "foods", "shapes"])
def test_the_same_lineage_gives_the_same_bits(name: str, service: Client, models: TestClient) -> None:
    found = service.reproduce(name, 1)
    assert (found.same, found.differing) == (True, [])
    assert found.arrays >= 2
    assert models.get(f"/api/v1/models/{name}.reproduced").status_code == 404


def test_the_version_of_one_c_of_a_path_is_compared_with_its_own(service: Client, models: TestClient) -> None:
    train(models, "letters", "paths", path=[0.25, 4.0], seed=5)
    kept = service.reproduce("paths", 2, keep=True)
    assert (kept.same, kept.reproduced_model, kept.reproduced_version) == (True, "paths.reproduced", 2)
    assert service.models.version("paths.reproduced", 2).params["C"] == 4.0


def test_a_version_of_sets_without_a_hierarchy_has_none_that_was_deleted(service: Client, models: TestClient) -> None:
    upload(
        models, "sets", b'{"text": "red green", "label": ["a", "b"]}\n{"text": "blue", "label": ["b"]}\n' * 8, "jsonl"
    )
    assert train(models, "sets", "sets", solver="hm3")["state"] == "succeeded"
    assert "<dt>Hierarchy</dt>" not in models.get("/models/sets/versions/1").text
    assert service.reproduce("sets", 1).same
    assert "Test error or micro F1" in models.get("/models").text


def test_other_bits_are_named(service: Client, models: TestClient) -> None:
    with sessions()() as session:
        folder: Path = files().path(registry.version_row(session, "letters", 1).path)
    manifest = folder / "model/manifest.json"
    manifest.write_text(manifest.read_text().replace(_sha256(folder / "model/W.npy"), "0" * 64))
    assert service.reproduce("letters", 1).differing == ["model/W.npy"]


def test_a_version_without_its_dataset_cannot_be_trained_again(service: Client, models: TestClient) -> None:
    models.delete("/api/v1/datasets/letters?force=true")
    with pytest.raises(ClientError, match="was deleted"):
        service.reproduce("letters", 1)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
