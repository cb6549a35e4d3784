"""The certified ascent: the one loop by which machines train in passes over their examples.

An epoch is done in slices, so that the caller can save, stop or show each step. At the end of an epoch the machine
decides whether a certificate is worth its cost: it measures primal and dual over all examples, and training ends on
nothing less than a duality gap within the tolerance.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from solvers.core.base import Step, imprecise, relative_gap
from solvers.core.problem import ProblemError
from solvers.numerics.array_types import Bools

CERTIFY_SHARE = 0.1


class Certificate(NamedTuple):
    """Primal and dual value over all examples.

    Attributes
    ----------
    primal, dual : float
    right : bool array, shape (n_samples,), optional
        See :attr:`solvers.core.base.Step.right`.
    """

    primal: float
    dual: float
    right: Bools | None = None


class Passes(Protocol):
    """A training in progress.

    Attributes
    ----------
    epoch, max_epochs : int
        Epochs begun, and how many there may be.
    epoch_over : bool
        Whether all passes of the epoch have ended; True before the first.
    """

    @property
    def epoch(self) -> int: ...
    @property
    def max_epochs(self) -> int: ...
    @property
    def epoch_over(self) -> bool: ...
    def begin_epoch(self) -> None:
        """Begin the next epoch."""

    def advance(self) -> None:
        """Do the next slice of the epoch's passes."""

    def certifies(self) -> bool:
        """Whether the epoch that has ended is followed by a certificate."""

    def certify(self) -> Certificate:
        """Measure primal and dual."""

    def learn(self, primal: float, gap: float) -> None:
        """Adapt what follows to the gap that the certificate has found."""

    def step(self, primal: float, dual: float, *, converged: bool, right: Bools | None = None) -> Step:
        """The step at this point; primal and dual are NaN between certificates."""


def ascend(passes: Passes, tol: float) -> Iterator[Step]:
    """Train until a certificate shows a relative gap of at most ``tol``, or all epochs have ended.

    Parameters
    ----------
    passes : Passes
        At the start, or restored from the state of a step.
    tol : float

    Yields
    ------
    Step
        After every slice and every epoch.
    """
    while True:
        if passes.epoch_over:
            if passes.epoch >= passes.max_epochs:
                return
            passes.begin_epoch()
        passes.advance()
        if not passes.epoch_over or not passes.certifies():
            yield passes.step(np.nan, np.nan, converged=False)
            continue
        found = passes.certify()
        gap = relative_gap(found.primal, found.dual)
        passes.learn(found.primal, gap)
        yield passes.step(found.primal, found.dual, converged=gap <= tol, right=found.right)
        if gap <= tol:
            return


def is_due(epoch: int, max_epochs: int, n_certificates: int) -> bool:
    """Whether a certificate is due whatever the gap is expected to be: for one epoch in ten, and for the last."""
    return CERTIFY_SHARE * epoch >= 1 + n_certificates or epoch >= max_epochs


def bounded(primal: float, dual: float, dtype: np.dtype[Any]) -> float:
    """The dual value; where it meets the primal, rounding alone may lift it above, and is taken off.

    Raises
    ------
    ProblemError
        If it is above the primal by more than rounding explains.
    """
    if dual - primal > 1e3 * float(np.finfo(dtype).eps) * abs(primal):
        raise ProblemError(imprecise("weights", primal, dual))
    return min(dual, primal)
