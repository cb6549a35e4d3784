import copy
import gzip
import io
import json
import lzma
import os
import pickle
import ssl
import subprocess
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from canned import DATASET, HIERARCHY, JOB, SUCCEEDED, Canned, problem

from app.async_client import AsyncClient
from app.client import Client
from app.jobs.schemas import Handles
from app.remote import errors
from app.remote.events import Event
from app.remote.transport import Transport


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("written", [pickle.dumps, copy.deepcopy])
def test_a_client_is_not_pickled_because_its_key_would_be_written(kind: Any, written: Any) -> None:
    with pytest.raises(TypeError, match="because its key would be written too: make a Client"):
        written(kind("http://127.0.0.1:1", "secret"))


def test_the_client_loads_neither_solvers_nor_service() -> None:
    script = """
import sys, app.client, app.cli
heavy = {'numba', 'numpy', 'scipy', 'sklearn', 'sqlalchemy', 'celery', 'fastapi'} & set(sys.modules)
assert not heavy, heavy
assert not [name for name in sys.modules if name.startswith(('app.services', 'app.store', 'app.api', 'workers'))]
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "malformed", errors.MalformedError),
        (401, "unauthenticated", errors.UnauthenticatedError),
        (403, "forbidden", errors.ForbiddenError),
        (404, "not_found", errors.NotFoundError),
        (409, "conflict", errors.ConflictError),
        (412, "precondition_failed", errors.PreconditionFailedError),
        (413, "too_large", errors.TooLargeError),
        (415, "unsupported_format", errors.UnsupportedFormatError),
        (422, "invalid_input", errors.InvalidInputError),
        (500, "internal", errors.InternalError),
        (503, "unavailable", errors.UnavailableError),
    ],
)
def test_every_code_of_a_problem_has_its_own_error(
    canned: Canned, status: int, code: str, kind: type[errors.ResponseError]
) -> None:
    canned.answer("GET /jobs/x", problem(status, code, "because", [{"detail": "bad", "row": 7}]), status)
    with Client() as client, pytest.raises(errors.ResponseError) as caught:
        client.jobs.get("x")
    assert type(caught.value) is kind
    detail = "because (request id r1)" if status == 500 else "because"
    assert (caught.value.code, caught.value.detail, caught.value.request_id) == (code, detail, "r1")
    assert caught.value.errors[0].row == 7


def test_an_answer_that_is_no_problem_document_is_reported_by_its_status() -> None:
    assert type(errors.from_answer(404, b"<html>")) is errors.NotFoundError
    assert type(errors.from_answer(418, b"<html>")) is errors.InternalError


def test_a_post_is_tried_again_with_the_same_idempotency_key(canned: Canned) -> None:
    canned.answer("POST /jobs", problem(503, "unavailable"), 503)
    canned.answer("POST /jobs", JOB, 202)
    with Client() as client:
        job = client.train("papers", "topics", params={"C": 2.0}, seed=5)
        client.train("papers", "topics")
    tokens = [asked.headers["idempotency-key"] for asked in canned.asked]
    assert job.id == "j1"
    assert tokens[0] == tokens[1] != tokens[2]
    assert canned.asked[0].body == canned.asked[1].body
    assert b'"seed":5' in canned.asked[0].body


def test_a_refusal_is_not_tried_again(canned: Canned) -> None:
    canned.answer("POST /jobs", problem(422, "invalid_input"), 422)
    with Client() as client, pytest.raises(errors.InvalidInputError):
        client.train("papers", "topics")
    assert len(canned.asked) == 1


def test_the_service_that_stays_away_is_named() -> None:
    with Client("http://127.0.0.1:9", "k", attempts=1) as client, pytest.raises(errors.UnreachableError) as caught:
        client.solvers()
    assert "http://127.0.0.1:9" in caught.value.detail


def test_the_key_comes_from_the_data_folder_where_no_other_is_given(
    canned: Canned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POLYMARGIN_API_KEY")
    monkeypatch.setenv("POLYMARGIN_HOME", str(tmp_path))
    (tmp_path / "admin.key").write_text("pm_of_home\n")
    canned.answer("GET /healthz", {"status": "ok", "version": "1"})
    with Client() as client:
        client.health()
    assert canned.asked[0].headers["authorization"] == "Bearer pm_of_home"


def test_without_a_key_the_refusal_says_where_one_is_looked_for(
    canned: Canned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canned.answer("GET /solvers", problem(401, "unauthenticated", "no such key"), 401)
    with Client() as client, pytest.raises(errors.UnauthenticatedError) as caught:
        client.solvers()
    assert caught.value.detail == "no such key"
    monkeypatch.delenv("POLYMARGIN_API_KEY")
    monkeypatch.setenv("POLYMARGIN_HOME", str(tmp_path))
    with Client() as client, pytest.raises(errors.UnauthenticatedError) as caught:
        client.solvers()
    assert "POLYMARGIN_API_KEY" in caught.value.detail
    assert str(tmp_path / "admin.key") in caught.value.detail


def test_an_upload_sends_the_file_as_it_is(canned: Canned, tmp_path: Path) -> None:
    file = tmp_path / "papers.jsonl"
    file.write_bytes(b"x" * 3_000_000)
    canned.answer("POST /datasets", problem(503, "unavailable"), 503)
    canned.answer("POST /datasets", DATASET, 202)
    with Client() as client:
        client.datasets.upload(file, "papers")
    first, second = canned.asked
    assert first.query == {"name": "papers", "format": "jsonl"}
    assert first.body == second.body == file.read_bytes()


def test_labels_in_a_second_file_are_sent_beside_the_features(canned: Canned, tmp_path: Path) -> None:
    parts = {"X.trn.npz": b"features", "Y.trn.npz": b"labels", "output-items.txt": b"a\nb\n"}
    for name, content in parts.items():
        (tmp_path / name).write_bytes(content)
    features, labels, names = (tmp_path / name for name in parts)
    canned.answer("POST /datasets", DATASET, 202)
    with Client() as client:
        client.datasets.upload(features, "papers", labels=labels, label_names=names)
        os.utime(labels, (1, 1))
        client.datasets.upload(features, "papers", labels=labels, label_names=names)
        with pytest.raises(errors.ClientError, match="need a file of rows on this machine, and no format"):
            client.datasets.upload(features, "papers", "npz", labels=labels)
    first, second = canned.asked
    assert first.query == {"name": "papers", "format": "archive"}
    # an interrupted upload goes on with the same bytes
    assert first.body == second.body
    with tarfile.open(fileobj=io.BytesIO(first.body)) as archive:
        sent = {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
    folders = dict(zip(parts, ("features", "labels", "names"), strict=True))
    assert sent == {f"{folders[name]}/{name}": content for name, content in parts.items()}


def test_an_upload_names_the_columns_of_labels_and_weights(canned: Canned, tmp_path: Path) -> None:
    (tmp_path / "papers.csv").write_text("topic,x,w\n")
    canned.answer("POST /datasets", DATASET, 202)
    with Client() as client:
        client.datasets.upload(
            tmp_path / "papers.csv", "papers", label_column="topic", weight_column="w", label_separator=";"
        )
    columns = {"label_column": "topic", "weight_column": "w", "label_separator": ";"}
    assert canned.asked[0].query == {"name": "papers", "format": "csv", **columns}


def test_an_option_that_no_upload_has_is_refused_before_anything_is_sent(canned: Canned, tmp_path: Path) -> None:
    (tmp_path / "papers.csv").write_text("topic,x\n")
    with Client() as client, pytest.raises(TypeError, match=r"option.*lable_column; known are label_column"):
        client.datasets.upload(tmp_path / "papers.csv", "papers", lable_column="topic")
    assert canned.asked == []


@pytest.mark.parametrize(
    ("name", "format"),
    [("tree.csv", "csv"), ("tree.JSON", "json"), ("cat_hier.txt", "lshtc"), ("rcv1.topics.hier.orig", "rcv1")],
)
def test_the_name_of_a_hierarchys_file_tells_its_format(canned: Canned, tmp_path: Path, name: str, format: str) -> None:
    (tmp_path / name).write_text("x")
    canned.answer("POST /hierarchies", HIERARCHY, 201)
    with Client() as client:
        assert client.hierarchies.upload(tmp_path / name, "tree", root="all").levels == [2, 5]
    assert canned.asked[0].query == {"name": "tree", "format": format, "root": "all"}
    (tmp_path / "tree.txt").write_text("x")
    with Client() as client, pytest.raises(errors.ClientError, match=r"'\.txt'.*cat_hier"):
        client.hierarchies.upload(tmp_path / "tree.txt", "tree")


@pytest.mark.parametrize(
    ("name", "format"),
    [("a.CSV.gz", "csv"), ("a.tsv.zst", "tsv"), ("a.parquet", "parquet"), ("a.feather", "arrow"), ("a.npz", "npz"),
     ("a.xyz", None), ("a.gz", None)],
)  # fmt: skip
def test_the_ending_tells_the_format_or_leaves_it_to_the_service(
    canned: Canned, tmp_path: Path, name: str, format: str | None
) -> None:
    (tmp_path / name).write_bytes(b"x")
    canned.answer("POST /datasets", DATASET, 202)
    with Client() as client:
        client.datasets.upload(tmp_path / name, "papers", text_columns=["title"], quotes=False)
    reported = {} if format is None else {"format": format}
    assert canned.asked[0].query == {"name": "papers", "text_columns": "title", "quotes": "false", **reported}


@pytest.mark.parametrize(
    ("content", "format"), [(b"a text\t<http://example.org/a>\n", {}), (b"text\tlabel\na\t<b>\n", {"format": "tsv"})]
)
def test_the_content_tells_annifs_corpora_from_other_tables(
    canned: Canned, tmp_path: Path, content: bytes, format: dict[str, str]
) -> None:
    (tmp_path / "corpus.tsv").write_bytes(content)
    canned.answer("POST /datasets/papers/rows", JOB, 202)
    with Client() as client:
        client.datasets.append("papers", tmp_path / "corpus.tsv")
    assert canned.asked[0].query == format


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("corpus.tsv.gz", gzip.compress(b"a text\t<http://example.org/a>\n", mtime=0), {}),
        ("corpus.tsv.xz", lzma.compress(b"a text\t<http://example.org/a>\n"), {}),
        ("corpus.tsv.gz", gzip.compress(b"text\tlabel\n", mtime=0), {"format": "tsv"}),
        ("corpus.tsv.gz", gzip.compress(b"text\tlabel\n" * 99, mtime=0)[:20], {"format": "tsv"}),
        ("corpus.tsv.xz", b"no such thing", {"format": "tsv"}),
        ("corpus.tsv.zst", pa.compress(b"a text\t<http://example.org/a>\n", "zstd", asbytes=True), {}),
        ("corpus.tsv.zst", pa.compress(b"text\tlabel\n", "zstd", asbytes=True), {"format": "tsv"}),
        ("corpus.tsv.zst", pa.compress(b"text\tlabel\n" * 99, "zstd", asbytes=True)[:15], {"format": "tsv"}),
        ("corpus.tsv.zst", b"no such thing", {"format": "tsv"}),
    ],
)
def test_compressed_corpora_are_told_by_what_is_in_them(
    canned: Canned, tmp_path: Path, name: str, content: bytes, format: dict[str, str]
) -> None:
    (tmp_path / name).write_bytes(content)
    canned.answer("POST /datasets/papers/rows", JOB, 202)
    with Client() as client:
        client.datasets.append("papers", tmp_path / name)
    assert canned.asked[0].query == format


def test_the_report_of_faulty_rows_is_given_as_it_comes(canned: Canned) -> None:
    canned.answer("GET /datasets/papers/errors", b"line,column,fault\r\n")
    with Client() as client:
        assert client.datasets.error_report("papers") == b"line,column,fault\r\n"


def test_waiting_for_a_faulty_dataset_names_its_rows(canned: Canned) -> None:
    failed = DATASET | {"state": "failed", "error": problem(422, "invalid_input", "1 row", [{"detail": "x", "row": 2}])}
    for body in (DATASET, DATASET, failed):
        canned.answer("GET /datasets/papers" if not canned.answers else "GET /datasets/d1", body)
    with Client() as client, pytest.raises(errors.JobFailedError, match="1 row") as caught:
        client.datasets.get("papers").wait()
    assert caught.value.errors[0].row == 2


def test_waiting_returns_the_job_that_succeeded(canned: Canned) -> None:
    for body in (JOB, JOB, SUCCEEDED):
        canned.answer("GET /jobs/j1", body)
    with Client() as client:
        job = client.jobs.get("j1").wait()
    assert job.result is not None
    assert job.result.version == 3


def test_waiting_ends_at_its_time_limit(canned: Canned) -> None:
    canned.answer("GET /jobs/j1", JOB)
    with Client() as client, pytest.raises(errors.TimedOutError, match="still running"):
        client.jobs.get("j1").wait(timeout=0)


def test_events_go_on_after_a_broken_connection_where_they_left_off(canned: Canned) -> None:
    canned.answer("GET /jobs/j1", JOB)
    canned.answer("GET /jobs/j1/events", b'retry: 2000\n\n: still here\n\nevent: step\nid: 0\ndata: {"epoch": 1}\n\n')
    canned.answer(
        "GET /jobs/j1/events",
        b'event: step\nid: 1\ndata: {"epoch": 2}\n\nevent: state\ndata: {"state":\ndata: "succeeded"}\n\n',
    )
    with Client() as client:
        events = list(client.jobs.get("j1").events())
    assert [asked.headers.get("last-event-id") for asked in canned.asked[1:]] == [None, "0"]
    assert events[:2] == [Event("step", {"epoch": 1}, "0"), Event("step", {"epoch": 2}, "1")]
    assert (events[2].kind, events[2].data) == ("state", {"state": "succeeded"})


def test_events_that_keep_breaking_off_end_in_an_error(canned: Canned) -> None:
    canned.answer("GET /jobs/j1", JOB)
    canned.answer("GET /jobs/j1/events", b"retry: 2000\n\n")
    with Client(attempts=3) as client, pytest.raises(errors.UnreachableError, match="3 times"):
        list(client.jobs.get("j1").events())
    assert len(canned.asked) == 4


def test_predictions_take_texts_and_arrays(canned: Canned) -> None:
    predictions = [{"label": "a", "score": 1.0, "top": []}]
    answer = {"model": "m", "version": 1, "version_sha256": "0" * 64, "gap": 0.0, "predictions": predictions}
    canned.answer("POST /models/m/predict", answer)
    with Client() as client:
        client.predict("m", ["some text"], alias="production")
        client.predict("m", np.array([[1.0, 2.0]]), top_k=2)
    assert canned.asked[0].query == {"alias": "production"}
    assert canned.asked[0].body == b'{"instances":[{"text":"some text"}],"top_k":1}'
    assert canned.asked[1].body == b'{"instances":[[1.0,2.0]],"top_k":2}'


def test_the_audit_log_is_asked_for_a_key_a_thing_and_a_time(canned: Canned) -> None:
    canned.answer("GET /audit", {"items": []})
    with Client() as client:
        client.audit.list("bob", "topics", datetime(2025, 1, 2, tzinfo=UTC))
    since = "2025-01-02T00:00:00+00:00"
    assert canned.asked[0].query == {"key": "bob", "thing": "topics", "since": since, "page_size": "50"}


def test_an_alias_moves_only_from_the_revision_that_was_seen(canned: Canned) -> None:
    canned.answer("PUT /models/m/aliases/production", {"name": "production", "version": 2, "revision": 8})
    with Client() as client:
        assert client.models.set_alias("m", "production", 2, revision=7).revision == 8
    assert canned.asked[0].headers["if-match"] == '"7"'


@pytest.mark.parametrize(("url", "read"), [("http://127.0.0.1:1", 0), ("https://127.0.0.1:1", 1)])
def test_certificates_are_read_for_https_alone(monkeypatch: pytest.MonkeyPatch, url: str, read: int) -> None:
    made, default = [], ssl.create_default_context

    def counted(**given: Any) -> ssl.SSLContext:
        made.append(default(**given))
        return made[-1]

    monkeypatch.setattr(ssl, "create_default_context", counted)
    with Client(url) as client:
        assert len(made) == read
        trusted = client._transport._trusted()
    assert trusted is True or trusted.verify_mode == ssl.CERT_REQUIRED


def test_an_error_that_nobody_caught_tells_its_first_faults(canned: Canned) -> None:
    faults = [{"detail": "is bad", "pointer": "/params/C"}, {"detail": "x", "row": 2, "column": "label"}]
    canned.answer("GET /jobs/j1", problem(422, "invalid_input", "the body is wrong", faults), 422)
    canned.answer("GET /jobs/j2", problem(422, "invalid_input", "the body is wrong", [{"detail": "y"}] * 4), 422)
    canned.answer("GET /jobs/j3", problem(404, "not_found", "no such job"), 404)
    messages = []
    with Client() as client:
        for job in ("j1", "j2", "j3"):
            with pytest.raises(errors.ResponseError) as caught:
                client.jobs.get(job)
            messages.append(str(caught.value))
    assert messages == [
        "the body is wrong (params.C: is bad; row 2, label: x)",
        "the body is wrong (y; y; y; ...)",
        "no such job",
    ]


@pytest.mark.parametrize(
    ("params", "place", "said"),
    [
        ({"C": float("nan")}, "params.C", "nan"),
        ({"C": None, "weights": [1.0, float("-inf")]}, "params.weights[1]", "-inf"),
        ({"weights": np.array([1.0, np.nan], dtype=np.float32)}, "params.weights[1]", "nan"),
    ],
)
def test_a_number_that_is_not_finite_is_refused_before_anything_is_sent(
    canned: Canned, params: dict[str, Any], place: str, said: str
) -> None:
    with Client() as client, pytest.raises(errors.ClientError) as caught:
        client.train("papers", "topics", params=params)
    assert str(caught.value) == f"The request has a number that is not finite ({place}: {said} is not a finite number)"
    assert not canned.asked


def test_a_threshold_that_is_no_number_is_refused_and_a_missing_value_of_a_record_is_sent(canned: Canned) -> None:
    answer = {"model": "m", "version": 1, "version_sha256": "0" * 64, "gap": None, "predictions": []}
    canned.answer("POST /models/m/predict", answer)
    with Client() as client:
        with pytest.raises(errors.ClientError, match="threshold: nan"):
            client.predict("m", ["a"], threshold=float("nan"))
        with pytest.raises(errors.ClientError, match=r"instances\[1\]\[0\]: nan"):
            client.predict("m", [np.ones(1), np.array([np.nan])])
        client.predict("m", [{"record": {"price": float("nan")}}])
    (asked,) = canned.asked
    assert b'"record":{"price":null}' in asked.body


def test_one_text_is_one_instance(canned: Canned) -> None:
    answer = {"model": "m", "version": 1, "version_sha256": "0" * 64, "gap": None, "predictions": []}
    canned.answer("POST /models/m/predict", answer)
    with Client() as client:
        client.predict("m", "one text")
        client.predict("m", {"text": "one text"})
    asked = [json.loads(each.body)["instances"] for each in canned.asked]
    assert asked == [[{"text": "one text"}]] * 2


def test_a_client_asks_where_the_service_of_its_home_was_started_last(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = os.environ["POLYMARGIN_URL"]
    monkeypatch.setenv("POLYMARGIN_HOME", str(tmp_path))
    monkeypatch.delenv("POLYMARGIN_API_KEY")
    monkeypatch.delenv("POLYMARGIN_URL")
    with Client() as client:
        assert client.url == "http://127.0.0.1:8000"
    (tmp_path / "run").mkdir()
    (tmp_path / "run/address").write_text(f"{url}\n")
    (tmp_path / "admin.key").write_text("pm_other\n")
    canned.answer("GET /status", problem(401, "unauthenticated"), 401)
    with Client() as client:
        assert client.url == url
        with pytest.raises(errors.UnauthenticatedError) as caught:
            client.status()
    for part in (url, "run/address", str(tmp_path / "admin.key"), "POLYMARGIN_URL"):
        assert part in caught.value.detail
    (tmp_path / "run/address").write_text("http://127.0.0.1:9")
    with Client(attempts=1) as client, pytest.raises(errors.UnreachableError) as away:
        client.status()
    assert "http://127.0.0.1:9, as " in str(away.value)
    with Client("http://127.0.0.1:9/", attempts=1) as client, pytest.raises(errors.UnreachableError) as given:
        client.status()
    assert "run/address" not in str(given.value)


def test_text_that_cannot_be_stored_is_refused_before_anything_is_sent(canned: Canned) -> None:
    with Client() as client:
        with pytest.raises(errors.ClientError, match=r"tags.a: half of a surrogate pair is not allowed"):
            client.train("papers", "topics", tags={"a": "\udcff"})
        with pytest.raises(errors.ClientError, match="half of a surrogate pair"):
            client.jobs.list(tag="a\udcff")
    assert not canned.asked


def test_a_parameter_of_the_solver_in_the_place_of_a_field_is_said_to_belong_into_params(canned: Canned) -> None:
    faults = [{"pointer": f"/{name}", "detail": "unknown field"} for name in ("C", "colour")]
    canned.answer("POST /jobs", problem(422, "invalid_input", "The body has unknown fields.", faults), 422)
    solver = {"name": "softmax", "title": "t", "paper": "p", "summary": "s"}
    solver |= {"handles": dict.fromkeys(Handles.model_fields, True)}
    canned.answer("GET /solvers/softmax", solver | {"params_schema": {"properties": {"C": {}}}})
    with Client() as client, pytest.raises(errors.InvalidInputError) as caught:
        client.train("papers", "topics", "softmax", C=1, colour="red")
    assert [fault.detail for fault in caught.value.errors] == [
        'a parameter of softmax: pass params={"C": 1}',
        "unknown field",
    ]


@pytest.mark.parametrize(("retry_after", "lines"), [("15", ["The queue is full. Trying again."]), ("2", [])])
def test_a_long_wait_is_explained_once(
    canned: Canned,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    retry_after: str,
    lines: list[str],
) -> None:
    monkeypatch.setattr(Transport, "sleep", lambda self, seconds: None)
    canned.retry_after = retry_after
    for _ in range(3):
        canned.answer("GET /jobs/j1", problem(429, "too_many", "The queue is full."), 429)
    canned.answer("GET /jobs/j1", JOB)
    with Client() as client:
        assert client.jobs.get("j1").id == "j1"
    assert [record.getMessage() for record in caplog.records if record.name == "polymargin.client"] == lines
