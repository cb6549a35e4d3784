"""Successive halving: all settings are tried a little, and the best part of them more, until few are left.

Jamieson and Talwalkar: Non-stochastic Best Arm Identification and Hyperparameter Optimization, AISTATS 2016, Figure 3,
with epochs as what is spent, and settings that have converged early standing as they are.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Result(NamedTuple):
    """What one trial has come to.

    Attributes
    ----------
    number, rung : int
        Of the settings, and of the round.
    value : float or None
        More is better; None where the trial has failed.
    complete : bool
        More epochs would change nothing.
    """

    number: int
    rung: int
    value: float | None
    complete: bool


class Round(NamedTuple):
    """Settings that are to be tried, and with how many epochs at most; None: to their own end."""

    rung: int
    numbers: list[int]
    max_epochs: int | None


def next_round(
    n: int, results: Mapping[tuple[int, int], Result], factor: int | None, first_epochs: int
) -> Round | None:
    """What is to be tried after the results so far; None where nothing is.

    Parameters
    ----------
    n : int
        Settings, numbered from 0.
    results : mapping of (number, rung) to Result
        Of trials that have ended.
    factor : int or None
        One in so many goes on to the next round, with so many times as many epochs. None: a single round, to the end.
    """
    sizes = [n]
    while factor is not None and sizes[-1] > factor:
        sizes.append(-(-sizes[-1] // factor))
    members: list[int] = list(range(n))
    standing: dict[int, Result] = {}
    for rung, size in enumerate(sizes):
        if rung:
            able = [standing[number] for number in members if standing[number].value is not None]
            members = [result.number for result in ranked(able)[:size]]
        due = [number for number in members if not (number in standing and standing[number].complete)]
        missing = [number for number in due if (number, rung) not in results]
        if missing:
            last = factor is None or rung == len(sizes) - 1
            return Round(rung, missing, None if last or factor is None else first_epochs * factor**rung)
        standing |= {number: results[number, rung] for number in due}
    return None


def ranked(results: Iterable[Result]) -> list[Result]:
    """The latest result of each number that has a value, the best first.

    Complete ones come before others, of these the ones of later rounds; then by value, then by number.
    """
    latest: dict[int, Result] = {}
    for result in results:
        known = latest.get(result.number)
        if result.value is not None and (known is None or result.rung > known.rung):
            latest[result.number] = result

    def place(result: Result) -> tuple[bool, int, float, int]:
        assert result.value is not None
        return not result.complete, 0 if result.complete else -result.rung, -result.value, result.number

    return sorted(latest.values(), key=place)
