"""Linear programs that design continuous codes, solved by growing sets of constraints.

    minimise  |M| + sum_i C_i max_{r != y_i} max(0, b_ir + h_i' (M_r - M_{y_i}))

over M (n_classes, n_columns), with the norm l1 or l_infinity of all its entries; Crammer and Singer 2002, equation 15
and section 5.1, divided by beta. b is 1, or what earlier columns have left of it (their redefinition of b below
equation 32).

The programs have a constraint for every example and wrong class, few of which matter. Of a working set of them the dual
program is solved,

    maximise  sum eta_ir b_ir   subject to  eta >= 0,  sum_r eta_ir <= C_i,  |sum eta_ir (e_r - e_{y_i}) h_i'|* <= 1

with the dual norm: its optimum is a lower bound for all constraints, its multipliers are a code M, and the objective at
M an upper bound. The constraints that M violates join the set, those with room to spare leave it while the lower bound
rises; it never falls, and the two meet.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from solvers.core.base import Solver, State, Step
from solvers.core.machine import Machine
from solvers.core.memory import refuse
from solvers.core.model import Model
from solvers.numerics.array_types import Floats, Ints, Ints32
from solvers.output_codes.design.linear_programs import LinearProgram
from solvers.output_codes.design.task import Design, Task

Norm = Literal["l1", "linf"]

NEAR = 0.1
IDLE = 0.5
NEGLIGIBLE = 1e-9
# what HiGHS was seen to take at its peak by non-zero entry of a program, from one to five million of them
BYTES_PER_ENTRY = 200


@dataclass(frozen=True, eq=False)
class Program:
    """A design problem.

    Attributes
    ----------
    H : float64 array or csr_matrix, shape (n_samples, n_columns)
        Margins of the columns' machines.
    y : int32 array, shape (n_samples,)
    bounds : float64 array, shape (n_samples,)
        C_i.
    norm : {"l1", "linf"}
    offsets : float64 array, shape (n_samples, n_classes), optional
        b; 1 where left out. The entry of the true class does not count.
    floor : float
        The norm counts as no less than this: what the earlier columns have it at.
    """

    H: Any
    y: Ints32
    bounds: Floats
    n_classes: int
    norm: Norm
    offsets: Floats | None = None
    floor: float = 0.0

    def norm_of(self, M: Floats) -> float:
        """The norm, no less than the floor."""
        size = np.abs(M)
        return float(size.sum()) if self.norm == "l1" else max(float(size.max(initial=0.0)), self.floor)

    def violations(self, M: Floats) -> Floats:
        """``b_ir + h_i' (M_r - M_y)``, minus infinity at the true class: shape (n_samples, n_classes)."""
        F = np.asarray(self.H @ M.T)
        rows = np.arange(len(self.y))
        V = F - F[rows, self.y][:, None] + (1.0 if self.offsets is None else self.offsets)
        V[rows, self.y] = -np.inf
        return np.asarray(V)

    def primal(self, M: Floats, V: Floats) -> float:
        """The objective at M, whose violations are V."""
        return self.norm_of(M) + float(self.bounds @ np.maximum(V.max(axis=1), 0.0))

    def working_set(self, V: Floats) -> Ints:
        """The constraints that a guess of M makes likely: each example's worst, and those near to where it counts."""
        worst = V.max(axis=1, keepdims=True)
        return np.flatnonzero((np.maximum(worst, 0.0) - NEAR <= V) | (worst == V))

    def slack(self, working: Ints, V: Floats) -> Floats:
        """What the constraints of a working set leave to each example's loss, shape (n_samples,)."""
        slack = np.zeros(len(self.y))
        np.maximum.at(slack, working // self.n_classes, V.ravel()[working])
        return slack

    def grown(self, working: Ints, V: Floats, *, purge: bool) -> Ints:
        """The next working set: with the worse half of what V violates.

        With ``purge`` it loses what has room to spare at V. That must be only where the lower bound has risen: then no
        working set comes twice, and the number of rounds is finite.
        """
        slack = self.slack(working, V)
        kept = working[V.ravel()[working] >= slack[working // self.n_classes] - IDLE] if purge else working
        worst = V.max(axis=1)
        level = slack + np.maximum(0.5 * (worst - slack), NEGLIGIBLE)
        return np.union1d(kept, np.flatnonzero(level[:, None] <= V))

    def estimate_bytes(self, n_constraints: int) -> int:
        """What a program with so many constraints takes in memory while it is solved."""
        H = self.H
        per_row = H.nnz / H.shape[0] if isinstance(H, sp.csr_matrix) else H.shape[1]
        return int(2 * per_row * n_constraints * BYTES_PER_ENTRY)

    def check_size(self, n_constraints: int, megabytes: int | None) -> None:
        """Raise TooLargeError where a program with so many constraints would take more than so many megabytes."""
        what = f"a linear program of {n_constraints:,} constraints on {self.n_classes} x {self.H.shape[1]} code entries"
        refuse(what, self.estimate_bytes(n_constraints), megabytes)

    def solving(self, working: Ints, accuracy: float) -> Generator[None, None, "Solution"]:
        """Find the best code for the constraints of a working set, and a lower bound for all.

        Yields now and then as :meth:`LinearProgram.solving` does.
        """
        k, L = self.n_classes, self.H.shape[1]
        examples, classes = np.divmod(working, k)
        b = np.ones(len(working)) if self.offsets is None else self.offsets.ravel()[working]
        scale = _largest(self.H)
        # in these units neither the box of the dual variables nor that of the dual norm is small
        unit = min(float(self.bounds.max()), 1.0 / scale)
        D, entries = _differences(self.H, self.y, examples, classes, L)
        present, place = np.unique(examples, return_inverse=True)
        m, e = len(working), len(entries)
        per_example = sp.csr_matrix((np.ones(m), (place, np.arange(m))), (len(present), m))
        top = 1.0 / (scale * unit)
        if self.norm == "l1":
            A_ub = sp.hstack([per_example, sp.csr_matrix((len(present), e))], format="csc")
            A_eq = sp.hstack([D.T / scale, sp.identity(e)], format="csc")
            b_ub, costs = self.bounds[present] / unit, np.concatenate([-b, np.zeros(e)])
            box = np.concatenate([np.tile([0.0, np.inf], (m, 1)), np.tile([-top, top], (e, 1))])
        else:
            rest = sp.csr_matrix(np.concatenate([np.zeros(m), np.ones(2 * e + 1)])[None, :])
            A_ub = sp.vstack([sp.hstack([per_example, sp.csr_matrix((len(present), 2 * e + 1))]), rest], format="csc")
            A_eq = sp.hstack([D.T / scale, sp.identity(e), -sp.identity(e), sp.csr_matrix((e, 1))], format="csc")
            b_ub = np.append(self.bounds[present] / unit, top)
            costs = np.concatenate([-b, np.zeros(2 * e), [-self.floor * scale]])
            box = np.tile([0.0, np.inf], (len(costs), 1))
        tolerance = min(1e-7, max(1e-10, accuracy))
        x, multipliers = yield from LinearProgram(costs, A_ub, b_ub, A_eq, np.zeros(e), box, tolerance).solving()
        M = np.zeros(k * L)
        M[entries] = multipliers / scale
        eta = np.maximum(x[:m], 0.0) * unit
        return Solution(M.reshape(k, L), self._bound(eta, b, D, present, place), eta)

    def _bound(self, eta: Floats, b: Floats, D: sp.csr_matrix, present: Ints, place: Ints) -> float:
        """The dual value of eta, once it is shrunk to be feasible beyond doubt."""
        totals = np.bincount(place, eta, len(present))
        over = np.maximum(1.0, totals / self.bounds[present])
        eta /= over[place]
        pull = np.abs(eta @ D)
        used = float(pull.max(initial=0.0) if self.norm == "l1" else pull.sum())
        eta /= max(1.0, used)
        left = 0.0 if self.norm == "l1" else self.floor * max(0.0, 1.0 - used)
        return float(eta @ b) + left


@dataclass(frozen=True, eq=False)
class Solution:
    """Of a working set's program: a code (n_classes, n_columns), a lower bound, the dual variables."""

    M: Floats
    dual: float
    eta: Floats


def _largest(H: Any) -> float:
    return float(abs(H).max()) or 1.0


def _differences(H: Any, y: Ints32, examples: Ints, classes: Ints, L: int) -> tuple[sp.csr_matrix, Ints]:
    """Rows ``(e_r - e_y) h'`` of some constraints, in the entries of M that one of them has; and those entries."""
    rows = sp.csr_matrix(H[examples])
    lengths = np.diff(rows.indptr)
    right = rows.indices + np.repeat(classes * L, lengths)
    wrong = rows.indices + np.repeat(y[examples].astype(np.int64) * L, lengths)
    entries, at = np.unique(np.concatenate([right, wrong]), return_inverse=True)
    owner = np.repeat(np.arange(len(examples)), lengths)
    values = np.concatenate([rows.data, -rows.data])
    D = sp.csr_matrix((values, (np.concatenate([owner, owner]), at)), (len(examples), len(entries)))
    return D, entries


class QuadraticDesign(Design):
    """The squared l2 norm, by a multi-class machine on the margins with any kernel (Crammer and Singer 2002, equation
    29)."""

    def __init__(self, task: Task, solver: Machine[Any]) -> None:
        self._problem = task.problem
        self._solver = solver

    def steps(self, state: State | None) -> Iterator[Step]:
        return self._solver.steps(self._problem, state)

    def code(self, state: State) -> Floats | Model:
        model = self._solver.bare_model(self._problem, state)
        linear = model.linear_weights()
        return model if linear is None else linear.coef(self._problem.n_features)

    def rescaled(self, state: State, ratio: float) -> State | None:
        return self._solver.rescale(self._solver.prepared(self._problem), state, ratio)

    def nonzero_duals(self, state: State) -> float:
        return self._solver.nonzero_duals(self._problem, state)


def guess_by(task: Task, make: Callable[[float], Solver[Any]]) -> Callable[[], Floats]:
    """A rough code by the squared norm, on margins scaled to 1; ``make`` is called with its C."""

    def guess() -> Floats:
        scale = float(abs(task.H).max()) or 1.0
        solver = make(task.C * scale)
        problem = replace(task, H=task.H / scale).problem
        *_, last = solver.steps(problem)
        linear = solver.bare_model(problem, last.state).linear_weights()
        assert linear is not None, "a machine for the inner product makes a linear model"
        return linear.coef(problem.n_features) / scale

    return guess
