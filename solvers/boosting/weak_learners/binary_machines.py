"""Binary machines of any other method as weak learners, by the sign of their margin, and the model of their votes."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.boosting.weak_learners.base import WeakLearners
from solvers.boosting.weak_learners.boosted_model import BoostedModel, Ensemble, shares
from solvers.boosting.weak_learners.channels import Channels, Found
from solvers.core.base import Params, Solver
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.labels import stored_arrays
from solvers.numerics.array_types import AnyFloats, Array, Floats, Ints, Ints8, Ints32
from solvers.numerics.thread_pool import ThreadPool
from solvers.output_codes.columns.builder import ColumnModelBuilder
from solvers.output_codes.columns.models import SIDES, ColumnModels

CHUNK_BYTES = 64 << 20
SLICE_PRODUCTS = 1 << 32
PASSES = 100


class CommitteeModel(BoostedModel):
    """The sum of binary machines, each with its weights: h_t says +1 where the margin of its machine is positive.

    Parameters
    ----------
    machines : ColumnModels
        The machines.
    learners : int64 array, shape (n_learners,)
        The machine of each h_t; -1 for the constant +1.
    """

    kind = "committee"
    unexplained = "its votes are the signs of margins, which jump from one side to the other"

    def __init__(self, machines: ColumnModels, learners: Ints, ensemble: Ensemble) -> None:
        super().__init__(ensemble)
        self.machines, self.learners = machines, learners
        self._weights = ensemble.weights(len(learners))

    @property
    def importances(self) -> Floats:
        """Each feature's share of the machines' absolute weights, those of each machine adding up to its votes'.

        Raises
        ------
        AttributeError
            The machines are not linear.
        """
        linear = self.machines.linear
        if linear is None:
            raise AttributeError("feature weights exist only for committees of linear machines")
        coefficients = abs(sp.csr_matrix(linear.W))
        sums = np.asarray(coefficients.sum(axis=0)).ravel()
        votes = np.zeros(self.machines.n_columns)
        real = self.learners >= 0
        np.add.at(votes, self.learners[real], np.abs(self._weights[real]).sum(axis=1))
        parts = np.zeros(self.n_features)
        parts[linear.features] = coefficients @ np.divide(votes, sums, out=np.zeros_like(votes), where=sums > 0)
        return shares(parts)

    def scores(self, X: sp.csr_matrix) -> AnyFloats:
        size = max(1, CHUNK_BYTES // (8 * max(self.machines.n_columns, len(self.classes))))
        parts = [self._responses(X[at : at + size]) @ self._weights for at in range(0, X.shape[0], size)]
        return self.decode(np.concatenate([np.empty((0, self._weights.shape[1])), *parts]))

    def score_one(self, indices: Ints32, values: Floats) -> AnyFloats:
        responses = self._signs(self.machines.margins_one(indices, values)[None])
        return np.asarray(self.decode(responses @ self._weights)[0])

    def staged_scores(self, X: sp.csr_matrix) -> Iterator[AnyFloats]:
        """Scores after each round of training, shape (n_samples, n_classes); those of the last are :meth:`scores`."""
        size = max(1, CHUNK_BYTES // (8 * max(self.machines.n_columns, 1)))
        responses = np.empty((X.shape[0], len(self.learners)), np.int8)
        for at in range(0, X.shape[0], size):
            responses[at : at + size] = self._responses(X[at : at + size])
        return self.staged(len(responses), lambda t: responses[:, t])

    def _responses(self, X: sp.csr_matrix) -> Floats:
        return self._signs(self.machines.margins(X))

    def _signs(self, margins: Floats) -> Floats:
        """What every learner says, shape (n_samples, n_learners)."""
        responses = np.ones((len(margins), len(self.learners)))
        real = np.flatnonzero(self.learners >= 0)
        responses[:, real] = np.where(margins[:, self.learners[real]] > 0, 1.0, -1.0)
        return responses

    def arrays(self) -> dict[str, Array]:
        return self.ensemble.arrays() | self.machines.arrays() | {"learners": self.learners}

    @classmethod
    def from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]) -> "CommitteeModel":
        ensemble = Ensemble.of_arrays(classes, n_features, arrays)
        machines, learners = ColumnModels.from_arrays(n_features, arrays), arrays["learners"]
        stored_arrays.require_within("learners", learners, -1, machines.n_columns)
        ensemble.require_learners(len(learners))
        return cls(machines, learners, ensemble)


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
