import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from canned import DATASET, HIERARCHY, JOB, SUCCEEDED, Canned, problem

from app.cli import main

Run = Callable[..., tuple[int, str, str]]

READY = DATASET | {"state": "ready", "kind": "text", "n_rows": 2, "n_classes": 2}
VERSION = {
    "id": "v1",
    "model": "topics",
    "version": 3,
    "job": "j1",
    "dataset": "d1",
    "dataset_sha256": "0" * 64,
    "solver": "weston_watkins",
    "params": {"C": 1.0},
    "seed": 0,
    "request": {},
    "code_version": "0",
    "n_classes": 2,
    "n_features": 9,
    "n_train": 8,
    "epochs": 4,
    "converged": True,
    "primal": 2.0,
    "dual": 1.9,
    "gap": 0.05,
    "violation": 0.1,
    "seconds": 0.5,
    "sha256": "0" * 64,
    "size_bytes": 10,
    "report": {"nonzero_weights": 0.0625},
    "metrics": {"test": {"error": 0.25}},
    "levels": {"test": [{"f1": 0.875}, {"f1": 0.625}]},
    "aliases": [],
    "created_at": "2025-01-02T03:04:05Z",
}
STATISTICS = {
    "n_rows": 2,
    "n_train": 2,
    "n_test": 0,
    "n_classes": 2,
    "n_features": None,
    "nnz": None,
    "empty_rows": 0,
    "classes": [{"label": "[a]", "train": 1, "test": 0}],
    "test_only_labels": [],
}
NODES = {"nodes": [{"number": 0, "name": "science", "parent": None, "level": 1, "n_children": 3}], "n_nodes": 1}
MODEL = {
    "id": "m1",
    "name": "topics",
    "versions": [3],
    "aliases": [{"name": "production", "version": 3, "revision": 1}],
    "created_at": "2025-01-02T03:04:05Z",
    "latest": VERSION,
}
SOLVERS = {
    "items": [
        {
            "name": "weston_watkins",
            "title": "Weston and Watkins",
            "summary": "All margins at once.",
            "paper": "Weston and Watkins 1999",
            "handles": {
                "flat": True,
                "tree": False,
                "multilabel": False,
                "shards": True,
                "kernels": False,
                "certified": True,
            },
            "params_schema": {"properties": {"C": {"default": 1.0, "description": "Weight of the losses."}}},
        }
    ]
}
ENTRY = {
    "id": "a1",
    "at": "2025-01-02T03:04:05Z",
    "workspace": "default",
    "key": "bob",
    "key_id": "k1",
    "method": "PUT",
    "route": "/api/v1/models/{ref}/aliases/{alias}",
    "path": "/api/v1/models/topics/aliases/production",
    "request_id": "r1",
    "address": "127.0.0.1",
    "what": "model",
    "thing": "m1",
    "name": "topics",
    "before": {"alias production": 1},
    "after": {"alias production": 2},
}
USAGE = {
    "workspace": "default",
    "jobs": 2,
    "max_jobs": 1000,
    "stored_bytes": 3,
    "max_stored_bytes": 1 << 40,
    "requests_per_second": 50.0,
}
RETIRED = {"labels": [{"name": "buns", "names": {"en": "Buns"}, "replaced_by": ["baking"]}], "n_labels": 1}
CHANGES = {
    "counts": {"appeared": 0, "went": 0, "moved": 1, "renamed": 0, "deprecated": 0},
    "n_same": 3,
    "changes": [{"change": "moved", "label": "weaving", "names": {}, "parent": "craft", "replaced_by": []}],
}
KEY = {"id": "k1", "name": "bob", "role": "editor", "created_at": "2025-01-02T03:04:05Z", "revoked": False}
RULE = {
    "id": "r1",
    "name": "nightly",
    "owner": "bob",
    "model": "topics",
    "dataset": "d1",
    "training": {},
    "warm": False,
    "cron": "30 2 * * *",
    "time_zone": "UTC",
    "feedback": False,
    "feedback_rows": None,
    "promote": None,
    "due_at": "2025-01-03T02:30:00Z",
    "latest_run": None,
    "created_at": "2025-01-02T03:04:05Z",
}
PREDICTION = {"label": "a", "score": 1.5, "top": [{"label": "a", "score": 1.5}, {"label": "b", "score": -1.0}]}
ANSWER = {"model": "topics", "version": 3, "version_sha256": "0" * 64, "gap": 0.05, "predictions": [PREDICTION]}
EVENTS = (
    'event: step\nid: 0\ndata: {"number": 0, "epoch": 4, "gap": 0.05}\n\n'
    f"event: state\ndata: {json.dumps(SUCCEEDED)}\n\n"
).encode()


