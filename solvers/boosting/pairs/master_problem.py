"""The weights of weak learners found so far, moved towards the optimum of the problem in these alone.

    minimise  sum_j |w_j| + rate sum_iq mu_iq(w)

First come coordinate steps on the weights that are new. Then turns over all weights follow, each of them a step by a
quadratic model (:mod:`solvers.boosting.pairs.quadratic_step`); where that model has promised too much, or would take
too much time or memory, coordinate sweeps over the weights that violate the optimality conditions.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.boosting.pairs.pair_loss import PairLoss, chunks
from solvers.boosting.pairs.quadratic_step import NewtonStep, Sides
from solvers.boosting.pairs.variables import Variables
from solvers.numerics.thread_pool import ThreadPool

WORST_SHARE = 0.03
BEYOND = 1.6
TURNS = 3


class MasterProblem:
    """Variables, the loss at their weights, and what to do next.

    Parameters
    ----------
    loss : PairLoss
    variables : Variables
    sides : callable
        What the learners of some variables say, given their places.
    signed : bool
        Whether weights may be negative.
    shrinkage : float
        Share of the way that a step goes to its minimum.

    Attributes
    ----------
    working : int64 array
        The variables that coordinate sweeps move.
    left : int
        How many such sweeps are to come before the gradients are looked at again.
    """

    def __init__(
        self, loss: PairLoss, variables: Variables, sides: Sides, *, signed: bool = True, shrinkage: float = 1.0
    ) -> None:
        self.loss, self.variables, self._sides = loss, variables, sides
        self._signed, self._shrinkage = signed, shrinkage
        self._newton = NewtonStep(loss, sides, signed=signed)
        self.working, self.left = np.empty(0, np.int64), 0

    def gradients(self) -> NDArray[np.float64]:
        """Minus the derivative of the loss after the weight of each variable, over its rate."""
        owners = self.variables.owners
        values, order = np.empty(len(owners)), np.argsort(owners, kind="stable")
        for some in chunks(len(order), len(self.loss.y)):
            part = order[some]
            values[part] = self.loss.gradients(self._sides(part), owners[part])
        return values

    def violations(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """By how much variables of such :meth:`gradients` violate the optimality conditions: equation 16."""
        weights, pull = self.variables.weights, self.loss.rate * values
        idle = np.maximum(0.0, (np.abs(pull) if self._signed else pull) - 1.0)
        return np.where(weights == 0, idle, np.abs(np.sign(weights) - pull))

    def step(self, thread_pool: ThreadPool, order: NDArray[np.int64], share: float = 1.0) -> None:
        """One coordinate step after the other, each ``share`` of its way, times the shrinkage."""
        variables = self.variables
        for some in chunks(len(order), len(self.loss.y)):
            part = order[some]
            weights = variables.weights[part]
            self.loss.sweep(
                thread_pool,
                self._sides(part),
                variables.owners[part],
                weights,
                self._shrinkage * share,
                signed=self._signed,
            )
            variables.weights[part] = weights

    def look(self, violations: NDArray[np.float64], eps: float) -> bool:
        """Choose what to move: violations above eps, and not far less than the worst. Returns whether there are any."""
        self.working = np.flatnonzero(violations > max(eps, WORST_SHARE * float(violations.max(initial=0.0))))
        return len(self.working) > 0

    def turn(self, thread_pool: ThreadPool, values: NDArray[np.float64] | None, seed: list[int]) -> int:
        """Move all weights, or those of the working set; returns about how many visits of a row this takes.

        Parameters
        ----------
        thread_pool : ThreadPool
        values : float64 array, shape (n,)
            The :meth:`gradients`, if no sweeps are left.
        seed : list of ints
            It decides what chance there is.
        """
        n, rng = len(self.loss.y), np.random.default_rng(seed)
        if self.left == 0 and values is not None:
            self.left = TURNS
            part = np.flatnonzero((self.variables.weights != 0) | (self.violations(values) > 0))
            if self._newton.fits(len(part)):
                taken, good = self._leap(thread_pool, part, values, rng)
                self.left = 0 if good else TURNS
                if taken:
                    return 4 * n * len(part)
        order, turns = rng.permutation(self.working), rng.permutation(len(self.loss.F))
        order = order[np.argsort(turns[self.variables.owners[order]], kind="stable")]
        self.step(thread_pool, order, BEYOND)
        self.left -= 1
        return n * len(order)

    def _leap(
        self, thread_pool: ThreadPool, part: NDArray[np.int64], values: NDArray[np.float64], rng: np.random.Generator
    ) -> tuple[bool, bool]:
        """A step on all weights of ``part``, of which the scores are told; whether there was one, and a good one."""
        variables = self.variables
        part = part[np.argsort(variables.owners[part], kind="stable")]
        weights = variables.weights[part]
        step, good = self._newton.take(
            thread_pool, part, variables.owners[part], weights, -self.loss.rate * values[part], rng, self._shrinkage
        )
        if step is None:
            return False, False
        told, after = variables.told[part], weights + step
        if not self._signed:
            # the rounding of a weight that goes to zero
            np.maximum(after, 0.0, out=after)
        variables.weights[part] = after
        variables.told[part] = np.where(told == weights, after, told + step)
        return True, good

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What has to be kept beside the variables and the loss."""
        return {"working": self.working, "left": np.array([self.left])}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what :meth:`arrays` gave."""
        self.working = np.array(arrays["working"])
        # states of earlier versions do not know it
        self.left = int(arrays["left"][0]) if "left" in arrays else 0
