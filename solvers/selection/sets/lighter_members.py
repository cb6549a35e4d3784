"""Members over sets of labels with fewer numbers: labels are many, and most of their weights say next to nothing.

A linear weight is dropped where it is below ``SHARE`` of the largest of its label, a coefficient of a kernel where it
is below ``KERNEL_SHARE`` of it; the latter are rounded to single precision. What the dropped weights contribute in the
mean over the rows goes into the intercept: most of them are small, negative and of frequent terms. The models of trials
become lighter before they are measured and calibrated, so that the measures, the choice and the probabilities are those
of what is kept.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.core.base import Solver, State
from solvers.core.linear_model import LinearModel
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.hierarchical.subtree_model import SubtreeModel
from solvers.kernel_svm.kernel_model import KernelModel
from solvers.numerics.array_types import Floats

# models with fewer numbers stay as they are
MANY_NUMBERS = 1 << 22
# on two libraries' records nDCG@10 was the same with 0.01, 0.05 and 0.1, and lower with 0.15; on abstracts in English
# it was the same with 0.1 as with all weights, and lower by 0.007 with 0.05
SHARE = 0.1
# on two libraries' records nDCG@10 was higher with 0.002 or 0.003 than with all, and halved with 0.01 on one of them
KERNEL_SHARE = 0.002
_ROWS = 1024


def light_member(solver: Solver[Any], problem: Problem, state: State) -> Model:
    """The model of a state with fewer numbers, where it has many."""
    if problem.n_features * problem.n_classes < MANY_NUMBERS:
        return lighter(solver.bare_model(problem, state), problem.X)
    return lighter(solver.light_model(problem, state, SHARE), problem.X)


def lighter(model: Model, X: sp.csr_matrix) -> Model:
    """The model with fewer numbers, where it has many; the mean scores of rows, shape (n_samples, n_features), stay."""
    parts = model.parts if isinstance(model, SubtreeModel) else model
    if isinstance(parts, KernelModel) and parts.coefficients.size >= MANY_NUMBERS:
        _drop_small(parts.coefficients)
        return model
    if not isinstance(parts, LinearModel) or parts.W.size < MANY_NUMBERS:
        return model
    few = _sparse(parts, X)
    found = model.with_parts(few) if isinstance(model, SubtreeModel) else few
    found.report = dict(model.report)
    return found


def _drop_small(coefficients: Floats) -> None:
    """Zero small coefficients in place, shape (n_support, n_labels), and round the others."""
    least = KERNEL_SHARE * np.maximum(coefficients.max(axis=0), -coefficients.min(axis=0))
    for begin in range(0, len(coefficients), _ROWS):
        some = coefficients[begin : begin + _ROWS]
        some[np.abs(some) < least] = 0.0
        some[:] = some.astype(np.float32)


def _sparse(model: LinearModel, X: sp.csr_matrix) -> Model:
    """The model without small weights; as it is where half of them would be left. The given weights stay."""
    W, rows, mean = model.W, [], np.asarray(X.mean(axis=0)).ravel()[model.features]
    dropped = np.zeros(W.shape[1])
    least = SHARE * np.maximum(W.max(axis=0), -W.min(axis=0))
    for begin in range(0, len(W), _ROWS):
        some = W[begin : begin + _ROWS]
        kept = np.abs(some) >= least
        dropped += mean[begin : begin + _ROWS] @ np.where(kept, 0.0, some)
        rows.append(sp.csr_matrix(np.where(kept, some, 0)))
    whole = sp.csr_matrix(sp.vstack(rows, format="csr"))
    if 2 * whole.nnz >= W.size:
        return model
    counts = np.zeros(model.n_features + 1, np.int64)
    counts[model.features + 1] = np.diff(whole.indptr)
    shape = (model.n_features, len(model.classes))
    sparse = sp.csr_matrix((whole.data, whole.indices, np.cumsum(counts)), shape=shape)
    intercept = dropped if model.intercept is None else model.intercept + dropped
    return SparseLinearModel(model.classes, sparse, intercept.astype(W.dtype))