@pytest.fixture
def run(canned: Canned, command: Run) -> Run:
    """Run a command line; gives its status, stdout and stderr."""
    canned.answer("POST /datasets", DATASET, 202)
    canned.answer("GET /datasets", {"items": [READY]})
    canned.answer("GET /datasets/d1", READY)
    canned.answer("GET /datasets/d1/statistics", STATISTICS)
    canned.answer("GET /datasets/papers", READY)
    canned.answer("GET /datasets/papers/statistics", STATISTICS)
    canned.answer("DELETE /datasets/papers", b"", 204)
    canned.answer("POST /hierarchies", HIERARCHY, 201)
    canned.answer("GET /hierarchies", {"items": [HIERARCHY]})
    canned.answer("GET /hierarchies/tree", HIERARCHY)
    canned.answer("GET /hierarchies/tree/nodes", NODES)
    canned.answer("GET /hierarchies/tree/retired", RETIRED)
    canned.answer("GET /hierarchies/tree/changes", CHANGES)
    canned.answer("DELETE /hierarchies/tree", b"", 204)
    canned.answer("POST /jobs", JOB, 202)
    canned.answer("GET /jobs", {"items": [JOB]})
    canned.answer("GET /jobs/j1", SUCCEEDED)
    canned.answer("GET /jobs/j1/events", EVENTS)
    canned.answer("POST /jobs/plan", PLAN)
    canned.answer("POST /jobs/j1/cancel", JOB | {"state": "cancelling"})
    canned.answer("POST /jobs/j1/retry", JOB | {"state": "queued"})
    canned.answer("GET /models", {"items": [MODEL]})
    canned.answer("GET /models/topics", MODEL)
    canned.answer("GET /models/topics/versions/3", VERSION)
    canned.answer("POST /models/topics/predict", ANSWER)
    canned.answer("DELETE /models/topics", DELETION)
    canned.answer("DELETE /models/topics/versions/3", DELETION)
    canned.answer("POST /models/topics/restore", {"model": "topics", "versions": [3]})
    canned.answer("POST /models/topics/versions/3/restore", {"model": "topics", "versions": [3]})
    canned.answer("PATCH /models/topics/versions/3", VERSION | {"tags": {"stage": "try"}})
    canned.answer("GET /models/topics/retention", RETENTION)
    canned.answer("PUT /models/topics/retention", RETENTION)
    canned.answer("GET /models/topics/versions/3/export", b"archive")
    canned.answer("POST /models/import", VERSION, 201)
    canned.answer("GET /storage", STORAGE)
    canned.answer("POST /storage/collect", STORAGE | {"collected": True})
    canned.answer("GET /status", STATUS)
    canned.answer("POST /datasets/example", DATASET, 202)
    canned.answer("GET /solvers", SOLVERS)
    canned.answer("GET /usage", USAGE)
    canned.answer("GET /audit", {"items": [ENTRY]})
    canned.answer("GET /keys", {"items": [KEY]})
    canned.answer("POST /keys", KEY | {"secret": "pm_new"}, 201)
    canned.answer("DELETE /keys/k1", b"", 204)
    return command


DELETION = {
    "model": "topics",
    "dry_run": True,
    "versions": [3, 2],
    "held": [{"version": 2, "reason": "the alias names it"}],
    "evaluations": 1,
    "size_bytes": 12345,
    "restorable_until": "2025-01-02T03:04:05Z",
}
RETENTION = {"model": "topics", "keep_last": 2, "dry_run": True, "goes": [1], "held": DELETION["held"]}
DELETED = {
    "model": "topics",
    "version": 1,
    "size_bytes": 5,
    "deleted_at": "2025-01-02T03:04:05Z",
    "restorable_until": "2025-01-09T03:04:05Z",
}
STORAGE = {
    "collected": False,
    "versions": [DELETED],
    "restorable": [DELETED],
    "orphans": [{"path": "models/x.1", "size_bytes": 7}],
    "size_bytes": 12,
    "free_bytes": 99,
}
STATUS = {
    "version": "0.3.0",
    "jobs": {"running": 1},
    "running": [{"job": JOB | {"state": "running"}, "curve": []}],
    "queued": [],
    "queues": [{"name": "general", "processes": 2, "busy": 1, "waiting": 0}],
    "disk": {"total_bytes": 4 << 30, "free_bytes": 1 << 30},
    "memory": {"total_bytes": 2 << 30, "free_bytes": 1 << 30},
    "n_datasets": 1,
    "n_hierarchies": 0,
    "n_models": 0,
    "attention": [{"kind": "disk_full", "detail": "Little is free.", "id": None, "name": None}],
}
PLAN = {
    "shards": [{"shard": 0, "pool": "shard-0", "classes": 5, "examples": 90, "memory_bytes": 4096}],
    "pools": 1,
    "rounds_per_epoch": {"least": 84, "most": 8433},
    "bytes_per_epoch": {"least": 1 << 20, "most": 2 << 20},
    "seconds_per_epoch": {"least": 0.5, "most": 0.5},
    "seconds_without_shards": 0.25,
    "advice": "Shards do not pay.",
    "assumptions": {
        "batch": {"least": 4.5, "most": 450.0},
        "once": {"least": 10.0, "most": 700.0},
        "message": {"least": 2.0, "most": 400.0},
        "products": 3e9,
        "bandwidth": 1.25e8,
        "round_trip": 0.001,
    },
}
COMMANDS: list[tuple[tuple[str, ...], str | tuple[str, ...], dict[str, Any]]] = [
    (("datasets", "list"), "papers", {"items": [READY]}),
    (("datasets", "show", "papers"), "[a]", READY),
    (("datasets", "show", "papers"), "These are the largest 1 of 2 labels", READY),
    (("datasets", "delete", "papers"), "papers", {"deleted": "papers"}),
    (("hierarchies", "list"), "csv", {"items": [HIERARCHY]}),
    (("hierarchies", "show", "tree"), "2, 5", HIERARCHY),
    (("hierarchies", "show", "tree", "--parent", "root"), "science", NODES),
    (("hierarchies", "retired", "tree"), "Buns   deprecated  baking", RETIRED),
    (("hierarchies", "changes", "tree", "--since", "old"), "weaving  root    craft", CHANGES),
    (("hierarchies", "delete", "tree"), "tree", {"deleted": "tree"}),
    (("hierarchies", "show", "tree", "--search", "sci"), "science", NODES),
    (("status",), ("1.0 of 4.0 GiB", "Little is free."), STATUS),
    (("train", "papers", "--model", "topics"), "running", JOB),
    (("train", "papers", "--model", "topics", "--watch"), "0.25", SUCCEEDED),
    (("train", "papers", "--model", "topics", "--shards", "2", "--plan"), ("84 to 8,433", "1.0 MB to 2.0 MB"), PLAN),
    (("jobs", "list"), "j1", {"items": [JOB]}),
    (("jobs", "show", "j1"), "topics version 3", SUCCEEDED),
    (("jobs", "watch", "j1"), "succeeded", SUCCEEDED),
    (("jobs", "cancel", "j1"), "cancelling", JOB | {"state": "cancelling"}),
    (("jobs", "retry", "j1"), "queued", JOB | {"state": "queued"}),
    (("models", "list"), "production=3", {"items": [MODEL]}),
    (("models", "show", "topics"), ("0.25", "0.0625", "0.625"), VERSION),
    (("models", "show", "topics", "--version", "3"), "weston_watkins", VERSION),
    (("models", "delete", "topics"), "the alias names it", DELETION),
    (("models", "delete", "topics", "--version", "3", "--dry-run"), "12,345", DELETION),
    (("models", "restore", "topics"), "topics version 3", {"versions": [3]}),
    (("models", "restore", "topics", "--version", "3"), "topics version 3", {"versions": [3]}),
    (("models", "tag", "topics", "3", "--set", "stage=try", "--unset", "old"), "try", {"tags": {"stage": "try"}}),
    (("models", "retention", "topics"), "the last 2", RETENTION),
    (("models", "retention", "topics", "--keep-last", "2", "--dry-run"), "the last 2", RETENTION),
    (("storage", "show"), "models/x.1", STORAGE),
    (("storage", "collect", "--deleted"), "were freed", {"collected": True}),
    (("predict", "topics", "--text", "hello", "--top-k", "2"), "1.5000", ANSWER),
    (("solvers",), "Weston and Watkins", SOLVERS),
    (("solvers", "weston_watkins"), "Weight of the losses", SOLVERS["items"][0]),
    (("usage",), ("1,000", "1,099,511,627,776"), USAGE),
    (("audit",), "alias production: 1 -> 2", {"items": [ENTRY]}),
    (("audit", "--key", "bob", "--thing", "topics", "--days", "7"), "model topics", {"items": [ENTRY]}),
    (("keys", "list"), "bob", {"items": [KEY]}),
    (("keys", "create", "bob", "--role", "editor"), "pm_new", KEY | {"secret": "pm_new"}),
    (("keys", "create", "bob", "--workspace", "team-b"), "pm_new", KEY | {"secret": "pm_new"}),
    (("keys", "create", "bob", "--days", "30"), "pm_new", KEY | {"secret": "pm_new"}),
    (("keys", "revoke", "k1"), "k1", {"revoked": "k1"}),
    (("version",), "0.", {}),
]


