import sys
from pathlib import Path

import pytest

from app.formats import csv_cells, decimals, svmlight_lines
from app.operation import compile_ahead, warm
from solvers.registry import SOLVERS


def test_loops_are_compiled_once_for_the_same_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = compile_ahead.compiler(tmp_path)
    assert child is not None
    assert child.once
    assert list(child.command[-7:-3]) == [sys.executable, "-P", "-m", "app.operation.warm"]
    # the defaults of one method, whose loops other tests call, too
    monkeypatch.setattr(warm, "SOLVERS", {"weston_watkins": SOLVERS["weston_watkins"]})
    monkeypatch.setattr(warm, "PRECISE", {})
    monkeypatch.setattr(warm, "options", lambda kind: [{}])
    warm.main(Path(child.command[-2]), child.command[-1])
    assert compile_ahead.compiler(tmp_path) is None
    monkeypatch.setattr(compile_ahead, "version", lambda name: "0.0")
    assert compile_ahead.compiler(tmp_path) is not None


def test_the_default_of_a_training_is_compiled_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Asked(Exception):
        pass

    class First:
        class Params:
            pass

        def __init__(self, params: object) -> None:
            raise Asked

    monkeypatch.setattr(warm, "SOLVERS", {"another": object, warm.FIRST: First})
    with pytest.raises(Asked):
        warm.main()
    assert warm.FIRST in SOLVERS


def test_the_loops_that_read_files_are_compiled_with_the_others() -> None:
    warm.read()
    loops = (csv_cells.split_records, csv_cells.read_numbers, csv_cells.read_texts, svmlight_lines._scan)
    assert all(loop.signatures for loop in (*loops, decimals._read_decimals))
