"""The exponential loss of every pair of an example and a wrong class, with its certificate.

    (C / p) sum_i omega_i sum_{q != y_i} exp(F_q(x_i) - F_{y_i}(x_i)),   p = (n_classes - 1) sum_i omega_i

is the loss of Lin et al. 2012, equation 2, and of Shen and Hao 2011, with weights omega of the examples. Rows must be
sorted by class.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from solvers.boosting.pairs import coordinates, pair_statistics, pair_weights
from solvers.boosting.pairs.coordinates import StepRule
from solvers.boosting.pairs.pair_weights import PairWeights
from solvers.boosting.weak_learners.channels import Channels
from solvers.numerics.array_types import Array, Floats, Ints8, Ints32
from solvers.numerics.thread_pool import ThreadPool

CHANGING = ("e", "r", "E", "since_sum", "since_merge")
# learners whose responses are laid out together, at least, and bytes of them
CHUNK, CHUNK_BYTES = 64, 1 << 18


def estimate_bytes(n_samples: int, n_classes: int) -> int:
    """What scores, factors of mu and whole-number weights of n_samples rows take, beside the binned features."""
    return n_samples * (2 * 8 * n_classes + 4 * 16 * -(-n_classes // 16) + 64)


def chunks(many: int, n: int) -> Iterator[slice]:
    """Cut so many learners into parts, whose responses on n rows stay in the cache."""
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

    Attributes
    ----------
    F : float64 array, shape (n_classes, n)
        Scores.
    mu : PairWeights
        What each example loses to each wrong class.
    rate : float
        C / p.
    mass, entropy : float
        M = sum of mu and L = sum of mu log(mu / omega), as they were last measured.
    n_wrong : int
        Rows that were misclassified then.
    """

    def __init__(self, y: Ints32, omega: Floats, n_classes: int, C: float) -> None:
        n = len(y)
        self.y, self.omega = y, omega
        p = (n_classes - 1) * float(omega.sum())
        self.rate, self._a = C / p, 0.5 * p / C
        self.F = np.zeros((n_classes, n))
        self.mu = PairWeights(
            np.searchsorted(y, np.arange(n_classes + 1)).astype(np.int64),
            e=np.zeros((n_classes, n)),
            r=np.ones(n),
            E=np.zeros(n),
            since_sum=np.zeros(n_classes),
            since_merge=np.zeros(n_classes),
        )
        self.mass = self.entropy = 0.0
        self.n_wrong = 0
        self._channels: dict[bool, Channels] = {}
        self.refresh()

    def refresh(self) -> None:
        """Make all factors of mu afresh from the scores, without the rounding of earlier steps."""
        pair_weights.restart(self.F, self.omega, self.y, self.mu)

    def arrays(self) -> dict[str, Array]:
        """All that changes, by names that begin with ``loss_``; live."""
        return {"loss_F": self.F} | {f"loss_{name}": getattr(self.mu, name) for name in CHANGING}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Take back what :meth:`arrays` gave."""
        for name, array in self.arrays().items():
            array[:] = arrays[name]

    def measure(self, thread_pool: ThreadPool, *, fine: bool = False) -> Channels:
        """The weights u that weak learners are sought for, one channel a class; valid until the next time.

        ``u_ic`` is the sum of the row's mu if c is its class, else ``-mu_ic``: minus what the loss changes by where F_c
        grows. They are the sums of Lin et al. 2012, equation 4, over C / p.
        """
        k, n = self.F.shape
        channels = self._channels.get(fine) or Channels(k, n, fine=fine)
        self._channels[fine] = channels
        self.mass, self.entropy, self.n_wrong = pair_statistics.measure(
            thread_pool.work_queue, self.y, self.F, self.mu, channels.arrays, channels.top
        )
        return channels

    def sweep(
        self,
        thread_pool: ThreadPool,
        responses: Ints8,
        classes: Ints32,
        weights: Floats,
        share: float = 1.0,
        *,
        signed: bool = True,
    ) -> None:
        """Minimise over one weight after the other; ``weights`` change in place, ``share`` of the way.

        A share above 1 goes beyond the minimum where that lowers the objective too. The scores have to follow by
        :meth:`shift` before :meth:`measure`.
        """
        coordinates.sweep(
            thread_pool.work_queue, responses, classes, weights, StepRule(self._a, share, signed), self.mu
        )

    def shift(
        self, thread_pool: ThreadPool, responses: Ints8, classes: Ints32, steps: Floats, F: Floats | None = None
    ) -> None:
        """Let the scores, or others than these, follow ``steps`` of the weights."""
        coordinates.shift(thread_pool.work_queue, responses, classes, steps, self.F if F is None else F)

    def follow(self, thread_pool: ThreadPool, directions: Floats, share: float) -> float:
        """Let mu, not the scores, follow as these grow by ``share directions``; returns the sum of mu."""
        return float(pair_weights.advance(thread_pool.work_queue, self.y, directions, share, self.mu))

    def total(self) -> float:
        """The sum of mu, from its factors."""
        return float(pair_weights.mass(self.mu))

    def gradients(self, responses: Ints8, classes: Ints32) -> Floats:
        """Minus the derivative of the loss after the weight of each learner of a class, over ``rate``."""
        out = np.empty(len(classes))
        pair_statistics.gradients(responses, classes, self.mu, out)
        return out

    def primal(self, norm: float) -> float:
        """Objective (Lin et al. 2012, equation 2) as last measured; the weights' absolute values add up to ``norm``."""
        return norm + self.rate * self.mass

    def bound(self, largest: float) -> float:
        """A lower bound on the optimum over all weak learners, none of whose values exceeds ``largest``.

        ``lambda = s rate mu`` (Lin et al. 2012, equation 5) satisfies the constraints of the dual for any
        ``s <= 1 / (rate largest)`` (Lin et al. 2012, equation 3b). The best such s maximises its objective,
        ``s rate (M - L - M log s)`` (Lin et al. 2012, equation 3a). Equation 3c is that of another loss.
        """
        M, L = self.mass, self.entropy
        if M <= 0.0:
            return 0.0
        log_s = -L / M
        if largest > 0.0:
            log_s = min(log_s, -float(np.log(self.rate) + np.log(largest)))
        return float(np.exp(log_s) * self.rate * (M - L - M * log_s))
