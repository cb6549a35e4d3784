"""What spares a training passes over all classes where each of them takes many seconds.

The first pass looks at a block of classes for each example, one after the other: as no weight is there yet, the classes
that come too close to an example are not known, and a few separate the weights as well as all do. And before the
first certificate a sample of the examples says whether it would be the last: what visits report is from before their
steps, and in a training of few epochs it says so an epoch later.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from solvers.core.base import relative_gap
from solvers.linear.driver.run import Run
from solvers.linear.layouts.hybrid_layout import HybridLayout
from solvers.linear.visits import Task
from solvers.numerics.array_types import Floats, Ints32
from solvers.numerics.orders import shuffled
from solvers.numerics.scaling_search import ONE, along, blank

# vector operations of a pass, about ten seconds, from which on it is long
LONG = float(1 << 30)
# fewer classes are soon looked at
MANY_CLASSES = 1024
# one example in so many is sampled, unless a gap of so many times the tolerance is expected
SAMPLED, HOPELESS = 32, 40.0


class MeasuredLoss(Protocol):
    """What is asked of a loss."""

    def certify(self, task: Task, run: Run, gaps: Floats, leads: Floats, terms: Floats) -> tuple[float, float]:
        """Weighted losses and dual variables summed, as :func:`solvers.linear.steps.joint.certify`."""

    def linear_part(self, task: Task, duals: Any) -> float:
        """As :meth:`solvers.linear.driver.ascent.Loss.linear_part`."""


@dataclass(frozen=True)
class LongPasses:
    """The rules, of a machine of this loss, seed and tolerance."""

    loss: MeasuredLoss
    seed: int
    tol: float

    def concern(self, run: Run) -> bool:
        """Whether the passes of the run are long."""
        return isinstance(run.layout, HybridLayout) and float(run.layout.full.sum()) >= LONG

    def begin_in_part(self, run: Run) -> bool:
        """Whether the epoch that begins looks at a few classes of each example alone."""
        many = run.layout.n_classes >= MANY_CLASSES
        return many and run.counters.epoch == 1 and not run.duals.length.any() and self.concern(run)

    def promise(self, task: Task, run: Run, examples: Ints32, expected: float) -> bool:
        """Whether the first certificate, of the ``examples`` that are not empty, would be the last."""
        if run.counters.certified > 0 or expected > HOPELESS * self.tol or not self.concern(run):
            return False
        some = shuffled(examples, self.seed, run.counters.epoch)[: len(examples) // SAMPLED]
        return len(some) > 0 and self._sampled_gap(task, run, some, len(examples)) <= self.tol

    def _sampled_gap(self, task: Task, run: Run, some: Ints32, n: int) -> float:
        """The relative gap at the best multiple of W that ``some`` of n examples let expect, two standard errors added.

        Few examples have large losses, so that these themselves would not do. But a loss is the linear part of the
        example's dual variables, less their products with W, and its part of the gap at W. The sums of the first two
        are known, and the last varies far less.
        """
        gaps, terms, squares = np.zeros(len(task.y)), blank(), np.zeros_like(task.rows.squares)
        squares[some] = task.rows.squares[some]
        sample = task._replace(rows=task.rows._replace(squares=squares))
        losses, linear = self.loss.certify(sample, run, gaps, np.zeros_like(gaps), terms)
        products, share = float(gaps.sum()) - losses + linear, n / len(some)
        half, known = 0.5 * run.layout.square_norm(run.W), self.loss.linear_part(task, run.duals)
        # as terms are noted, multiples begin at 1
        s = np.arange(ONE, terms.shape[1]) / ONE
        losses_at = known - s * 2.0 * half + share * (along(terms)[ONE:] - linear + s * products)
        error = share * np.sqrt(len(some)) * float(gaps[some].std())
        return relative_gap(float((s**2 * half + losses_at).min()) + 2.0 * error, known - half)
