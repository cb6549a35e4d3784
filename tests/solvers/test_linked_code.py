"""Functions that only compiled code calls have no machine code until Python calls them, and answer as all others do."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import njit

from solvers.compilation import linked_code
from solvers.compilation.linked_code import LinkedLibrary

TWO_FILES = """from numba import njit


@njit(cache=True)
def inverse(x):
    if x == 0:
        raise ValueError("nothing divides by", x)
    return 1 / x


@njit(cache=True)
def outer(x):
    return inverse(x) + 1
"""
OTHER = """

@njit(cache=True)
def other(x):
    return inverse(x) + 2
"""
ASK = """
try:
    outer(0)
except ValueError as error:
    print(error.args, outer(2), hits(outer), len(inverse.overloads))
"""


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions of this file are taken for the package's own."""
    monkeypatch.setattr(linked_code, "_OWN", str(Path(__file__).parent))


def run(folder: Path, code: str) -> str:
    """What a process of its own prints, with the functions of a folder and a cache that is kept there."""
    own = f"from solvers.compilation import linked_code; linked_code._OWN = {str(folder)!r}"
    begin = f"import sys; sys.path.insert(0, {str(folder)!r}); {own}; from functions import *"
    hits = "hits = lambda function: sum(function.stats.cache_hits.values())"
    done = subprocess.run(
        [sys.executable, "-c", "\n".join([begin, hits, code])], cwd=Path(__file__).parents[2],
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def made():
    """Two compiled functions: one that the other calls."""

    @njit
    def inner(x, start=1):
        total = np.zeros(3) + start
        for i in range(3):
            total[i] += x
        return total.sum()

    @njit
    def outer(x):
        return inner(x) + inner(x, 2)

    return inner, outer


def library(function, number=0):
    return list(function.overloads.values())[number].library


@pytest.mark.usefixtures("own")
def test_a_function_that_compiled_code_calls_has_no_machine_code():
    inner, outer = made()
    assert outer(1.0) == 15.0
    assert not isinstance(library(outer), LinkedLibrary)
    for number in range(2):
        called = library(inner, number)
        assert isinstance(called, LinkedLibrary)
        assert "wrapper" not in " ".join(function.name for function in called.get_defined_functions())


@pytest.mark.slow
@pytest.mark.usefixtures("own")
def test_it_is_compiled_anew_when_python_calls_it():
    inner, outer = made()
    assert outer(1.0) == 15.0
    assert [inner(1.0), inner(1.0, 2), inner(1)] == [6.0, 9.0, 6.0]
    linked = [
        types for number, types in enumerate(inner.overloads) if isinstance(library(inner, number), LinkedLibrary)
    ]
    assert [str(types[1]) for types in linked] == ["Literal[int](2)"]  # which no call from Python asks for
    assert outer(2.0) == 21.0
    assert outer(2) == 21.0


@pytest.mark.slow
@pytest.mark.usefixtures("own")
def test_one_that_python_has_called_before_is_linked_as_it_is():
    inner, outer = made()
    assert inner(1.0) == 6.0
    before = library(inner)
    assert outer(1.0) == 15.0
    assert library(inner) is before


@pytest.mark.slow
def test_functions_of_others_are_compiled_as_ever():
    inner, outer = made()
    assert outer(1.0) == 15.0
    assert not any(isinstance(each.library, LinkedLibrary) for each in inner.overloads.values())


def test_the_installed_numba_is_known():
    assert numba.__version__.startswith(linked_code.KNOWN_NUMBA)
    assert linked_code.Dispatcher.compile is not linked_code._plain_compile


@pytest.mark.slow
def test_its_errors_arrive_from_a_stored_caller_too(tmp_path: Path):
    (tmp_path / "functions.py").write_text(TWO_FILES)
    assert [run(tmp_path, ASK) for _ in range(2)] == [
        "('nothing divides by', 0) 1.5 0 1",
        "('nothing divides by', 0) 1.5 1 0",
    ]


@pytest.mark.slow
def test_it_is_kept_on_the_disk_for_callers_and_not_for_python(tmp_path: Path):
    (tmp_path / "functions.py").write_text(TWO_FILES + OTHER)
    asked = [
        "outer(2), hits(inverse)",
        "other(2), hits(inverse)",
        "inverse(2), hits(inverse)",
        "inverse(2), hits(inverse)",
    ]
    assert [run(tmp_path, f"print({ask})") for ask in asked] == ["1.5 0", "2.5 1", "0.5 0", "0.5 1"]
