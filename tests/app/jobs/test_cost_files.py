"""Files of costs, and the training command that takes one."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from canned import DATASET, JOB, Canned, problem, status_of

from app.jobs.cost_options import read_costs

GOOD = "label,answer,cost\na,b,9.5\nb,a,0\n"


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "costs.csv"
        path.write_text(text)
        return path

    return write


def test_a_table_is_read_with_the_lines_of_its_labels(file: Callable[[str], Path]) -> None:
    found = read_costs(file('\ufeffcost,Label,answer\r\n2,"a, b",c\r\n\r\n1.5,c,"a, b"\r\n'))
    assert found.table == {"a, b": {"c": 2.0}, "c": {"a, b": 1.5}}
    assert found.place("costs name 1 label that no training row has: 'a, b'").startswith("line 2: costs name")
    assert found.place("another fault") == "another fault"


@pytest.mark.parametrize(
    ("delimiter", "number"), [(",", "9.5"), (";", "9.5"), (";", "9,5"), ("\t", "9.5"), ("\t", "9,5")]
)
def test_the_delimiter_is_found_as_that_of_datasets(file: Callable[[str], Path], delimiter: str, number: str) -> None:
    rows = [("label", "answer", "cost"), ("a", "b", number), ("b", "a", "0")]
    found = read_costs(file("".join(delimiter.join(row) + "\n" for row in rows)))
    assert found.table == {"a": {"b": 9.5}, "b": {"a": 0.0}}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("label,cost\na,1\n", "line 1: expected the header"),
        ("", "line 1: expected the header"),
        ("label,answer,cost\n", "the file has no costs"),
        (GOOD + "a,b,1\n", "line 4: the cost of 'b' for 'a' is given twice"),
        (GOOD + "c,c,1\n", "line 4: the right answer 'c' costs nothing"),
        (GOOD + "c,a\n", "line 4: expected 3 cells, got 2"),
        (GOOD + "c,a,-1\n", "line 4: expected a number of at least 0, got '-1'"),
        (GOOD + "c,a,much\n", "line 4: expected a number"),
        (GOOD + "c,a,inf\n", "line 4: expected a number"),
    ],
)
def test_a_fault_names_its_line(file: Callable[[str], Path], text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        read_costs(file(text))


def test_train_sends_the_table_of_a_file(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, file: Callable[[str], Path]
) -> None:
    canned.answer("GET /datasets/papers", DATASET)
    canned.answer("POST /jobs", JOB, 202)
    given = ("train", "papers", "--model", "m", "--solver", "crammer_singer", "--param", "C=2")
    assert status_of(monkeypatch, *given, "--costs", str(file(GOOD)), "--other-cost", "3") == 0
    asked = json.loads(canned.asked[-1].body)
    assert asked["params"] == {"C": 2, "costs": {"a": {"b": 9.5}, "b": {"a": 0.0}}, "other_cost": 3.0}
    assert status_of(monkeypatch, *given, "--costs", "tree") == 0
    assert json.loads(canned.asked[-1].body)["params"] == {"C": 2, "costs": "tree"}


def test_tune_sends_the_table_beside_the_space(
    canned: Canned, monkeypatch: pytest.MonkeyPatch, file: Callable[[str], Path]
) -> None:
    canned.answer("POST /jobs", JOB, 202)
    given = ("tune", "papers", "--model", "m", "--solver", "softmax", "--costs", str(file(GOOD)), "--other-cost", "3")
    assert status_of(monkeypatch, *given) == 0
    asked = json.loads(canned.asked[-1].body)
    assert (asked["costs"], asked["other_cost"]) == ({"a": {"b": 9.5}, "b": {"a": 0.0}}, 3.0)
    assert asked["space"] == [{"solver": "softmax"}]


def test_a_label_that_the_service_does_not_know_comes_with_its_line(
    canned: Canned,
    monkeypatch: pytest.MonkeyPatch,
    file: Callable[[str], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    detail = "costs name 1 label that no training row has: 'b'"
    canned.answer("GET /datasets/papers", DATASET)
    fault = problem(422, "invalid_input", errors=[{"pointer": "/params/costs", "detail": detail}])
    canned.answer("POST /jobs", fault, 422)
    given = ("train", "papers", "--model", "m", "--solver", "crammer_singer", "--costs", str(file(GOOD)))
    assert status_of(monkeypatch, *given) == 1
    said = capsys.readouterr().err.splitlines()
    assert [line.strip() for line in said if "line 2" in line] == [f"--costs: line 2: {detail}"]


def test_a_faulty_file_is_refused_before_anything_is_asked(
    canned: Canned,
    monkeypatch: pytest.MonkeyPatch,
    file: Callable[[str], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert status_of(monkeypatch, "train", "papers", "--costs", str(file(GOOD + "a,b,1\n"))) == 2
    assert "line 4" in capsys.readouterr().err
    assert canned.asked == []
