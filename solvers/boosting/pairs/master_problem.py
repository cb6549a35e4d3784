"""The weights of weak learners found so far, moved towards the optimum of the problem in these alone.

    minimise  sum_j |w_j| + rate sum_iq mu_iq(w)

is Lin et al. 2012, equation 7, and this their Algorithm 2 with steps of another kind added. First come coordinate steps
on the weights that are new. Iterations over all weights follow, each of them a step by a quadratic model
(:mod:`solvers.boosting.pairs.quadratic_step`); where that model has promised too much, or would take too much time or
memory, coordinate sweeps over the weights that violate the optimality conditions.
"""

from collections.abc import Mapping

import numpy as np

from solvers.boosting.pairs.pair_loss import PairLoss, chunks
from solvers.boosting.pairs.quadratic_step import QuadraticStep, Responses
from solvers.boosting.pairs.variables import Variables
from solvers.numerics.array_types import Array, Floats, Ints
from solvers.numerics.thread_pool import ThreadPool

WORST_SHARE = 0.03
OVERSTEP = 1.6
# sweeps in place of a step by the quadratic model
SWEEPS = 3


class MasterProblem:
    """Variables, the loss at their weights, and what to do next.

    Parameters
    ----------
    responses : callable
        What the learners of some variables say, given their places.
    signed : bool
        Whether weights may be negative.
    shrinkage : float
        Share of the way that a step goes to its minimum.

    Attributes
    ----------
    working : int64 array
        The variables that coordinate sweeps move.
    sweeps_left : int
        How many such sweeps are to come before the gradients are looked at again.
    """

    def __init__(
        self, loss: PairLoss, variables: Variables, responses: Responses, *, signed: bool = True, shrinkage: float = 1.0
    ) -> None:
        self.loss, self.variables, self._responses = loss, variables, responses
        self._signed, self._shrinkage = signed, shrinkage
        self._quadratic = QuadraticStep(loss, responses, signed=signed)
        self.working, self.sweeps_left = np.empty(0, np.int64), 0

    def gradients(self) -> Floats:
        """Minus the derivative of the loss after the weight of each variable, over its rate."""
        owners = self.variables.owners
        values, order = np.empty(len(owners)), np.argsort(owners, kind="stable")
        for some in chunks(len(order), len(self.loss.y)):
            part = order[some]
            values[part] = self.loss.gradients(self._responses(part), owners[part])
        return values

    def violations(self, values: Floats) -> Floats:
        """By how much variables of such :meth:`gradients` violate the optimality conditions.

        The conditions are Lin et al. 2012, equation 14; the violations Lin et al. 2012, equation 16, and the same for
        negative weights.
        """
        weights, gain = self.variables.weights, self.loss.rate * values
        idle = np.maximum(0.0, (np.abs(gain) if self._signed else gain) - 1.0)
        return np.where(weights == 0, idle, np.abs(np.sign(weights) - gain))

    def sweep(self, thread_pool: ThreadPool, order: Ints, share: float = 1.0) -> None:
        """One coordinate step after the other, each ``share`` of its way, times the shrinkage."""
        variables = self.variables
        for some in chunks(len(order), len(self.loss.y)):
            part = order[some]
            weights = variables.weights[part]
            self.loss.sweep(
                thread_pool,
                self._responses(part),
                variables.owners[part],
                weights,
                self._shrinkage * share,
                signed=self._signed,
            )
            variables.weights[part] = weights

    def choose_working_set(self, violations: Floats, eps: float) -> bool:
        """Choose what sweeps move: violations above eps (Lin et al. 2012, equation 17), not far less than the worst.

        Returns whether there are any; where there are none, it is time to stop (Lin et al. 2012, equation 18).
        """
        self.working = np.flatnonzero(violations > max(eps, WORST_SHARE * float(violations.max(initial=0.0))))
        return len(self.working) > 0

    def iterate(self, thread_pool: ThreadPool, values: Floats | None, seed: list[int]) -> int:
        """Move all weights, or those of the working set; returns about how many visits of a row this takes.

        Parameters
        ----------
        values : float64 array, shape (n,)
            The :meth:`gradients`, if no sweeps are left.
        seed : list of ints
            It decides what chance there is.
        """
        n, rng = len(self.loss.y), np.random.default_rng(seed)
        if self.sweeps_left == 0 and values is not None:
            self.sweeps_left = SWEEPS
            part = np.flatnonzero((self.variables.weights != 0) | (self.violations(values) > 0))
            if self._quadratic.fits(len(part)):
                taken, good = self._quadratic_move(thread_pool, part, values, rng)
                self.sweeps_left = 0 if good else SWEEPS
                if taken:
                    return 4 * n * len(part)
        order, rank = rng.permutation(self.working), rng.permutation(len(self.loss.F))
        order = order[np.argsort(rank[self.variables.owners[order]], kind="stable")]
        self.sweep(thread_pool, order, OVERSTEP)
        self.sweeps_left -= 1
        return n * len(order)

    def _quadratic_move(
        self, thread_pool: ThreadPool, part: Ints, values: Floats, rng: np.random.Generator
    ) -> tuple[bool, bool]:
        """A step on all weights of ``part``, which the scores follow; whether there was one, and a good one."""
        variables = self.variables
        part = part[np.argsort(variables.owners[part], kind="stable")]
        weights = variables.weights[part]
        step, good = self._quadratic.take(
            thread_pool, part, variables.owners[part], weights, -self.loss.rate * values[part], rng, self._shrinkage
        )
        if step is None:
            return False, False
        scored, after = variables.scored[part], weights + step
        if not self._signed:
            # the rounding of a weight that goes to zero
            np.maximum(after, 0.0, out=after)
        variables.weights[part] = after
        variables.scored[part] = np.where(scored == weights, after, scored + step)
        return True, good

    def arrays(self) -> dict[str, Array]:
        """What has to be kept beside the variables and the loss."""
        return {"working": self.working, "sweeps_left": np.array(self.sweeps_left)}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Take back what :meth:`arrays` gave."""
        self.working = np.array(arrays["working"])
        self.sweeps_left = int(arrays["sweeps_left"])
