"""The multi-class machine of Crammer and Singer, by exact block steps on the dual.

    minimise  1/2 sum_c |w_c|^2 + C sum_i max_{c != y_i} max(0, 1 - (w_{y_i} - w_c)' x_i)

Crammer and Singer 2002, section 4, with C = 1/beta and margin 1. All dual variables of one example move together:
with b_c = (1 - f_y + f_c) / |x|^2 + alpha_c + S0 the optimum over alpha >= 0, sum alpha <= C is (b_c - theta)_+ at
the root theta of sum_c (b_c - theta)_+ = min(theta, C).

The report has the margins of the sample, and the bounds of Corollaries 2 and 3 where it is separated, of problems whose
scores are few enough not to cost time.
"""

from collections.abc import Mapping

import numpy as np

from solvers.core.base import Handles
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.linear.relative_margins import RelativeMargins, RelativeParams
from solvers.metrics import bounds

# scores of the sample, and weights, beyond which margins are left out of the report
MOST_SCORES, MOST_WEIGHTS = 1 << 24, 1 << 26
CHUNK_BYTES = 64 << 20


class CrammerSinger(RelativeMargins):
    """All-in-one machine that takes the largest margin violation of an example."""

    name = "crammer_singer"
    title = "Crammer-Singer SVM"
    formula = r"\tfrac12 \sum_c \|w_c\|^2 + C \sum_i \max_{c \ne y_i} (1 - (w_{y_i} - w_c)^\top x_i)_+"
    paper = "Crammer and Singer 2002"
    handles = Handles(flat=True, shards=True)
    Params = RelativeParams
    largest_loss = True

    def reported(self, problem: Problem, fitted: Model) -> Mapping[str, float]:
        n, k, d = problem.n_samples, problem.n_classes, problem.n_features
        if not problem.X.nnz or n * k > MOST_SCORES or d * k > MOST_WEIGHTS:
            return {}
        return _margins(problem, fitted)


def _margins(problem: Problem, model: Model) -> dict[str, float]:
    """Margins of the sample and the bounds that follow from them, as :func:`solvers.metrics.bounds.report_of_margins`.

    A vector added to all classes' weights changes no margin, so that norms are of weights less their mean.
    """
    weights = model.linear_weights()
    assert weights is not None, "the machine is linear"
    W = weights.dense().astype(np.float64)
    W -= W.mean(axis=1, keepdims=True)
    margins, size = np.full(problem.n_classes, np.inf), max(1, CHUNK_BYTES // (8 * problem.n_classes))
    for begin in range(0, problem.n_samples, size):
        F = np.asarray(model.scores(problem.X[begin : begin + size]), np.float64)
        margins = np.minimum(margins, bounds.class_margins(F, problem.y[begin : begin + size]))
    radius = float(np.sqrt(problem.X.multiply(problem.X).sum(axis=1).max()))
    return bounds.report_of_margins(margins, problem.n_samples, (W**2).sum(axis=0), radius)
