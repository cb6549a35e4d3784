"""Datasets and models as a worker makes them, in this process."""

import io
import json
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from asking import TestClient

from app.config import settings
from app.store.db import dispose
from workers import tasks

# the folder, and a key of each role
Home = tuple[Path, dict[str, str]]

SPARSE = b"".join(
    b"%s %d:1 %d:0.5\n" % (label, index, index + 3) for label, index in [(b"a", 1), (b"b", 2), (b"c", 3)] * 8
)
TEXTS = b"".join(
    b'{"text": "%s", "label": "%s"}\n' % (text, label)
    for text, label in [
        (b"red round apple", b"fruit"),
        (b"green long leek", b"vegetable"),
        (b"blue deep sea", b"water"),
    ]
    * 8
)
TABLE = b"label,width,height\n" + b"".join(b"%s,%d,%d\n" % row for row in [(b"flat", 9, 1), (b"tall", 1, 9)] * 10)


def upload(
    client: TestClient, name: str, content: bytes, format: str | None, **query: str | list[str]
) -> dict[str, Any]:
    """The dataset, imported or failed."""
    params = {"name": name, **({} if format is None else {"format": format}), **query}
    response = client.post("/api/v1/datasets", params=params, content=content)
    assert response.status_code == 202, response.text
    run(response.json()["job"])
    dataset: dict[str, Any] = client.get(response.headers["location"]).json()
    return dataset


def train(client: TestClient, dataset: str, model: str, **request: Any) -> dict[str, Any]:
    """The job, over."""
    response = client.post(
        "/api/v1/jobs", json={"dataset": dataset, "model": model, "solver": "weston_watkins", **request}
    )
    assert response.status_code == 202, response.text
    run(response.json()["id"])
    job: dict[str, Any] = client.get(response.headers["location"]).json()
    return job


def answers(client: TestClient, model: str, asked: dict[str, Any], **query: Any) -> dict[str, Any]:
    """What ``model`` answers, without the id, which no other answer has."""
    response = client.post(f"/api/v1/models/{model}/predict", json=asked, params=query)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    assert answer.pop("id")
    return answer


def trained(client: TestClient, model: str, content: bytes, format: str) -> None:
    """A model's next version, trained on ``content``."""
    assert upload(client, model, content, format)["state"] == "ready"
    assert train(client, model, model)["state"] == "succeeded"


def run(job: str) -> None:
    """Do the job as a worker does."""
    # A thread of its own, as the worker's main thread is none of pytest's.
    done = threading.Thread(target=tasks.run, args=(job,))
    done.start()
    done.join()


@contextmanager
def living_in(folder: Path) -> Iterator[None]:
    """Settings that keep everything in ``folder``, where no Redis is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLYMARGIN_HOME", str(folder))
        patch.setenv("POLYMARGIN_DATABASE_URL", "")
        patch.setenv("POLYMARGIN_REDIS_URL", f"unix://{folder}/no-redis.sock")
        settings.cache_clear()
        yield
        dispose()
    settings.cache_clear()


def evaluate(client: TestClient, **request: object) -> str:
    """The id of an evaluation, which is over."""
    response = client.post("/api/v1/jobs", json={"kind": "evaluate", "resamples": 20, **request})
    assert response.status_code == 202, response.text
    id: str = response.json()["id"]
    run(id)
    return id


_SCRIPT = """
import sys; sys.path.insert(0, sys.argv[1]); import json, load
found = load.Classifier(sys.argv[1] + '/model.npz')
asked = json.load(open(sys.argv[1] + '/asked.json'))
print(json.dumps([found.predict(asked).tolist(), found.decision_function(asked).max(axis=1).tolist()]))
assert 'app' not in sys.modules
"""


def scripted_answers(client: TestClient, model: str, asked: list[Any], folder: Path) -> tuple[list[str], list[float]]:
    """Labels and scores by the script in the archive of a model's first version, which knows nothing of the service."""
    archive = client.get(f"/api/v1/models/{model}/versions/1/export").content
    (folder / "model.npz").write_bytes(archive)
    (folder / "load.py").write_bytes(zipfile.ZipFile(io.BytesIO(archive)).read("load.py"))
    (folder / "asked.json").write_text(json.dumps(asked))
    command = [sys.executable, "-I", "-c", _SCRIPT, str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    labels, scores = json.loads(done.stdout)
    return labels, scores
