"""The nearest centroid by cosine (Rocchio's classifier).

    minimise  - sum_i m_{y_i}' x_i   over m_c of length 1,

    score(c) = log(max(0, cos(m_c, x)) + smoothing)

Each m_c is the sum of the rows of c at unit length, so that there is nothing to certify. Alone it is weak; in a pool
with margins it adds what they do not see where classes have few rows (Manning et al. 2008, section 14.2).
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from solvers.core.base import Handles, Params, Solver, State, Step
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.hierarchical.learnt_trees.centroid_model import CentroidModel
from solvers.hierarchical.learnt_trees.clustering import centroids


class CentroidsParams(Params):
    """Parameters of :class:`Centroids`."""

    smoothing: float = Field(
        default=0.05,
        gt=0,
        le=1,
        allow_inf_nan=False,
        description="Added to the cosine before its logarithm is computed.",
    )


class Centroids(Solver[CentroidsParams]):
    """Classes by the cosine of their mean."""

    name = "centroids"
    title = "Nearest centroid"
    formula = r"- \sum_i m_{y_i}^\top x_i \quad \text{over } \|m_c\| = 1"
    paper = "Manning et al. 2008, section 14.2"
    handles = Handles(flat=True, certified=False, closed_form=True)
    Params = CentroidsParams

    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        self.admit(problem)
        self.check_features(problem)
        means = centroids(problem.X, problem.y, problem.n_classes, problem.weights).T.tocsr()
        arrays = {"indptr": means.indptr, "indices": means.indices, "data": means.data.astype(np.float32)}
        yield Step(1, np.nan, np.nan, np.nan, True, arrays)

    def model(self, problem: Problem, state: State) -> Model:
        parts = tuple(np.array(state[name]) for name in ("data", "indices", "indptr"))
        means = sp.csr_matrix(parts, shape=(problem.n_features, problem.n_classes))
        return CentroidModel(problem.classes, means, self.params.smoothing)
