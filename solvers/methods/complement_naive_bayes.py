"""Complement naive Bayes: of each class the terms that the rows of all others have.

    minimise  - sum_j (N_cj + smoothing) log q_cj   over q_c >= 0, sum_j q_cj = 1, for every class c,

    score(c) = - sum_j x_j log q_cj

N_cj is the sum of feature j over the rows of all classes but c, values below 0 taken as 0 (Rennie et al. 2003,
section 3.1, without the normalisation of weights). Solved by q_cj in proportion to N_cj + smoothing, so that there is
nothing to certify. A feature that no row has weighs nothing. Where classes are few and rows long, its places beyond
the first are better than those of margins, and a pool takes what it adds.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from solvers.core.base import Handles, Params, Solver, State, Step
from solvers.core.linear_model import LinearModel
from solvers.core.memory import refuse
from solvers.core.model import Model
from solvers.core.problem import Problem

# the sums, their logarithms, and the weights as float32, of 8 bytes
COPIES = 2.5


class ComplementNaiveBayesParams(Params):
    """Parameters of :class:`ComplementNaiveBayes`."""

    smoothing: float = Field(
        default=0.3, gt=0, le=1e6, allow_inf_nan=False, description="Added to the sum of each feature over the rows."
    )
    memory_mb: int | None = Field(
        default=None, ge=1, description="Memory limit of training in megabytes; the default is the machine's memory."
    )


class ComplementNaiveBayes(Solver[ComplementNaiveBayesParams]):
    """Classes by what the rows of all other classes have."""

    name = "complement_naive_bayes"
    title = "Complement naive Bayes"
    formula = r"- \sum_j (N_{\bar c j} + \text{smoothing}) \log q_{cj} \quad \text{over } \sum_j q_{cj} = 1"
    paper = "Rennie et al. 2003"
    handles = Handles(flat=True, certified=False, closed_form=True)
    Params = ComplementNaiveBayesParams

    @property
    def column_scaling(self) -> Literal["max_abs"]:
        return "max_abs"

    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        self.admit(problem)
        self.check_features(problem)
        n, k = problem.n_samples, problem.n_classes
        needed = int(COPIES * 8 * problem.n_features * k)
        refuse(f"{self.name} with {k:,} classes", needed, self.params.memory_mb)
        of_class = sp.csr_matrix((problem.weights, (problem.y, np.arange(n))), shape=(k, n))
        sums = np.ascontiguousarray((of_class @ problem.X.maximum(0)).toarray().T)
        features = np.flatnonzero(sums.any(axis=1))
        others = sums[features].sum(axis=1, keepdims=True) - sums[features] + self.params.smoothing
        W = (np.log(others.sum(axis=0)) - np.log(others)).astype(np.float32)
        yield Step(1, np.nan, np.nan, np.nan, True, {"features": features, "W": W})

    def model(self, problem: Problem, state: State) -> Model:
        features, W = np.array(state["features"]), np.array(state["W"])
        return LinearModel(problem.classes, problem.n_features, features, W)
