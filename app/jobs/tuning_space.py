"""The settings that a tuning tries: all combinations of its space, or some of them at random."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from app.datasets.recipe_schemas import TextRecipe
from app.errors import InvalidInput, Item
from app.jobs.request_schemas import MOST_TRIALS, Candidate, Range, TrainingData, TuneRequest
from app.jobs.schemas import TrainRequest

# a space may have fewer settings than are to be drawn
_TRIES = 50


class Settings(NamedTuple):
    """One point of a space: which candidate it is of, its parameters, and how texts become features."""

    candidate: int
    solver: str
    params: dict[str, Any]
    text: TextRecipe | None = None


def settings_of(request: TuneRequest) -> list[Settings]:
    """The settings of a request, numbered by their places; those of one text recipe are adjacent.

    The same request gives the same settings.

    Raises
    ------
    InvalidInput
        There are more than MOST_TRIALS.
    """
    recipes = len(_recipes(request))
    n = recipes * sum(math.prod(map(len, candidate.grid.values())) for candidate in request.space)
    drawn = request.draws is not None and (n > request.draws or any(each.ranges for each in request.space))
    if drawn:
        return _drawn(request)
    if n > MOST_TRIALS:
        detail = f"{n:,} settings are asked for; at most {MOST_TRIALS:,} are tried: draw some of them, with draws"
        raise InvalidInput("the space is too large", [Item(detail, "/space")])
    return [
        Settings(number, candidate.solver, params, text)
        for text in _recipes(request)
        for number, candidate in enumerate(request.space)
        for params in _combinations(candidate)
    ]


def training_of(request: TuneRequest, settings: Settings) -> TrainRequest:
    """The training of some settings on all rows but those for testing."""
    shared = {name: getattr(request, name) for name in TrainingData.model_fields}
    return TrainRequest.model_validate(
        {
            **shared,
            "solver": settings.solver,
            "params": settings.params,
            "text": settings.text,
            "validation_rows": "train",
        }
    )


def _recipes(request: TuneRequest) -> Sequence[TextRecipe | None]:
    return request.texts or (None,)


def _combinations(candidate: Candidate) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*candidate.grid.values()):
        yield {**candidate.params, **dict(zip(candidate.grid, values, strict=True))}


def _drawn(request: TuneRequest) -> list[Settings]:
    assert request.draws is not None
    random = np.random.default_rng([request.seed, 0x7A1E])
    recipes = _recipes(request)
    found: dict[bytes, tuple[int, Settings]] = {}
    for _ in range(_TRIES * request.draws):
        at, number = int(random.integers(len(recipes))), int(random.integers(len(request.space)))
        candidate = request.space[number]
        params = dict(candidate.params)
        for name, values in candidate.grid.items():
            params[name] = values[int(random.integers(len(values)))]
        for name, span in candidate.ranges.items():
            params[name] = _number(random, span)
        found.setdefault(
            orjson.dumps([at, number, params]), (at, Settings(number, candidate.solver, params, recipes[at]))
        )
        if len(found) == request.draws:
            break
    return [settings for _, settings in sorted(found.values(), key=lambda pair: pair[0])]


def _number(random: np.random.Generator, span: Range) -> float | int:
    if span.whole:
        low, high = math.ceil(span.low), math.floor(span.high)
        if not span.log:
            return int(random.integers(low, high + 1))
        drawn = math.exp(random.uniform(math.log(max(low - 0.5, 0.5)), math.log(high + 0.5)))
        return min(max(round(drawn), low), high)
    if span.log:
        drawn = math.exp(random.uniform(math.log(span.low), math.log(span.high)))
    else:
        drawn = random.uniform(span.low, span.high)
    return min(max(float(f"{drawn:.6g}"), span.low), span.high)
