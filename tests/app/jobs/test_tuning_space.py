"""The settings of a space: all combinations, or draws that the seed repeats."""

import math
from typing import Any

import pytest
from pydantic import ValidationError

from app.errors import InvalidInput
from app.jobs.request_schemas import TuneRequest
from app.jobs.tuning_space import settings_of, training_of

RANGES = {
    "C": {"low": 0.01, "high": 100, "log": True},
    "epochs": {"low": 3, "high": 5, "whole": True},
    "bias": {"low": 0, "high": 1},
}


def _request(**given: Any) -> TuneRequest:
    return TuneRequest.model_validate({"dataset": "d", "model": "m", **given})


def test_all_combinations_are_tried_with_each_recipe() -> None:
    space = [
        {"solver": "a", "params": {"tol": 0.1}, "grid": {"C": [1, 2], "bias": [0, 1]}},
        {"solver": "b"},
    ]
    found = settings_of(_request(space=space, texts=[{}, {"ngram_max": 2}]))
    assert len(found) == 10
    assert [each.text.ngram_max for each in found if each.text] == [1] * 5 + [2] * 5
    assert found[1].params == {"tol": 0.1, "C": 1, "bias": 1}
    assert (found[4].solver, found[4].params) == ("b", {})


def test_the_same_seed_draws_the_same_and_within_the_ranges() -> None:
    def drawn(seed: int) -> list[dict[str, Any]]:
        request = _request(
            space=[{"solver": "a", "ranges": RANGES, "grid": {"loss": ["x", "y"]}}], draws=200, seed=seed
        )
        return [each.params for each in settings_of(request)]

    found = drawn(1)
    assert found == drawn(1)
    assert found != drawn(2)
    assert len({str(params) for params in found}) == 200
    assert all(0.01 <= params["C"] <= 100 and 0 <= params["bias"] <= 1 for params in found)
    assert {params["epochs"] for params in found} == {3, 4, 5}
    assert {params["loss"] for params in found} == {"x", "y"}
    # evenly by the logarithm: as many below 1 as above
    assert 70 < sum(math.log(params["C"]) < 0 for params in found) < 130


def test_no_more_is_drawn_than_there_is() -> None:
    request = _request(space=[{"solver": "a", "grid": {"C": [1, 2, 3]}}], draws=50)
    assert [each.params["C"] for each in settings_of(request)] == [1, 2, 3]
    few = _request(space=[{"solver": "a", "ranges": {"k": {"low": 1, "high": 2, "whole": True, "log": True}}}], draws=9)
    assert {each.params["k"] for each in settings_of(few)} == {1, 2}


def test_too_many_settings_are_refused() -> None:
    with pytest.raises(InvalidInput, match="too large"):
        settings_of(_request(space=[{"solver": "a", "grid": {"C": list(range(600)), "bias": [0, 1]}}]))


@pytest.mark.parametrize(
    "candidate",
    [
        {"solver": "a", "ranges": {"C": {"low": 2, "high": 1}}},
        {"solver": "a", "ranges": {"C": {"low": 0, "high": 1, "log": True}}},
        {"solver": "a", "ranges": {"C": {"low": 1.1, "high": 1.9, "whole": True}}},
        {"solver": "a", "params": {"C": 1}, "ranges": {"C": {"low": 1, "high": 2}}},
        {"solver": "a", "grid": {"C": []}},
    ],
)
def test_ranges_without_a_number_and_parameters_given_twice_are_refused(candidate: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        _request(space=[candidate], draws=3)


def test_ranges_need_draws() -> None:
    with pytest.raises(ValidationError, match="as draws=20"):
        _request(space=[{"solver": "a", "ranges": RANGES}])


def test_the_training_of_settings_has_all_that_the_tuning_says_of_the_data() -> None:
    request = _request(space=[{"solver": "a", "params": {"C": 2}}], seed=4, hierarchy="h", threads=2, priority="high")
    training = training_of(request, settings_of(request)[0])
    assert (training.solver, training.params, training.seed) == ("a", {"C": 2}, 4)
    assert (training.hierarchy, training.threads, training.validation_rows) == ("h", 2, "train")
