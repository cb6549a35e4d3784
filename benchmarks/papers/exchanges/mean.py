"""Training in shards by the exchange of the mean weight vector (Alber et al. 2017, Algorithms 1 and 2).

With the mean of all u_c = sum_i s_ic alpha_ic x_i held, the classes need nothing of each other: each shard takes exact
steps on single dual variables of its own classes, and w_c = u_c - mean moves with u_c. After each tenth of an epoch the
shards add up their weights, and a k-th of the sum is what the mean has moved by.
"""

from functools import partial

import numpy as np
from numba import njit

from benchmarks.papers.exchanges.schedule import PORTIONS, portions
from solvers.linear.sharded.sum_exchange import SumToZeroTraining
from solvers.linear.sharded.task import blank_statistics
from solvers.linear.steps.absolute import Margins
from solvers.linear.visits import Task
from solvers.numerics.array_types import Array, Bytes, Ints32
from solvers.sharding.exchange import gather


class MeanTraining(SumToZeroTraining):
    """One shard of a training by the exchange of the mean; the plan's ``batch`` is not used."""

    def _begin_epoch(self) -> None:
        pass

    def _advance(self) -> bool:
        rng = np.random.default_rng([self.plan.seed, self.progress.epoch])
        self._alternate(portions(self.order, rng)[self.progress.position])
        self.progress.position += 1
        self._report()
        return self.progress.position < PORTIONS

    def _alternate(self, examples: Ints32) -> None:
        """Steps on these examples with the mean held, then the new mean."""
        W, n_pieces = self.shard.W[:, : len(self.shard.own)], len(self.columns)
        moved, visits = np.zeros((n_pieces, len(examples)), np.uint8), blank_statistics(n_pieces)
        work = partial(_visit, self.task, self.margins, self.shard.W, self.alpha, examples)
        self.thread_pool.run(partial(work, moved[p], visits[p : p + 1], *self.columns[p]) for p in range(n_pieces))
        self._note(visits)
        parts = gather(self.exchange, [W.sum(axis=1, dtype=np.float64), moved.max(axis=0)])
        W -= (np.sum([part[0] for part in parts], axis=0) / self.k).astype(W.dtype)[:, None]
        anywhere = np.any([part[1] for part in parts], axis=0)
        self.unchanged[examples] = np.where(anywhere, 0, np.minimum(self.unchanged[examples], 254) + 1)


@njit(nogil=True)
def _visit(
    task: Task,
    margins: Margins,
    W: Array,
    alpha: Array,
    order: Ints32,
    moved: Bytes,
    statistics: Array,
    begin: int,
    end: int,
) -> None:
    """Algorithm 2 on every variable of columns begin to end and the examples of order; W and alpha change in place."""
    rows, labels, bounds, _ = task
    found = statistics[0]
    f, step = np.empty(end - begin, W.dtype), np.empty(end - begin, W.dtype)
    trifle = 4.0 * np.finfo(W.dtype).eps
    for e in range(order.shape[0]):
        i = order[e]
        a = alpha[i, begin:end]
        f[:] = 0
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            w, x = W[rows.indices[p], begin:end], rows.data[p]
            for c in range(w.shape[0]):
                f[c] += x * w[c]
        changed = False
        for c in range(end - begin):
            sign, margin, top = -1.0, margins.other, margins.other_share * bounds[i]
            if begin + c == labels[i]:
                sign, margin, top = 1.0, margins.own, margins.own_share * bounds[i]
            old, g = np.float64(a[c]), margin - sign * np.float64(f[c])
            a[c] = min(max(old + g / rows.squares[i], 0.0), top)
            new = np.float64(a[c])
            step[c] = sign * (new - old)
            changed |= abs(new - old) > trifle * max(new, old)
            loss = top * max(g, 0.0)
            found.loss += loss
            found.gap += loss - old * g
            if (g > 0.0 and old < top) or (g < 0.0 and old > 0.0):
                found.violation = max(found.violation, abs(g))
        if not changed:
            continue
        moved[e] = 1
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            w, x = W[rows.indices[p], begin:end], rows.data[p]
            for c in range(w.shape[0]):
                w[c] += x * step[c]
