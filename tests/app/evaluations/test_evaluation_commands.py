"""The commands and client methods of evaluations, against canned answers."""

import json
from collections.abc import Callable

import pytest
from canned import JOB, Canned

from app.client import Client
from app.evaluations.schemas import Comparison

EVALUATION = {
    "id": "e1",
    "model": "topics",
    "version": 3,
    "version_sha256": "0" * 64,
    "dataset": "d1",
    "dataset_sha256": "0" * 64,
    "hierarchy_sha256": None,
    "part": "test",
    "n_rows": 90,
    "n_labels": 4,
    "unknown_rows": 2,
    "unknown_labels": 1,
    "unknown_named": ["odd"],
    "resamples": 1000,
    "confidence": 0.95,
    "seed": 0,
    "propensities": None,
    "rows_sha256": "0" * 64,
    "code_version": "0",
    "created_at": "2025-01-02T03:04:05Z",
    "measures": [
        {"name": "error", "level": 0, "value": 0.125, "low": 0.0625, "high": 0.25},
        {"name": "mrr", "level": 1, "value": 0.75, "low": None, "high": None},
    ],
}
LABELS = {
    "labels": [
        {
            "label": "physics",
            "level": 1,
            "known": True,
            "support": 8,
            "named": 4,
            "precision": 0.5,
            "recall": 0.25,
            "f1": 0.375,
        }
    ],
    "n_labels": 1,
}
PAIRS = {
    "pairs": [{"level": 0, "true": "physics", "predicted": "chemistry", "n_rows": 17}],
    "labels": [
        {"label": "physics", "support": 40, "right": 20},
        {"label": "chemistry", "support": 30, "right": 28},
    ],
}
SIDE = {
    "evaluation": "e1",
    "model": "topics",
    "version": 3,
    "version_sha256": "0" * 64,
    "size_bytes": 2048,
    "solver": "auto",
    "params": {"C": 1.0},
    "request": {"kind": "train", "dataset": "d1", "dataset_version": 1, "text": {"lemmas": "fi", "min_rows": 1}},
}
CHANGED = SIDE["request"] | {"kind": "tune", "dataset_version": 2, "unlabelled": "d2"}  # type: ignore[operator]
CHANGED["text"] = {"lemmas": "sv", "min_rows": 1}
COMPARISON = {
    "a": SIDE,
    "b": SIDE | {"version": 4, "evaluation": "e2", "params": {"C": 0.25}, "request": CHANGED},
    "dataset": "d1",
    "dataset_sha256": "0" * 64,
    "part": "test",
    "n_rows": 90,
    "mcnemar": {"only_a": 3, "only_b": 12, "exact": 0.0352, "mid_p": 0.0213},
    "measures": [
        {
            "name": "mrr",
            "n_rows": 90,
            "a": 0.75,
            "b": 0.875,
            "difference": -0.125,
            "low": -0.1875,
            "high": -0.0625,
            "p_value": 0.0002,
        }
    ],
    "labels": [{"label": "odd", "level": 0, "support": 9, "f1_a": 0.5, "f1_b": 0.875, "difference": -0.375}],
    "resamples": 10000,
    "confidence": 0.95,
    "seed": 0,
}
EVALUATE = JOB | {"id": "e1", "kind": "evaluate"}
DONE = EVALUATE | {"state": "succeeded", "result": {"model": "topics", "version": 3, "evaluation": "e1"}}

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(canned: Canned, command: Run) -> Run:
    """Run a command against canned answers."""
    canned.answer("POST /jobs", EVALUATE)
    canned.answer("GET /jobs/e1", DONE)
    canned.answer("GET /jobs/e1/events", f"event: state\ndata: {json.dumps(DONE)}\n\n".encode())
    canned.answer("GET /evaluations", {"items": [EVALUATION]})
    canned.answer("GET /evaluations/e1", EVALUATION)
    canned.answer("GET /evaluations/e1/labels", LABELS)
    canned.answer("GET /evaluations/e1/confusions", PAIRS)
    canned.answer("GET /models/topics/compare", COMPARISON)
    return command


