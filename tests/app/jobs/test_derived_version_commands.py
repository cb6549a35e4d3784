"""The commands and the client's methods that make a version of another one, against canned answers."""

import json
from collections.abc import Callable

import pytest
from canned import JOB, Canned
from test_cli import VERSION
from version_facts import EDITION

from app.client import Client
from app.remote.errors import ClientError

QUEUED = JOB | {"id": "c1", "kind": "compress", "state": "queued", "result": None}
DONE = QUEUED | {"state": "succeeded", "result": {"model": "topics", "version": 4}}
COPY = VERSION | {
    "model": "topics",
    "version": 4,
    "gap": None,
    "copy_of": {
        "version": 3,
        "version_sha256": "0" * 64,
        "float16": True,
        "prune_share": 0.5,
        "prune_below": None,
        "weights": 4000,
        "pruned": 2000,
        "gap": 0.001,
        "size_bytes": 16000,
        "memory_bytes_source": 16000,
        "memory_bytes": 8000,
        "dataset_sha256": "0" * 64,
        "part": "test",
        "n_rows": 90,
        "agreement": 0.975,
        "error_source": 0.125,
        "error": 0.15,
        "loss_low": -0.0125,
        "loss_high": 0.0625,
        "mcnemar": {"only_a": 3, "only_b": 1, "exact": 0.625, "mid_p": 0.375},
    },
}
Run = Callable[..., str]


@pytest.fixture
def run(canned: Canned, command: Callable[..., tuple[int, str, str]]) -> Run:
    """Run a command against canned answers: what it prints."""
    canned.answer("POST /jobs", QUEUED)
    canned.answer("GET /jobs/c1", DONE)
    canned.answer("GET /jobs/c1/events", f"event: state\ndata: {json.dumps(DONE)}\n\n".encode())
    canned.answer("GET /models/topics/versions/4", COPY)

    def succeed(*arguments: str) -> str:
        status, out, _ = command(*arguments)
        assert status == 0
        return out

    return succeed


def test_a_copy_is_asked_for_with_what_was_given(run: Run, canned: Canned) -> None:
    assert "queued" in run("models", "compress", "topics", "--version", "3", "--prune-below", "0.25")
    asked = json.loads(canned.asked[0].body)
    assert asked == {"kind": "compress", "model": "topics", "version": 3, "prune_below": 0.25}
    assert json.loads(run("models", "compress", "topics", "--float16", "--json"))["id"] == "c1"


def test_a_copy_that_is_waited_for_tells_what_it_loses(run: Run) -> None:
    out = run("models", "compress", "topics", "--float16", "--prune-share", "0.5", "--watch")
    for shown in ("2,000 of 4,000", "8,000 bytes instead of 16,000", "97.50%", "-0.0125 to 0.0625", "0.625"):
        assert shown in out
    version = json.loads(run("models", "compress", "topics", "--float16", "--watch", "--json").splitlines()[-1])
    assert version["copy_of"]["pruned"] == 2000


def test_the_version_says_that_it_has_no_certificate(run: Run) -> None:
    assert "none of its own; the source's gap is 1.0e-03" in run("models", "show", "topics", "--version", "4")


def test_the_client_waits_for_a_copy(run: Run) -> None:
    with Client() as client:
        job = client.compress("topics", float16=True).wait()
        assert job.result is not None
        assert job.result.version is not None
        found = client.models.version("topics", job.result.version)
    assert found.copy_of is not None
    assert found.copy_of.agreement == 0.975


def test_adopting_an_edition_says_what_changed(run: Run, canned: Canned) -> None:
    canned.answers["GET /models/topics/versions/4"].clear()
    canned.answer("GET /models/topics/versions/4", VERSION | {"model": "topics", "version": 4, "edition_of": EDITION})
    assert "queued" in run("models", "adopt", "topics", "yso-2", "--alias", "live")
    asked = json.loads(canned.asked[0].body)
    assert asked == {"kind": "adopt", "model": "topics", "hierarchy": "yso-2", "alias": "live"}
    out = run("models", "adopt", "topics", "yso-2", "--watch")
    for shown in (
        "40, found by name",
        "98.50%",
        "0.53 instead of 0.51",
        "0.01 to 0.03",
        "3 that nothing replaces",
        "2 that share a successor",
    ):
        assert shown in out
    assert "that of the source, with gap 5.0e-04" in run("models", "show", "topics", "--version", "4")
    with Client() as client:
        assert client.adopt("topics", "yso-2").wait().result is not None
        with pytest.raises(ClientError, match="reproduce version 1 instead"):
            client.reproduce("topics", 4)
