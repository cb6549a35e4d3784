"""Generic solvers of quadratic programs, as the benchmarks call them: each in the form that suits it best.

They minimise ``1/2 t' P t + q' t`` subject to ``E t = 0`` and ``t <= top``, and return the least value that they found;
nan where they ended without one. All are asked for an accuracy of 1e-6. Their matrices are made beforehand.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import clarabel
import highspy
import numpy as np
import osqp
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, minimize

Floats = NDArray[np.float64]

ACCURACY = 1e-6
MOST_ITERATIONS = 1_000_000


class Design(NamedTuple):
    """The quadratic design of a code, in the forms that solvers take.

    Attributes
    ----------
    P, q, E, top : float64 arrays, shapes (n, n), (n,), (m, n) and (n,)
        The dual program.
    upper, rows : csc_matrix
        The upper half of P, and E above an identity.
    primal : tuple of P (sparse), q, A (sparse) and b
        The primal program, with ``A t <= b``; there is none but for the linear kernel.
    """

    P: Floats
    q: Floats
    E: Floats
    top: Floats
    upper: sp.csc_matrix
    rows: sp.csc_matrix
    primal: tuple[sp.csc_matrix, Floats, sp.csc_matrix, Floats]

    @classmethod
    def of(cls, X: Floats, y: NDArray[np.int32], k: int) -> "Design":
        """That of equation 27 at beta = 1, the dual variables of an example side by side."""
        n, d = X.shape
        own = np.eye(k)[y]
        P, E = np.kron(X @ X.T, np.eye(k)), np.kron(np.eye(n), np.ones((1, k)))
        upper, rows = sp.csc_matrix(np.triu(P)), sp.csc_matrix(sp.vstack([sp.csc_matrix(E), sp.identity(n * k)]))
        # of an example and a class c: (M_c - M_y) x - xi <= -1, at its own class -xi <= 0
        wrong = (np.eye(k)[None, :, :] - own[:, None, :])[:, :, :, None] * X[:, None, None, :]
        A = sp.hstack([wrong.reshape(n * k, k * d), -sp.kron(sp.identity(n), np.ones((k, 1)))], format="csc")
        A.eliminate_zeros()
        square = sp.csc_matrix(sp.diags(np.append(np.ones(k * d), np.zeros(n))))
        primal = square, np.append(np.zeros(k * d), np.ones(n)), A, own.ravel() - 1.0
        return cls(P, (1.0 - own).ravel(), E, own.ravel(), upper, rows, primal)


def by_clarabel(design: Design) -> float:
    m, n = design.E.shape
    cones = [clarabel.ZeroConeT(m), clarabel.NonnegativeConeT(n)]
    return _clarabel(design.upper, design.q, design.rows, np.append(np.zeros(m), design.top), cones)


def by_clarabel_on_primal(design: Design) -> float:
    P, q, A, b = design.primal
    # the least primal value is the largest dual one
    return -_clarabel(P, q, A, b, [clarabel.NonnegativeConeT(len(b))])


def _clarabel(P: Any, q: Any, A: Any, b: Any, cones: Any) -> float:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs, settings.tol_gap_rel, settings.tol_feas = 0.0, ACCURACY, ACCURACY
    return float(clarabel.DefaultSolver(P, q, A, b, cones, settings).solve().obj_val)


def by_osqp(design: Design) -> float:
    m, n = design.E.shape
    low, high = np.append(np.zeros(m), np.full(n, -np.inf)), np.append(np.zeros(m), design.top)
    model = osqp.OSQP()
    limits = {"eps_abs": ACCURACY, "eps_rel": ACCURACY, "max_iter": MOST_ITERATIONS}
    model.setup(design.upper, design.q, design.rows, low, high, verbose=False, **limits)
    return float(model.solve(raise_error=False).info.obj_val)


def by_cvxopt(design: Design) -> float:
    P, q, E, top, *_ = design
    from cvxopt import matrix, solvers

    limits = {"show_progress": False, "abstol": 0.0, "reltol": ACCURACY, "feastol": ACCURACY}
    G, A = matrix(np.eye(len(q))), matrix(E)
    found = solvers.qp(matrix(P), matrix(q), G, matrix(top), A, matrix(np.zeros(len(E))), options=limits)
    return float(found["primal objective"]) if found["status"] == "optimal" else float("nan")


def by_daqp(design: Design) -> float:
    P, q, E, top, *_ = design
    import daqp

    m, n = E.shape
    high, low = np.append(top, np.zeros(m)), np.append(np.full(n, -1e30), np.zeros(m))
    sense = np.append(np.zeros(n, np.int32), np.full(m, 5, np.int32))
    limits = {"primal_tol": ACCURACY, "dual_tol": ACCURACY, "iter_limit": MOST_ITERATIONS}
    # P is singular, which only its proximal steps can take
    _, value, flag, _ = daqp.solve(P, q, E, high, low, sense, eps_prox=1e-4, **limits)
    return float(value) if flag > 0 else float("nan")


def by_highs(design: Design) -> float:
    _, q, E, top, *_ = design
    m, n = E.shape
    model = highspy.Highs()
    model.silent()
    task = highspy.HighsModel()
    lower, columns = sp.csc_matrix(design.upper.T), design.rows[:m]
    lp, hessian = task.lp_, task.hessian_
    lp.num_col_, lp.num_row_, lp.col_cost_ = n, m, q
    lp.col_lower_, lp.col_upper_ = np.full(n, -highspy.kHighsInf), top
    lp.row_lower_, lp.row_upper_ = np.zeros(m), np.zeros(m)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = columns.indptr, columns.indices, columns.data
    hessian.dim_, hessian.start_, hessian.index_, hessian.value_ = n, lower.indptr, lower.indices, lower.data
    model.passModel(task)
    model.run()
    done = model.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(model.getInfo().objective_function_value) if done else float("nan")


def by_slsqp(design: Design) -> float:
    P, q, E, top, *_ = design
    found = minimize(
        lambda t: 0.5 * t @ P @ t + q @ t,
        np.zeros(len(q)),
        jac=lambda t: P @ t + q,
        bounds=[(None, bound) for bound in top],
        constraints=[{"type": "eq", "fun": lambda t: E @ t, "jac": lambda t: E}],
        method="SLSQP",
        options={"maxiter": MOST_ITERATIONS, "ftol": 1e-2 * ACCURACY},
    )
    return float(found.fun) if found.success else float("nan")


def by_trust_region(design: Design) -> float:
    P, q, E, top, *_ = design
    found = minimize(
        lambda t: 0.5 * t @ P @ t + q @ t,
        np.zeros(len(q)),
        jac=lambda t: P @ t + q,
        hess=lambda t: P,
        bounds=Bounds(-np.inf, top),
        constraints=LinearConstraint(E, 0, 0),
        method="trust-constr",
        options={"maxiter": MOST_ITERATIONS, "gtol": ACCURACY, "barrier_tol": 1e-2 * ACCURACY},
    )
    return float(found.fun) if found.success else float("nan")


# what each is: the way it goes, and whether it takes its matrices dense or sparse; and the package that has it
_ALL: dict[str, tuple[Callable[..., float], str, str]] = {
    "Clarabel": (by_clarabel, "interior point, sparse", "clarabel"),
    "Clarabel, primal": (by_clarabel_on_primal, "interior point, sparse", "clarabel"),
    "OSQP": (by_osqp, "operator splitting, sparse", "osqp"),
    "HiGHS": (by_highs, "active set, sparse", "highspy"),
    "CVXOPT": (by_cvxopt, "interior point, dense", "cvxopt"),
    "DAQP": (by_daqp, "dual active set, dense", "daqp"),
    "SciPy SLSQP": (by_slsqp, "sequential least squares, dense", "scipy"),
    "SciPy trust-constr": (by_trust_region, "trust region interior point, dense", "scipy"),
}
RIVALS = {name: (solve, kind) for name, (solve, kind, package) in _ALL.items() if find_spec(package)}