COMMANDS = [
    (("evaluate", "topics", "papers"), "evaluate", EVALUATE),
    (("evaluate", "topics", "papers", "--alias", "production", "--watch"), "0.0625 to 0.25", EVALUATION),
    (("compare", "topics", "3", "production"), ("0.0213", "-0.188 to -0.0625", "-0.375", "0.25"), COMPARISON),
    (("evaluations", "list", "--model", "topics"), "0.125", {"items": [EVALUATION]}),
    (("evaluations", "show", "e1"), "1, such as odd", EVALUATION),
    (("evaluations", "labels", "e1"), "physics", LABELS),
    (("evaluations", "confusions", "e1"), "chemistry", PAIRS),
    (("jobs", "show", "e1"), "evaluations show e1", DONE),
]


@pytest.mark.parametrize(("arguments", "shown", "document"), COMMANDS)
def test_every_command_speaks_to_people_and_to_programs(
    run: Run, arguments: tuple[str, ...], shown: str | tuple[str, ...], document: dict[str, object]
) -> None:
    status, out, _ = run(*arguments)
    assert status == 0
    assert [each for each in ([shown] if isinstance(shown, str) else shown) if each not in out] == []
    status, out, _ = run(*arguments, "--json")
    assert (status, out.count("\n")) == (0, 1)
    assert json.loads(out).keys() >= document.keys()


def test_what_is_asked_for_is_sent(run: Run, canned: Canned) -> None:
    run("evaluate", "topics", "papers", "--version", "3", "--part", "all", "--resamples", "50", "--seed", "7")
    asked = json.loads(canned.asked[0].body)
    assert (asked["kind"], asked["model"], asked["dataset"]) == ("evaluate", "topics", "papers")
    assert {name: asked[name] for name in ("version", "part", "resamples", "seed")} == {
        "version": 3, "part": "all", "resamples": 50, "seed": 7
    }  # fmt: skip
    run("compare", "topics", "3", "best", "--other", "deep", "--dataset", "papers", "--part", "test")
    assert canned.asked[-1].query == {
        "a": "3", "b": "best", "other": "deep", "dataset": "papers", "part": "test", "confidence": "0.95", "seed": "0"
    }  # fmt: skip


def test_measures_that_are_left_out_of_a_comparison_are_named(run: Run, canned: Canned) -> None:
    assert "Not compared" not in run("compare", "topics", "3", "4")[1]
    canned.answers.pop("GET /models/topics/compare")
    canned.answer("GET /models/topics/compare", COMPARISON | {"left_out": ["mrr", "h_subtree"]})
    shown = " ".join(run("compare", "topics", "3", "4")[1].split())
    assert "Not compared, because the label tree has other nodes for one version: mrr, h_subtree" in shown


def test_the_client_gives_what_the_commands_show(run: Run) -> None:
    with Client() as client:
        job = client.evaluate("topics", "papers", part="test").wait()
        assert job.result is not None
        assert job.result.evaluation == "e1"
        assert client.evaluations.get("e1").measures[0].value == 0.125
        assert client.evaluations.list(model="topics", version=3).items[0].id == "e1"
        assert client.evaluations.labels("e1", order="-support").labels[0].f1 == 0.375
        assert client.evaluations.confusions("e1", level=0).pairs[0].n_rows == 17
        assert client.compare("topics", 3, 4).mcnemar.only_b == 12


def test_all_settings_of_the_two_requests_that_differ_are_listed() -> None:
    assert Comparison.model_validate(COMPARISON).differing == [
        ("C", 1.0, 0.25),
        ("dataset_version", 1, 2),
        ("text.lemmas", "fi", "sv"),
        ("unlabelled", None, "d2"),
    ]
