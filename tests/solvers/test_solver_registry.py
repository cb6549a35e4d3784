"""Finding methods and checking their parameters."""

import pkgutil
from typing import Any

import pytest

from solvers import methods
from solvers.core.base import ParamsError
from solvers.registry import SOLVERS, UnknownSolverError, find, parse_params
from solvers.sharding.shardable import shardable


def test_every_file_of_methods_brings_the_method_of_its_name():
    assert set(SOLVERS) == {module.name for module in pkgutil.iter_modules(methods.__path__)}


def test_an_unknown_name_is_answered_with_the_nearest_or_with_all():
    with pytest.raises(UnknownSolverError, match="did you mean 'crammer_singer'"):
        find("cramer_singer")
    with pytest.raises(UnknownSolverError, match=r"known are .*weston_watkins"):
        find("xyz")


def test_faults_are_pointed_at():
    with pytest.raises(ParamsError) as caught:
        parse_params("weston_watkins", {"C": 0, "maxepochs": 5, "tol": "x"})
    items = dict(caught.value.items)
    assert set(items) == {"/C", "/maxepochs", "/tol"}
    assert "did you mean 'max_epochs'" in items["/maxepochs"]
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ParamsError):
            parse_params("weston_watkins", {"C": bad})


@pytest.mark.parametrize(
    ("params", "words"),
    [({"C": "1.0"}, "a string"), ({"max_epochs": "5"}, "a string"), ({"C": True}, "true or false")],
)
def test_numbers_that_are_written_as_something_else_are_refused(params: dict[str, Any], words: str):
    with pytest.raises(ParamsError) as caught:
        parse_params("weston_watkins", params)
    ((place, detail),) = caught.value.items
    assert place == f"/{next(iter(params))}"
    assert detail.endswith(f"got {words}")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (float("nan"), "expected a number, got NaN"),
        ("nan", "expected a number, got NaN"),
        (float("inf"), "expected a finite number, got infinity"),
        ("5", "expected a number such as 0.5, got a string"),
        (True, "expected a number such as 0.5, got true or false"),
        (10**400, None),
        (2, "Input should be less than 1"),
    ],
)
def test_what_is_no_number_is_not_said_to_be_beyond_a_bound(given: Any, said: str | None):
    with pytest.raises(ParamsError) as caught:
        parse_params("weston_watkins", {"tol": given})
    ((place, detail),) = caught.value.items
    assert place == "/tol"
    assert said in (None, detail)


def test_a_methods_own_rules_are_told_in_their_own_words():
    with pytest.raises(ParamsError) as caught:
        parse_params("one_vs_rest", {"algorithm": "newton"})
    assert caught.value.items == [("/algorithm", "newton needs loss squared_hinge: the hinge has no second derivative")]


def test_a_fault_within_a_parameter_is_pointed_at_by_keys_alone():
    with pytest.raises(ParamsError) as caught:
        parse_params("weston_watkins", {"class_weight": {"a/b": 0.0, "c": 1.0}})
    assert {pointer for pointer, _ in caught.value.items} == {"/class_weight", "/class_weight/a~1b"}
    with pytest.raises(ParamsError) as caught:
        parse_params("spoc", {"gamma": "big"})
    assert {pointer for pointer, _ in caught.value.items} == {"/gamma"}


def test_methods_that_are_trained_in_shards_say_by_what() -> None:
    for name, kind in SOLVERS.items():
        if kind.handles.shards:
            assert shardable(kind(kind.Params())).solver.name == name
