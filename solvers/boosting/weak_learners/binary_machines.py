"""Binary machines of any other method as weak learners: the sign of their margin."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.boosting.weak_learners.base import WeakLearners
from solvers.boosting.weak_learners.boosted_model import Ensemble
from solvers.boosting.weak_learners.channels import Channels, Found
from solvers.boosting.weak_learners.committee_model import CommitteeModel
from solvers.core.base import Params, Solver
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.numerics.array_types import Array, Floats, Ints, Ints8
from solvers.numerics.thread_pool import ThreadPool
from solvers.output_codes.columns.builder import ColumnModelBuilder
from solvers.output_codes.columns.models import SIDES

SLICE_PRODUCTS = 1 << 32
PASSES = 100


class BinaryMachines(WeakLearners):
    """Machines trained on the rows of a channel with the signs of u as labels and its sizes as weights.

    The weights are scaled to a mean of 1. Where all signs are the same, the constant is taken.

    Parameters
    ----------
    X, held : csr_matrix, shape (n, n_features) and (n_held, n_features)
        The training rows and those held out.
    method : type
        Of the machines.
    params : Params
        Of that method.
    """

    def __init__(self, X: sp.csr_matrix, held: sp.csr_matrix, method: type[Solver[Any]], params: Params) -> None:
        self.X, self.held, self.method, self.params = X, held, method, params
        self.work = PASSES * int(X.nnz)
        self._builder = ColumnModelBuilder(X.shape[1], 0)
        self._bits = [np.empty((0, -(-rows.shape[0] // 8)), np.uint8) for rows in (X, held)]
        self._pending = np.empty((0, 2))

    def find(self, channels: Channels, thread_pool: ThreadPool, seed: list[int]) -> Found | None:
        n_done = len(self._pending)
        many = max(thread_pool.size, SLICE_PRODUCTS // max(self.work, 1))
        chosen = range(n_done, min(channels.m, n_done + many))
        models: list[Model | None] = [None] * len(chosen)

        def train(at: int) -> None:
            models[at] = self._train(channels.weights(chosen[at]), [*seed, chosen[at]])

        thread_pool.run(partial(train, at) for at in range(len(chosen)))
        for j, model in zip(chosen, models, strict=True):
            learner = -1 if model is None else self._keep(model)
            value = float(channels.weights(j) @ self.responses(np.array([learner]))[0])
            self._pending = np.append(self._pending, [[learner, value]], axis=0)
        if len(self._pending) < channels.m:
            return None
        found = Found(self._pending[:, 0].astype(np.int64), self._pending[:, 1].copy())
        self._pending = self._pending[:0]
        return found

    def _train(self, u: Floats, seed: list[int]) -> Model | None:
        rows = np.flatnonzero(u)
        positive = u[rows] > 0
        if positive.all() or not positive.any():
            return None
        sizes = np.abs(u[rows])
        sizes = np.maximum(sizes * (len(rows) / sizes.sum()), np.finfo(np.float64).tiny)
        problem = Problem.check(self.X[rows], positive.astype(np.int32), SIDES, sizes)
        solver = self.method(self.params, seed=int(np.random.SeedSequence(seed).generate_state(1)[0]))
        state = None
        for step in solver.steps(problem):
            state = step.state
        assert state is not None, "a solver yields at least one step"
        return solver.bare_model(problem, state)

    def _keep(self, model: Model) -> int:
        number = len(self._bits[0])
        self._builder.add(number, model, 1.0)
        for part, X in enumerate((self.X, self.held)):
            scores = model.scores(X)
            row = np.packbits(scores[:, 1] > scores[:, 0])
            self._bits[part] = np.append(self._bits[part], row[None], axis=0)
        return number

    def responses(self, learners: Ints, *, held: bool = False) -> Ints8:
        n = (self.held if held else self.X).shape[0]
        out = np.ones((len(learners), n), np.int8)
        real = learners >= 0
        bits = np.unpackbits(self._bits[held][learners[real]], axis=1, count=n)
        out[real] = 2 * bits.astype(np.int8) - 1
        return out

    def arrays(self) -> dict[str, Array]:
        arrays: dict[str, Array] = {f"machine_{name}": array for name, array in self._builder.state().items()}
        bits, held = self._bits
        return arrays | {"machine_bits": bits, "machine_held_bits": held, "machine_pending": self._pending}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        self._bits = [np.array(arrays["machine_bits"]), np.array(arrays["machine_held_bits"])]
        self._pending = np.array(arrays["machine_pending"])
        held = {name.removeprefix("machine_"): array for name, array in arrays.items() if name.startswith("machine_")}
        self._builder = ColumnModelBuilder.from_state(self.X.shape[1], 0, held)

    def model(self, learners: Ints, ensemble: Ensemble) -> CommitteeModel:
        machines = ColumnModelBuilder.from_state(
            ensemble.n_features, len(self._bits[0]), self._builder.state()
        ).models()
        return CommitteeModel(machines, learners, ensemble)