@pytest.mark.parametrize(
    ("path", "arguments"), [("/models", ("list",)), ("/models/topics/versions", ("versions", "topics"))]
)
def test_lists_have_the_f1_of_sets(
    command: Run, canned: Canned, path: str, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    version = VERSION | {"metrics": {"test": {"error": 0.9, "micro_f1": 0.4651, "symmetric_difference": 2.0}}}
    canned.answer(f"GET {path}", {"items": [version if "versions" in path else MODEL | {"latest": version}]})
    shown = command("models", *arguments)[1]
    assert "test error or micro F1" in shown
    assert "F1 0.465" in shown


def test_long_parameters_are_cut(command: Run, canned: Canned) -> None:
    costs = {"a": {f"b{at}": 1.0 for at in range(1000)}}
    canned.answer("GET /models/topics", MODEL | {"latest": VERSION | {"params": {"costs": costs, "C": 2.0}}})
    shown = command("models", "show", "topics")[1]
    assert f"... ({len(str(costs)):,} characters; --json has all)" in " ".join(shown.split())
    assert "b999" not in shown


@pytest.mark.parametrize(("arguments", "shown", "_document"), COMMANDS)
def test_every_command_speaks_to_people(
    run: Run, arguments: tuple[str, ...], shown: str | tuple[str, ...], _document: Any
) -> None:
    status, out, _ = run(*arguments)
    assert status == 0
    assert [each for each in ([shown] if isinstance(shown, str) else shown) if each not in out] == []


@pytest.mark.parametrize(("arguments", "_shown", "document"), COMMANDS)
def test_json_is_one_document_on_the_last_line(
    run: Run, arguments: tuple[str, ...], _shown: Any, document: dict[str, Any]
) -> None:
    status, out, _ = run(*arguments, "--json")
    assert status == 0
    assert out.count("\n") == 1
    assert _has(json.loads(out), document)


def _has(given: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return all(_has(given[name], value) for name, value in expected.items())
    if isinstance(expected, list):
        return all(map(_has, given, expected)) and len(given) == len(expected)
    return bool(given == expected)


def test_columns_that_no_answer_has_are_left_out(run: Run, canned: Canned) -> None:
    titles = run("predict", "topics", "--text", "hello")[1].splitlines()[0].split()
    assert titles == ["instance", "label", "score"]
    canned.answers["POST /models/topics/predict"].clear()
    sure = {"label": "a", "probability": 0.75}
    top = [{"label": "a", "score": 1.5, "probability": 0.75}]
    canned.answer("POST /models/topics/predict", ANSWER | {"predictions": [PREDICTION | {"top": top, "sure": sure}]})
    titles = run("predict", "topics", "--text", "hello")[1].splitlines()[0].split()
    assert titles == ["instance", "label", "score", "probability", "sure"]


def test_changes_that_are_cut_off_are_counted(run: Run, canned: Canned) -> None:
    canned.answers.pop("GET /hierarchies/tree/changes")
    many = CHANGES | {"counts": CHANGES["counts"] | {"appeared": 2, "moved": 1200}}
    canned.answer("GET /hierarchies/tree/changes", many)
    assert run("hierarchies", "changes", "tree", "--since", "old")[1].splitlines()[-1].startswith("1 of 1,202 changes")
    of_one_kind = run("hierarchies", "changes", "tree", "--since", "old", "--change", "moved")[1]
    assert of_one_kind.splitlines()[-1].startswith("1 of 1,200 changes")


def test_predicted_labels_without_training_rows_are_named_once(run: Run, canned: Canned) -> None:
    one = {"label": "a", "score": 0.5}
    found = {**one, "top": [one], "labels": [one, one | {"label": "new", "seen": False}]}
    canned.answers.pop("POST /models/topics/predict")
    canned.answer("POST /models/topics/predict", ANSWER | {"predictions": [found, found]})
    assert "No training row has 1 predicted label: new" in run("predict", "topics", "--text", "x", "--text", "y")[1]
    canned.answers.pop("POST /models/topics/predict")
    canned.answer("POST /models/topics/predict", ANSWER)
    assert "training row" not in run("predict", "topics", "--text", "x")[1]


def test_a_set_has_the_scores_of_the_api_and_is_followed_by_the_best_candidates(run: Run, canned: Canned) -> None:
    top = [{"label": "a", "score": -0.5, "probability": 0.25}, {"label": "b", "score": -1.5, "probability": 0.125}]
    empty = {"label": "a", "score": -0.5, "top": top, "subtree": []}
    full = empty | {"subtree": [{"label": "a", "parent": None, "margin": 0.5}], "labels": [top[0]]}
    canned.answers.pop("POST /models/topics/predict")
    canned.answer("POST /models/topics/predict", ANSWER | {"set": True, "predictions": [empty, full]})
    lines = run("predict", "topics", "--text", "x", "--text", "y", "--top-k", "2")[1].splitlines()
    assert [line.split() for line in lines if line[:1].isdigit()] == [
        ["0", "(no", "label)", "0.0000", "-", "-"],
        ["0", "a", "-0.5000", "not", "in", "the", "set", "0.2500"],
        ["0", "b", "-1.5000", "not", "in", "the", "set", "0.1250"],
        ["1", "a", "-0.5000", "-", "0.2500"],
        ["1", "b", "-1.5000", "not", "in", "the", "set", "0.1250"],
    ]
    del top[0]["probability"], top[1]["probability"]  # then scores are margins
    canned.answers.pop("POST /models/topics/predict")
    canned.answer("POST /models/topics/predict", ANSWER | {"set": True, "predictions": [empty]})
    lines = run("predict", "topics", "--text", "x", "--top-k", "2")[1].splitlines()
    assert lines[-1].split() == ["0", "b", "-1.5000", "not", "in", "the", "set"]


def test_a_promise_about_sets_is_one_about_their_labels(run: Run, canned: Canned) -> None:
    used = {"threshold": 0.5, "precision": 0.6, "lower_bound": 0.5, "answered": 0.25, "recall": 0.1}
    one = {"label": "a", "score": 0.5, "top": [{"label": "a", "score": 0.5}], "sure_labels": []}
    for more, words in (
        ({"subtree": []}, "such a label; of these labels, 60.0% were right"),
        ({}, "such an answer; of these, 60.0% were right"),
    ):
        canned.answers.pop("POST /models/topics/predict")
        canned.answer("POST /models/topics/predict", ANSWER | {"predictions": [one | more], "sure_from": used})
        shown = " ".join(run("predict", "topics", "--text", "x", "--min-precision", "0.5")[1].split())
        assert f"25.0% of the held-out rows had {words}" in shown


def test_an_append_prints_how_many_rows_it_has_left_out(run: Run, canned: Canned, tmp_path: Path) -> None:
    (tmp_path / "papers.csv").write_text("label,text\n")
    detail = "3 rows were left out by languages: texts in other languages"
    canned.answers.pop("GET /datasets/d1/statistics")
    canned.answer("POST /datasets/papers/rows", JOB, 202)
    canned.answer("GET /datasets/d1/statistics", STATISTICS | {"warnings": [{"code": "rows_in", "detail": detail}]})
    status, out, _ = run("datasets", "append", "papers", str(tmp_path / "papers.csv"), "--languages", "fi")
    assert status == 0
    assert out.splitlines()[-1] == f"Note: {detail}."


def test_a_prediction_warns_of_texts_without_a_known_word_and_of_values_that_no_training_row_has(
    run: Run, canned: Canned
) -> None:
    instances = [PREDICTION | {"known_terms": 0}, PREDICTION | {"unknown": ["flag=[maybe]"]}]
    canned.answers.pop("POST /models/topics/predict")
    canned.answer("POST /models/topics/predict", ANSWER | {"predictions": instances})
    out = run("predict", "topics", "--instance", "{}", "--instance", "{}")[1]
    assert "knows no word in the text of 1 instance (0)" in out
    assert "No training row has 1 value of the instances: flag=[maybe] (1)" in out


def test_a_service_without_its_object_storage_is_ready(run: Run, canned: Canned) -> None:
    parts = {"database": "ok", "queue": "ok", "workers": "ok", "storage": "The object storage does not answer"}
    canned.answer("GET /healthz", {"status": "ok", "version": "1"})
    canned.answer("GET /readyz", {"ready": True, **parts})
    status, out, _ = run("ready")
    assert status == 0
    assert "The object storage does not answer" in out
    assert "The service is ready without it" in " ".join(run("ready", "--help")[1].split())


def test_an_upload_waits_until_the_dataset_is_ready(run: Run, canned: Canned, tmp_path: Path) -> None:
    (tmp_path / "papers.csv").write_text("label,text\n")
    status, out, _ = run("datasets", "upload", str(tmp_path / "papers.csv"), "--json")
    assert status == 0
    assert json.loads(out)["state"] == "ready"
    assert canned.asked[0].query == {"name": "papers", "format": "csv"}


@pytest.mark.parametrize(("given", "sent"), [("0.5", 0.5), ("auto", "auto"), ("much", "much")])
def test_an_option_takes_a_number_or_a_word(run: Run, canned: Canned, given: str, sent: float | str) -> None:
    run("train", "papers", "--model", "topics", "--columns-vector-weight", given)
    (body,) = [json.loads(asked.body) for asked in canned.asked if asked.body]
    assert body["columns"] == {"vector_weight": sent}


def test_an_upload_takes_labels_from_a_second_file(run: Run, canned: Canned, tmp_path: Path) -> None:
    for name in ("texts.csv", "labels.txt", "names.txt"):
        (tmp_path / name).write_text("a\n")
    features, labels, names = (str(tmp_path / name) for name in ("texts.csv", "labels.txt", "names.txt"))
    status, _, err = run("datasets", "upload", features, "--labels", labels, "--label-names", names)
    assert status == 0, err
    assert canned.asked[0].query == {"name": "texts", "format": "archive"}
    assert b"labels/labels.txt" in canned.asked[0].body
    status, _, err = run("datasets", "upload", features, "--labels", labels, "--format", "csv")
    assert status == 1
    assert "need a file of rows on this machine, and no format" in err


def test_an_upload_prints_its_warnings_and_which_columns_it_has_left_out(
    run: Run, canned: Canned, tmp_path: Path
) -> None:
    (tmp_path / "papers.csv").write_text("label,text,day\n")
    columns = [{"name": "text", "role": "text"}, {"name": "day", "role": "left out", "why": "dates"}]
    warnings = [{"code": "labels_alike", "detail": "1 group of labels looks alike"}]
    canned.answers.pop("GET /datasets/d1/statistics")
    canned.answer("GET /datasets/d1/statistics", STATISTICS | {"columns": columns, "warnings": warnings})
    status, out, _ = run("datasets", "upload", str(tmp_path / "papers.csv"), "--infer-columns")
    assert status == 0
    assert out.splitlines()[-2:] == ["Note: 1 group of labels looks alike.", "Note: column 'day' is left out: dates."]


def test_an_archive_is_written_and_sent(run: Run, canned: Canned, tmp_path: Path) -> None:
    file = tmp_path / "topics.npz"
    status, out, _ = run("models", "export", "topics", "--output", str(file), "--json")
    assert (status, json.loads(out)["size_bytes"], file.read_bytes()) == (0, 7, b"archive")
    status, out, _ = run("models", "import", str(file), "--name", "others")
    assert status == 0
    assert "weston_watkins" in out
    assert (canned.asked[-1].query, canned.asked[-1].body) == ({"name": "others"}, b"archive")
    canned.answers["GET /models/topics/versions/3/export"] = [(404, json.dumps(problem(404, "not_found")).encode())]
    status, _, err = run("models", "export", "topics", "--output", str(tmp_path / "none.npz"))
    assert status == 1
    assert "no" in err
    assert [path.name for path in tmp_path.iterdir()] == ["topics.npz"]
    status, _, err = run("models", "export", "topics", "--version", "3", "--output", str(tmp_path / "no" / "where.npz"))
    assert (status, err) == (1, f"Error: {tmp_path / 'no'}: there is no such folder\n")


def test_an_upload_may_name_its_columns(run: Run, canned: Canned, tmp_path: Path) -> None:
    (tmp_path / "papers.csv").write_text("topic,text,w\n")
    status, _, _ = run("datasets", "upload", str(tmp_path / "papers.csv"), "--label-column=topic", "--weight-column=w")
    assert status == 0
    assert canned.asked[0].query == {"name": "papers", "format": "csv", "label_column": "topic", "weight_column": "w"}


def test_what_is_uploaded_is_called_as_its_file_in_letters_that_names_have(
    run: Run, canned: Canned, tmp_path: Path
) -> None:
    for kind, ending in (("datasets", "csv.gz"), ("hierarchies", "json")):
        file = tmp_path / f" (1) my data, new.{ending}"
        file.write_text("{}")
        run(kind, "upload", str(file))
        assert next(each for each in canned.asked[::-1] if each.method == "POST").query["name"] == "1-my-data-new"


def test_an_address_without_its_protocol_is_said_to_be_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYMARGIN_URL", "127.0.0.1:8000")
    _, _, err = run("models", "list")
    assert err == "Error: 127.0.0.1:8000 is not the address of a service; it must begin with http:// or https://\n"


def test_an_upload_takes_lists_with_commas_and_names_with_a_comma_in_quotes(
    run: Run, canned: Canned, tmp_path: Path
) -> None:
    (tmp_path / "papers.csv").write_text("label,text,w\n")
    asked = ["--ignore-columns", 'a,"b, or c"', "--ignore-columns", "d"]
    status, _, _ = run("datasets", "upload", str(tmp_path / "papers.csv"), *asked)
    assert (status, canned.asked[0].lists["ignore_columns"]) == (0, ["a", "b, or c", "d"])
    status, _, err = run("datasets", "upload", str(tmp_path / "papers.csv"), "--ignore-columns", 'a,"b')
    assert status == 2
    assert "comma-separated names" in err


def test_an_upload_that_has_failed_says_what_to_write(run: Run, canned: Canned) -> None:
    error = problem(422, "invalid_input", "numbers that are missing are kept by missing=keep")
    canned.answers["GET /datasets/papers"].clear()
    canned.answer("GET /datasets/papers", DATASET | {"state": "failed", "error": error})
    _, _, err = run("datasets", "show", "papers")
    assert "--missing keep" in err
    _, out, _ = run("datasets", "show", "papers", "--json")
    assert "missing=keep" in out


def test_an_upload_may_say_how_its_file_is_written(run: Run, canned: Canned, tmp_path: Path) -> None:
    (tmp_path / "papers.csv.gz").write_bytes(b"x")
    how = ["--encoding=latin-1", "--no-quotes", "--text-columns=body", "--decimal=comma"]
    status, _, _ = run("datasets", "upload", str(tmp_path / "papers.csv.gz"), *how)
    assert status == 0
    said = {"encoding": "latin-1", "quotes": "false", "text_columns": "body", "decimal": "comma"}
    assert canned.asked[0].query == {"name": "papers", "format": "csv", **said}


def test_rows_are_appended_and_versions_listed(run: Run, canned: Canned, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("label,text\n")
    canned.answer("POST /datasets/papers/rows", SUCCEEDED | {"kind": "append"}, 202)
    canned.answer("GET /jobs/j1", SUCCEEDED | {"kind": "append"})
    status, _, _ = run("datasets", "append", "papers", str(tmp_path / "more.csv"), "--part=test")
    assert status == 0
    assert canned.asked[0].query == {"part": "test", "format": "csv"}
    version = {"version": 2, "sha256": "0" * 64, "n_rows": 7, "n_train": 5, "job": "j1"}
    canned.answer("GET /datasets/papers/versions", [version | {"created_at": "2025-01-02T03:04:05Z"}])
    status, out, _ = run("datasets", "versions", "papers")
    assert status == 0
    assert "2025-01-02" in out


def test_the_report_of_faulty_rows_is_printed_or_written(run: Run, canned: Canned, tmp_path: Path) -> None:
    canned.answer("GET /datasets/papers/errors", b"line,column,fault\r\n")
    assert run("datasets", "errors", "papers")[1].startswith("line,column,fault")
    canned.answer("GET /datasets/papers/errors", b"line,column,fault\r\n")
    assert run("datasets", "errors", "papers", "--output", str(tmp_path / "report.csv"))[0] == 0
    assert (tmp_path / "report.csv").read_bytes() == b"line,column,fault\r\n"


def test_parameters_are_read_as_json_and_else_as_text(run: Run, canned: Canned) -> None:
    run("train", "papers", "--model", "topics", "-p", "C=0.5", "-p", "shuffle=true", "-p", "loss=hinge", "--seed", "7")
    asked = json.loads(canned.asked[0].body)
    assert asked["params"] == {"C": 0.5, "shuffle": True, "loss": "hinge"}
    assert asked["seed"] == 7


def test_a_file_of_instances_is_sent_in_batches_and_answered_in_order(
    run: Run, canned: Canned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.predictions.commands.BATCH", 2)
    file = tmp_path / "instances.jsonl"
    file.write_text('"plain text"\n{"text": "b"}\n\n[1.0, 2.0]\n')
    status, out, _ = run("predict", "topics", "--file", str(file), "--alias", "production", "--json")
    assert status == 0
    assert len(json.loads(out)["predictions"]) == 2
    assert [len(json.loads(asked.body)["instances"]) for asked in canned.asked] == [2, 1]
    assert [asked.query for asked in canned.asked] == [{"alias": "production"}, {"version": "3"}]


def test_a_refusal_is_one_line_and_one_for_each_fault(run: Run, canned: Canned) -> None:
    errors = [{"detail": "label is empty", "row": 3, "column": "label"}, {"detail": "bad", "pointer": "/params/C"}]
    canned.answers["POST /jobs"] = [(422, json.dumps(problem(422, "invalid_input", "2 faults", errors)).encode())]
    status, out, err = run("train", "papers", "--model", "topics")
    assert status == 1
    assert out == ""
    assert err == "Error: 2 faults\n  row 3, label: label is empty\n  --param C: bad\n"


def test_a_failed_dataset_is_shown_with_its_faults(run: Run, canned: Canned) -> None:
    faults = [{"detail": "'abc' is not a number", "row": 4, "column": "x"}]
    error = problem(422, "invalid_input", "the file has 1 error", faults)
    canned.answer("GET /datasets/bad", DATASET | {"name": "bad", "state": "failed", "error": error})
    _, out, err = run("datasets", "show", "bad")
    assert "failed" in out
    assert err.splitlines() == [
        "Error: the import failed: the file has 1 error",
        "  row 4, x: 'abc' is not a number",
    ]


def test_a_role_that_is_none_is_refused_by_the_service(run: Run, canned: Canned) -> None:
    canned.answers["POST /keys"].clear()
    refusal = problem(422, "invalid_input", "the body is wrong", [{"detail": "no role", "pointer": "/role"}])
    canned.answer("POST /keys", refusal, 422)
    status, _, err = run("keys", "create", "bob", "--role", "vewer")
    assert (status, err) == (1, "Error: the body is wrong\n  --role: no role\n")
    assert json.loads(canned.asked[-1].body) == {"name": "bob", "role": "vewer"}


def test_a_file_that_cannot_be_written_is_named_in_one_line(run: Run, canned: Canned, tmp_path: Path) -> None:
    canned.answer("GET /datasets/bad/errors", b"line,column,fault\n")
    file = tmp_path / "nowhere" / "faults.csv"
    status, _, err = run("datasets", "errors", "bad", "--output", str(file))
    assert (status, err) == (1, f"Error: {file}: No such file or directory\n")


def test_the_audit_log_tells_what_a_rule_has_found(run: Run, canned: Canned, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    after = {"outcome": "promoted", "accuracy": 0.9, "p_value": 0.75, "reason": None}
    canned.answers["GET /audit"].clear()
    canned.answer("GET /audit", {"items": [ENTRY | {"what": "rule_run", "before": None, "after": after}]})
    assert "outcome: promoted, accuracy: 0.9, p_value: 0.75" in run("audit")[1]


def test_a_refusal_in_json_has_the_faults_too(run: Run) -> None:
    status, out, _ = run("jobs", "show", "nothing", "--json")
    assert status == 1
    assert json.loads(out)["error"]["code"] == "not_found"


def test_a_failed_job_that_is_watched_ends_with_status_1(run: Run, canned: Canned) -> None:
    failed = JOB | {"state": "failed", "error": problem(500, "worker_lost", "3 workers were lost")}
    canned.answers["GET /jobs/j1"] = [(200, json.dumps(failed).encode())]
    status, _, err = run("jobs", "watch", "j1")
    assert status == 1
    assert "3 workers were lost" in err


def test_help_cuts_off_no_name_and_no_sentence_where_lines_are_short(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    options = run("train", "--help")[1]
    assert "--time-limit-seconds" in options
    assert "--columns-min-level-rows" in options
    for group in ((), ("datasets",), ("rules",)):
        commands = run(*group, "--help")[1].partition("Commands:")[2]
        assert commands
        assert "..." not in commands


@pytest.mark.parametrize(
    "arguments",
    [("train",), ("predict", "topics"), ("train", "d", "--model", "m", "-p", "C"), ("nonsense",)],
)
def test_wrong_usage_ends_with_status_2(run: Run, arguments: tuple[str, ...]) -> None:
    status, out, err = run(*arguments)
    assert status == 2
    assert out == ""
    assert err


def test_help_does_not_load_the_service() -> None:
    script = "import sys; sys.argv[1:] = ['--help']\nfrom app.cli import main\ntry: main()\nexcept SystemExit: pass\n"
    script += "assert not {'numpy', 'sqlalchemy', 'celery'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert "datasets" in done.stdout


def test_a_path_of_cs_is_sent_as_numbers_and_every_version_is_reported(run: Run, canned: Canned) -> None:
    result = {"model": "topics", "version": 3, "versions": [2, 3]}
    canned.answers["GET /jobs/j1"].clear()
    canned.answer("GET /jobs/j1", SUCCEEDED | {"result": result})
    canned.answer("GET /models/topics/versions/2", VERSION | {"version": 2, "params": {"C": 0.125}})
    status, out, _ = run("train", "papers", "--model", "topics", "--path", "0.125,1,1e2", "--watch")
    assert status == 0
    assert json.loads(canned.asked[0].body)["path"] == [0.125, 1.0, 100.0]
    assert "0.125" in out
    assert "topics version 2, 3" in out
    status, _, err = run("train", "papers", "--model", "topics", "--path", "1,x")
    assert status == 2
    assert "--path" in err


@pytest.mark.parametrize("arguments", [["train", "papers", "--model", "topics"], ["datasets", "preview", "papers"]])
def test_words_of_a_recipe_are_sent_as_texts_and_lengths_as_numbers(
    arguments: list[str], run: Run, canned: Canned
) -> None:
    canned.answer(
        "POST /datasets/papers/preview", {"row": 0, "n_values": 0, "n_features": 1, "n_fitted": 1, "features": []}
    )
    row = {"row": 0, "label": None, "split": None}
    canned.answer("GET /datasets/papers/rows", {"rows": [row], "n_rows": 1})
    recipe = ["--text-stop-words", "the, 3", "--text-lemmas", "en,de", "--text-char-ngrams", "3,5"]
    assert run(*arguments, *recipe)[0] == 0
    sent = json.loads(canned.asked[0].body)["text"]
    assert sent == {"stop_words": ["the", "3"], "lemmas": ["en", "de"], "char_ngrams": [3, 5]}


@pytest.mark.parametrize(("given", "sent"), [("de", "de"), ("auto", "auto"), ("the,", ["the"]), ("a, b", ["a", "b"])])
def test_a_single_word_names_the_language_of_stop_words(given: str, sent: object, run: Run, canned: Canned) -> None:
    assert run("train", "papers", "--model", "topics", "--text-stop-words", given)[0] == 0
    assert json.loads(canned.asked[0].body)["text"] == {"stop_words": sent}


@pytest.mark.parametrize(("pools", "starts"), [(0, False), (1, True), (2, True)])
def test_a_plan_says_whether_the_job_can_start(pools: int, starts: bool, run: Run, canned: Canned) -> None:
    canned.answers["POST /jobs/plan"].clear()
    canned.answer("POST /jobs/plan", PLAN | {"pools": pools})
    _, out, _ = run("train", "papers", "--model", "topics", "--shards", "1", "--plan")
    assert ("cannot start" in out) is not starts


@pytest.mark.parametrize(
    ("earlier", "said"),
    [
        (None, "no estimate: no earlier job to go by"),
        ({"n_jobs": 1, "seconds": {"least": 28.0, "most": 28.0}}, "28.0 s (1 earlier job)"),
    ],
)
def test_a_plan_says_how_long_the_job_may_take_or_that_nothing_is_known(
    earlier: object, said: str, run: Run, canned: Canned
) -> None:
    canned.answers["POST /jobs/plan"].clear()
    canned.answer("POST /jobs/plan", PLAN | {"earlier": earlier})
    assert said in run("train", "papers", "--plan")[1]


def test_a_preview_shows_the_row_with_its_label(run: Run, canned: Canned) -> None:
    canned.answer(
        "POST /datasets/papers/preview", {"row": 7, "n_values": 0, "n_features": 1, "n_fitted": 1, "features": []}
    )
    row = {"row": 7, "label": "craft", "split": None, "text": "How to [weave]"}
    canned.answer("GET /datasets/papers/rows", {"rows": [row], "n_rows": 9})
    _, out, _ = run("datasets", "preview", "papers", "7")
    assert "row 7, craft" in out
    assert "How to [weave]" in out
    assert canned.asked[-1].query == {"offset": "7", "limit": "1"}


def test_what_is_watched_ends_with_its_state(run: Run, canned: Canned) -> None:
    _, out, err = run("jobs", "watch", "j1")
    assert "train succeeded" in out + err  # without a terminal, a line for each phase
    canned.answers["GET /jobs/j1/events"].clear()
    canned.answer("GET /jobs/j1/events", f"event: state\ndata: {json.dumps(SUCCEEDED)}\n\n".encode())
    _, out, err = run("jobs", "watch", "j1")
    assert "train succeeded" in out + err


@pytest.mark.parametrize("enabled", [True, False])
def test_a_rule_that_is_off_has_no_next_time(enabled: bool, run: Run, canned: Canned) -> None:
    canned.answer("GET /rules/nightly", RULE | {"enabled": enabled})
    status, out, _ = run("rules", "show", "nightly")
    assert status == 0
    assert ("2025-01-03 02:30" in out) is enabled


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # as the script asks that --install-completion puts into the shell
    monkeypatch.setattr(sys, "argv", ["polymargin"])
    asked = {
        "_POLYMARGIN_COMPLETE": f"complete_{shell}", "COMP_WORDS": "polymargin hier", "COMP_CWORD": "1",
        "_TYPER_COMPLETE_ARGS": "polymargin hier", "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }  # fmt: skip
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        main()
    assert "hierarchies" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("seconds", "shown"), [(75.4, "about 75 s"), (600, "about 10 min"), (10_595, "about 2 h 57 min")]
)
def test_the_time_left_is_told_in_words(seconds: float, shown: str, run: Run, canned: Canned) -> None:
    progress = {"phase": "training", "epoch": 3, "fraction": 0.5, "eta_seconds": seconds}
    canned.answers["GET /jobs/j1"].clear()
    canned.answer("GET /jobs/j1", JOB | {"state": "running", "progress": progress})
    assert f"{shown} left" in run("jobs", "show", "j1")[1]


def test_an_alias_is_moved_unless_a_revision_is_given_that_it_has_no_more(run: Run, canned: Canned) -> None:
    moved = {"name": "production", "version": 2, "revision": 2}
    for answer in (
        (problem(412, "precondition_failed"), 412),
        (moved, 200),
        (problem(412, "precondition_failed"), 412),
    ):
        canned.answer("PUT /models/topics/aliases/production", *answer)
    assert run("models", "alias", "topics", "production", "2")[0] == 0
    assert [each.headers.get("if-match") for each in canned.asked if each.method == "PUT"] == [None, '"1"']
    assert run("models", "alias", "topics", "production", "2", "--revision", "7")[0] == 1


def test_an_alias_of_a_version_that_has_not_converged_says_so(run: Run, canned: Canned) -> None:
    moved = {"name": "production", "version": 2, "revision": 2, "unconverged": "training ended after 9 epochs"}
    canned.answer("PUT /models/topics/aliases/production", moved)
    code, _, err = run("models", "alias", "topics", "production", "2")
    assert code == 0
    assert "has not converged: training ended after 9 epochs" in err


def test_a_job_that_has_not_converged_says_so_in_the_list(
    run: Run, canned: Canned, monkeypatch: pytest.MonkeyPatch
) -> None:
    canned.answers["GET /jobs"].clear()
    result = {"model": "m", "version": 1, "unconverged": "training ended after 9 epochs"}
    canned.answer("GET /jobs", {"items": [SUCCEEDED | {"result": result}]})
    monkeypatch.delenv("COLUMNS", raising=False)
    assert "succeeded, not converged" in run("jobs", "list")[1]


@pytest.mark.parametrize("columns", [None, "80"])
def test_an_id_is_never_broken_nor_a_line_of_a_pipe(
    columns: str | None, run: Run, canned: Canned, monkeypatch: pytest.MonkeyPatch
) -> None:
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    canned.answers["GET /jobs"].clear()
    canned.answer("GET /jobs", {"items": [SUCCEEDED | {"id": 32 * "f", "result": {"model": 90 * "m", "version": 1}}]})
    out = run("jobs", "list")[1]
    assert 32 * "f" in out
    assert (len(out.splitlines()) == 2) is (columns is None)


def test_the_version_is_an_option_and_a_command(run: Run) -> None:
    assert run("--version")[:2] == run("version")[:2]
