"""The exponential loss of every pair of an example and a wrong class, with its certificate.

    (C / p) sum_i omega_i sum_{q != y_i} exp(F_q(x_i) - F_{y_i}(x_i)),   p = (n_classes - 1) sum_i omega_i

is the loss of Lin et al. 2012, equation 2, and of Shen and Hao 2011. Rows must be sorted by class.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.boosting.pairs import coordinates, pair_statistics, pair_weights
from solvers.boosting.pairs import quadratic_model as newton
from solvers.boosting.weak_learners.stumps import Channels, Found
from solvers.core.base import relative_gap
from solvers.numerics.thread_pool import ThreadPool

NAMES = ("F", "e", "r", "E", "way")
FINE_SHARE = 0.01
CLOSER = 0.3
# learners whose sides are laid out together, at least, and bytes of them
CHUNK, CHUNK_BYTES = 64, 1 << 18


def estimate_bytes(n_samples: int, n_classes: int) -> int:
    """What scores, factors of mu and whole-number weights of n_samples rows take, beside the binned features."""
    return n_samples * (2 * 8 * n_classes + 4 * 16 * -(-n_classes // 16) + 64)


def chunks(many: int, n: int) -> Iterator[slice]:
    """Cut so many learners into parts, whose sides of n rows stay in the cache."""
    size = max(CHUNK, CHUNK_BYTES // max(n, 1))
    return (slice(at, at + size) for at in range(0, many, size))


class PairLoss:
    """The loss at the current scores.

    Parameters
    ----------
    y : int32 array, shape (n,)
        Ascending.
    omega : float64 array, shape (n,)
        Weights of the rows.
    n_classes : int
    C : float

    Attributes
    ----------
    F : float64 array, shape (n_classes, n)
        Scores.
    rate : float
        C / p.
    mass, entropy : float
        M = sum of mu and L = sum of mu log(mu / omega), as the last survey found them.
    n_wrong : int
        Rows that the last survey found misclassified.
    """

    def __init__(self, y: NDArray[np.int32], omega: NDArray[np.float64], n_classes: int, C: float) -> None:
        n = len(y)
        self.y, self.omega = y, omega
        self.starts = np.searchsorted(y, np.arange(n_classes + 1)).astype(np.int64)
        p = (n_classes - 1) * float(omega.sum())
        self.rate, self._a = C / p, 0.5 * p / C
        self.F, self.e = np.zeros((n_classes, n)), np.zeros((n_classes, n))
        self.r, self.E = np.ones(n), np.zeros(n)
        self.way = np.zeros((2, n_classes))
        self.mass = self.entropy = 0.0
        self.n_wrong = 0
        self._channels: dict[bool, Channels] = {}
        self.refresh()

    def refresh(self) -> None:
        """Make all factors of mu afresh from the scores, without the rounding of earlier steps."""
        pair_weights.restart(self.F, self.omega, self.y, self.e, self.r, self.E)
        self.way[:] = 0.0

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that changes; live."""
        return {name: getattr(self, name) for name in NAMES}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what :meth:`arrays` gave."""
        for name in NAMES:
            getattr(self, name)[:] = arrays[name]

    def survey(self, thread_pool: ThreadPool, *, fine: bool = False) -> Channels:
        """The weights u that weak learners are sought for, one channel a class; valid until the next survey.

        ``u_ic`` is the sum of the row's mu if c is its class, else ``-mu_ic``: minus what the loss changes by where F_c
        grows.
        """
        k, n = self.F.shape
        channels = self._channels.get(fine) or Channels(k, n, fine=fine)
        self._channels[fine] = channels
        self.mass, self.entropy, self.n_wrong = pair_statistics.survey(
            thread_pool.work_queue, self.starts, self.y, self.F, self.e, self.r, self.E, channels.top, channels.masses,
            channels.scales, channels.slack, channels.U, channels.totals,
        )  # fmt: skip
        return channels

    def sweep(
        self,
        thread_pool: ThreadPool,
        sides: NDArray[np.int8],
        classes: NDArray[np.int32],
        weights: NDArray[np.float64],
        share: float = 1.0,
        *,
        signed: bool = True,
    ) -> None:
        """Minimise over one weight after the other; ``weights`` change in place, ``share`` of the way.

        A share above 1 goes beyond the minimum where that lowers the objective too. The scores have to be told by
        :meth:`shift` before the next survey.
        """
        coordinates.sweep(
            thread_pool.work_queue, sides, classes, weights, self._a, share, signed, self.starts, self.e, self.r,
            self.E, self.way,
        )  # fmt: skip

    def shift(
        self,
        thread_pool: ThreadPool,
        sides: NDArray[np.int8],
        classes: NDArray[np.int32],
        steps: NDArray[np.float64],
        F: NDArray[np.float64] | None = None,
    ) -> None:
        """Let the scores follow: ``steps`` of the weights were made since they were last told. Or others than these."""
        coordinates.shift(thread_pool.work_queue, sides, classes, steps, self.F if F is None else F)

    def follow(self, thread_pool: ThreadPool, ways: NDArray[np.float64], share: float) -> float:
        """Let mu follow as the scores grow by ``share ways``, of which they are not told; returns the sum of mu."""
        self.way[:] = 0.0
        return float(newton.advance(thread_pool.work_queue, self.starts, self.y, ways, share, self.e, self.r, self.E))

    def gradients(self, sides: NDArray[np.int8], classes: NDArray[np.int32]) -> NDArray[np.float64]:
        """Minus the derivative of the loss after the weight of each learner of a class, over ``rate``."""
        out = np.empty(len(classes))
        pair_statistics.gradients(sides, classes, self.starts, self.e, self.r, self.E, out)
        return out

    def primal(self, norm: float) -> float:
        """Objective as of the last survey, where the weights' absolute values add up to ``norm``."""
        return norm + self.rate * self.mass

    def bound(self, largest: float) -> float:
        """A lower bound on the optimum over all weak learners, none of whose values exceeds ``largest``.

        ``lambda = s rate mu`` is feasible for the dual (equation 3 without the leftover 3c) for any
        ``s <= 1 / (rate largest)``; the best such s maximises ``s rate (M - L - M log s)``.
        """
        M, L = self.mass, self.entropy
        if M <= 0.0:
            return 0.0
        log_s = -L / M
        if largest > 0.0:
            log_s = min(log_s, -float(np.log(self.rate) + np.log(largest)))
        return float(np.exp(log_s) * self.rate * (M - L - M * log_s))


