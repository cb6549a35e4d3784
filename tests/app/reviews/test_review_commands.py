"""``reviews decide`` and the client's method send one label, a set of them, the empty set, or a skip."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from canned import Canned

ROW = {
    "row": 7, "id": None, "text": "kneading dough", "record": None, "sure": None, "state": "decided", "label": None,
    "labels": ["baking", "soup"], "revision": 2, "claimed_by": None, "claimed_until": None, "job": None, "opinions": [],
    "alternatives": [
        {"label": "baking", "name": None, "probability": 0.9, "predicted": True},
        {"label": "pottery", "name": "Töpfern", "probability": 0.6, "predicted": True},
        {"label": "soup", "name": None, "probability": 0.2, "predicted": False},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        (["baking"], {"label": "baking", "skip": False}),
        (["baking", "soup"], {"labels": ["baking", "soup"], "skip": False}),
        (["--label", "baking", "--label", "soup"], {"labels": ["baking", "soup"], "skip": False}),
        (["jam", "--new-labels"], {"label": "jam", "skip": False, "new_labels": True}),
        (["--empty"], {"labels": [], "skip": False}),
        (["--skip"], {"skip": True}),
        ([], None),
        (["baking", "--skip"], None),
    ],
)
def test_a_decision_is_sent_as_it_is_meant(
    arguments: list[str],
    sent: Any,
    canned: Canned,
    monkeypatch: pytest.MonkeyPatch,
    command: Callable[..., tuple[int, str, str]],
) -> None:
    canned.answer("PUT /reviews/records/decisions/7", ROW)
    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = command("reviews", "decide", "records", "7", *arguments)
    if sent is None:
        assert status == 2
        assert canned.asked == []
        return
    assert status == 0
    assert [json.loads(each.body) for each in canned.asked] == [sent]
    assert "baking; soup" in out
    assert "+baking 90%; +pottery (Töpfern) 60%; soup 20%" in out


@pytest.mark.parametrize(
    ("file", "options", "ending"),
    [
        ("r.csv", [], ".xlsx or .json or .xml"),
        ("r", [], ".xlsx"),
        ("r.xlsx", ["--format", "label-studio"], ".json"),
        ("r.json", ["--format", "xlsx"], ".xlsx"),
    ],
)
def test_a_file_whose_name_says_another_format_is_refused(
    file: str, options: list[str], ending: str, canned: Canned, command: Callable[..., tuple[int, str, str]]
) -> None:
    status, _, error = command("reviews", "export", "records", file, *options)
    assert (status, canned.asked) == (1, [])
    assert f"must end in {ending}" in " ".join(error.replace("│", " ").split())


def test_the_ending_of_a_file_says_its_format(
    canned: Canned, command: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    canned.answer("GET /reviews/records/sheet", b"...")
    for name, format in (("r.xlsx", "xlsx"), ("r.JSON", "label-studio"), ("r.xml", "label-studio-config")):
        assert command("reviews", "export", "records", str(tmp_path / name))[0] == 0
        assert canned.asked[-1].query["format"] == format


def test_options_of_a_few_numbers_are_sent_as_numbers(
    canned: Canned, command: Callable[..., tuple[int, str, str]]
) -> None:
    assert command("reviews", "create", "two", "j", "--opinions", "2")[0] != 2
    assert json.loads(canned.asked[0].body)["opinions"] == 2


def test_a_queue_of_a_level_says_that_its_precision_is_not_measured(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, command: Callable[..., tuple[int, str, str]]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    queue = {"id": "r", "name": "august", "owner": None, "job": "p1", "model": "m", "version": 1, "dataset": "d9"}
    queue |= {"dataset_version": 1, "sure_share": 0.1, "seed": 0, "opinions": 1, "created_at": "2026-01-02T03:04:05Z"}
    queue |= {"n_rows": 7, "states": {"open": 7}, "people": [], "agreement": None, "sure_level": 2}
    canned.answer("GET /reviews/august", queue | {"promised_precision": None, "measured_precision": None})
    status, out, _ = command("reviews", "show", "august")
    assert status == 0
    assert "not measured for sure nodes at level 2" in out
