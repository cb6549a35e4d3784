"""The commands of tunings, against canned answers."""

import json
from pathlib import Path
from typing import Any

import pytest
from canned import JOB, Canned, problem, status_of

from app.client import Client

TUNE = JOB | {"kind": "tune", "request": {"measure": "macro_f1", "texts": None}}
TRIAL: dict[str, Any] = {
    "number": 3, "rung": 0, "job": "t3", "state": "succeeded", "rank": 1, "solver": "softmax",
    "params": {"C": 1, "bias": 1},
    "text": None, "seed": 0, "max_epochs": None, "value": 0.75, "by_fold": [0.75], "measures": {"macro_f1": 0.75},
    "dataset_sha256": "0", "held_out": None, "seconds": 1.25, "epochs": 4, "gap": 0.001, "converged": True,
    "stopped": False, "attempt": 1, "worker": "w", "error": None, "started_at": None, "finished_at": None,
}  # fmt: skip
FAILED = TRIAL | {
    "number": 1, "state": "failed", "rank": None, "params": {"C": -1, "bias": 1}, "value": None, "seconds": None,
    "error": {"type": "t", "title": "t", "status": 422, "code": "invalid_input", "detail": "C is below 0"},
}  # fmt: skip


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: str, columns: int = 200) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert status_of(monkeypatch, *arguments) == 0


def test_options_become_a_space(canned: Canned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    canned.answer("POST /jobs", TUNE)
    file = tmp_path / "space.json"
    file.write_text('{"solver": "spoc"}')
    _run(
        monkeypatch, "tune", "d", "--model", "m", "--solver", "softmax", "--solver", "one_vs_rest", "-p", "bias=1",
        "-g", "loss=hinge,squared_hinge", "--range", "C=0.01..10:log", "--draws", "5", "--text", '{"ngram_max": 2}',
        "--space", str(file), "--measure", "log_loss", "--budget-seconds", "60", "--json",
    )  # fmt: skip
    body = json.loads(canned.asked[-1].body)
    varied = {
        "params": {"bias": 1},
        "grid": {"loss": ["hinge", "squared_hinge"]},
        "ranges": {"C": {"low": 0.01, "high": 10.0, "log": True}},
    }
    assert body == {
        "kind": "tune", "dataset": "d", "model": "m", "draws": 5, "measure": "log_loss", "budget_seconds": 60.0,
        "space": [{"solver": "spoc"}, {"solver": "softmax", **varied}, {"solver": "one_vs_rest", **varied}],
        "texts": [{"ngram_max": 2}],
    }  # fmt: skip


def test_what_is_wrong_with_an_option_is_told_once(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = [{"detail": "there is no such parameter", "pointer": f"/space/0/grid/D/{at}"} for at in range(2)]
    canned.answer("POST /jobs", problem(422, "invalid_input", errors=faults), 422)
    status_of(monkeypatch, "tune", "d", "--model", "m", "--solver", "softmax", "--grid", "D=0.1,1", "--json")
    said = capsys.readouterr()
    assert said.err == "Error: no\n  --grid D: there is no such parameter\n"
    assert len(json.loads(said.out)["error"]["errors"]) == 2


def test_a_leaderboard_shows_what_tells_trials_apart(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    canned.answer("GET /jobs/j1", TUNE)
    canned.answer("GET /jobs/j1/trials", {"items": [TRIAL, FAILED], "next_page_token": "more"})
    _run(monkeypatch, "jobs", "trials", "j1")
    shown = capsys.readouterr().out
    assert "All by softmax with bias=1" in shown
    assert "C=1" in shown
    assert "0.7500" in shown
    assert "failed: C is below 0" in shown
    assert "--page-token more" in shown


def test_the_client_reads_trials(canned: Canned) -> None:
    canned.answer("GET /jobs/j1", TUNE)
    canned.answer("GET /jobs/j1/trials", {"items": [TRIAL], "next_page_token": None})
    with Client() as client:
        assert client.jobs.get("j1").trials().items[0].gap == 0.001


def test_what_was_tried_is_told_in_whole_words_at_the_width_of_a_terminal(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measures = dict.fromkeys(["accuracy", "top_5", "macro_f1", "ndcg"], 0.123456789)
    measures |= {"log_loss": 12.3456789, "seconds": 123.456789, "epochs": 12, "rows": 123_456}
    params = {"bias": 1.0, "C": 0.03}
    trial = {"solver": "crammer_singer", "params": params, "measures": measures}
    member = {"solver": "complement_naive_bayes", "params": {}, "coefficient": 1.23456789, "gap": None}
    left = {"solver": "hierarchical_rls", "params": {"C": 1.0}, "reason": "memory ran out"}
    canned.answer(
        "GET /models/topics/versions/3/selection", {"trials": [trial], "members": [member], "left_out": [left]}
    )
    _run(monkeypatch, "models", "trials", "topics", "--version", "3", columns=80)
    shown = capsys.readouterr().out
    assert {"hierarchical_rls", "memory"} <= set(shown.split())
    assert {"tried", "accuracy", "macro_f1", "log_loss", "seconds", "crammer_singer", "C=0.03"} <= set(shown.split())
    assert {"0.1235", "12.35", "123.5", "complement_naive_bayes", "1.23457"} <= set(shown.split())
    assert max(map(len, shown.splitlines())) <= 80