class Level:
    """How far the optimum is, and how exactly it has to be approached next.

    Attributes
    ----------
    numbers : float64 array, shape (4,)
        The best lower bound, the last primal value, the violation that may be left alone, and the share of its class's
        mass that the best learner gains.
    """

    def __init__(self, eps: float) -> None:
        self.numbers = np.array([0.0, np.inf, eps, 1.0])

    @property
    def eps(self) -> float:
        """The violation that may be left alone."""
        return float(self.numbers[2])

    @property
    def gap(self) -> float:
        """Relative duality gap; 1 where it is not known."""
        dual, primal, _, _ = self.numbers.tolist()
        return relative_gap(primal, dual) if primal < np.inf else 1.0

    def wants_fine(self, n: int, tol: float) -> bool:
        """Whether the rounding of 31 bits could be seen in a gap as small as the last one."""
        return bool(n / (1 << 32) / max(float(self.numbers[3]), 1e-12) > FINE_SHARE * max(tol, self.gap))

    def certify(self, loss: PairLoss, norm: float, channels: Channels, found: Found | None) -> tuple[float, float]:
        """Primal value and best lower bound, nan unless the best of all learners were found, as of the last survey."""
        primal = self.numbers[1] = loss.primal(norm)
        if found is None:
            return float(primal), float("nan")
        c = int(found.sizes.argmax())
        mass = float(channels.masses[c])
        self.numbers[3] = found.largest / mass if mass > 0 else 1.0
        bound = loss.bound(float((found.sizes + channels.slack).max()))
        self.numbers[0] = min(max(float(self.numbers[0]), bound), primal)
        return float(primal), float(self.numbers[0])

    def tighten(self, *, still: bool) -> None:
        """Let violations be smaller where the gap is smaller, or where nothing has moved."""
        gap = self.gap
        self.numbers[2] = min(self.eps, CLOSER * gap if gap > 0 else np.inf) * (0.1 if still else 1.0)
