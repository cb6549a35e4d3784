"""Which trials are made: a path in C as long as it leads to something better, and the best of what was sketched."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from solvers.numerics.array_types import Floats
from solvers.selection.candidates import Family

# part of the log loss; where a larger C has gained so much, no smaller one is tried
CLEARLY = 0.002


class Trial(NamedTuple):
    """A family, the place of its C, and the number among all trials, those that are left out included."""

    family: Family
    place: int
    number: int


def is_due(trial: Trial, trials: Sequence[Trial], results: Floats) -> bool:
    """Whether a trial may lead to something better than those before it.

    Parameters
    ----------
    trial : Trial
    trials : sequence of Trial
        All of them, by their numbers.
    results : float64 array, shape (n_trials, 2)
        The measure that counts and the negative log loss of each; nan of those that were not made.
    """
    like = trial.family.like
    if like is not None:
        rivals = [other for other in trials if other.family in (trial.family.rivals or (like,))]
        found = results[[other.number for other in rivals], 0]
        if not np.isnan(found).all():
            best = rivals[int(np.nanargmax(found))]
            return best.family == like and best.place == trial.place
    if trial.place == 0:
        return True
    before = results[trial.number - trial.place : trial.number]
    if np.isnan(before[0, 0]):
        # left out
        return False
    first, last, C = trial.family.Cs[0], trial.family.Cs[trial.place - 1], trial.family.Cs[trial.place]
    if C < first <= last:
        peak = np.nanmax(before, axis=0)
        return not bool(peak[0] > before[0, 0] and peak[1] > (1.0 - CLEARLY) * before[0, 1])
    return trial.place == 1 or bool((before[-1] > np.nanmax(before[:-1], axis=0)).any())
