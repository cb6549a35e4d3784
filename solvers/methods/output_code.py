"""Binary machines for the columns of an output code, each trained by any method; the code decodes their margins.

    minimise  sum_t J_t(h_t),   J_t the base method's objective on the examples with M[y_i, t] != 0 and labels M[y_i, t]

M has one row a class and one column a binary problem: one against the rest, all pairs (zeros leave examples out),
random, exhaustive, error-correcting, or given. Crammer and Singer 2002, section 2; the families of Dietterich and
Bakiri 1995 and of Allwein, Schapire and Singer 2000, whose decodings by inner product, by Hamming distance and by loss
are all at hand (their equations 4 and 5). The columns do not depend on each other, so their duality gaps add up.

With ``code="designed"`` machines are trained for a random dense code, and then a code of -1 and +1 is designed for
their answers, column by column (Crammer and Singer 2002, section 4): the best first column, then others by descent.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from solvers.core.base import Handles, State, Step
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.output_codes import report
from solvers.output_codes.code_families import Family
from solvers.output_codes.code_model import coded
from solvers.output_codes.coded import Coded, CodedParams
from solvers.output_codes.columns.models import ColumnModels
from solvers.output_codes.columns.training import ColumnTraining
from solvers.output_codes.decoding import Loss
from solvers.output_codes.design.discrete import greedy_code


class OutputCodeParams(CodedParams):
    """Parameters of :class:`OutputCode`."""

    code: Literal[Family, "designed"] = Field(  # type: ignore[assignment]
        default="one_vs_rest",
        description="Family of the code matrix; exhaustive supports up to 11 classes. designed trains on the "
        "dense_random code, and then designs a code for the answers of its machines.",
    )
    C: Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)] | None = Field(  # type: ignore[assignment]
        default=None, description="Weight of the losses in every column; the default is that of the base method."
    )
    decoding: Literal["auto", "inner_product", "hamming", "loss"] = Field(
        default="auto",
        description="How margins h become scores: M h; minus the distance of their signs from the row; or minus "
        "the sum of the losses of M[c, t] h_t. auto selects hamming for codes with zeros and for "
        "designed codes, otherwise the inner product.",
    )
    decoding_loss: Literal["auto"] | Loss = Field(
        default="auto",
        description="Loss of decoding by loss; auto selects the squared hinge if the base method uses it, "
        "otherwise the hinge.",
    )


class OutputCode(Coded[OutputCodeParams]):
    """Any base method under a fixed output code."""

    name = "output_code"
    title = "Output code over binary machines"
    formula = r"\sum_t J_t(h_t), \quad J_t \text{ on the rows with } M_{y_i t} \ne 0"
    paper = "Crammer and Singer 2002; Allwein, Schapire and Singer 2000; Dietterich and Bakiri 1995"
    handles = Handles(flat=True, shards=True)
    Params = OutputCodeParams
    shards = "solvers.output_codes.code_shards:OutputCodeShards"

    def prepared(self, problem: Problem) -> Problem:
        return super().prepared(problem) if self.params.C is not None else self.at(1.0).prepared(problem)

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        return self.columns_of(problem).steps(state)

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        return self.column_bytes(n_samples, n_features, n_classes)

    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        return self.columns_of(problem).rescaled(state, ratio)

    def nonzero_duals(self, problem: Problem, state: State) -> float:
        return self.columns_of(problem).nonzero_duals(state)

    def fitted(self, problem: Problem, state: State) -> Model:
        columns = self.columns_of(problem)
        return self.decoded(problem, columns.models(state), columns.nonzero_duals(state))

    def columns_of(self, problem: Problem) -> ColumnTraining:
        """The machines of the code's columns, to be trained."""
        return self.machines_of(problem, self.code(problem))

    @property
    def family(self) -> str:
        return "dense_random" if self._is_designed else self.params.code

    @property
    def _is_designed(self) -> bool:
        return self.params.code == "designed" and self.params.matrix is None

    def decoded(self, problem: Problem, machines: ColumnModels, nonzero: float) -> Model:
        params, code = self.params, self.code(problem)
        designed: dict[str, float] = {}
        if self._is_designed and problem.n_classes > 2:
            answers = np.where(machines.margins(problem.X) > 0, 1, -1)
            code, errors = greedy_code(answers, problem.y, problem.n_classes)
            designed = {"designed_error": float(errors[-1])}
        # a column's margins on classes that it never saw are as large as on its own, and so are their losses: all pairs
        # of 113 labels had 25 % errors by inner product, 24 % by loss and 13 % by votes alone, those of 26 letters
        # 54 %, 16 % and 16 %
        how = params.decoding
        if how == "auto":
            how = "inner_product" if code.all() and not self._is_designed else "hamming"
        loss = params.decoding_loss
        if loss == "auto":
            loss = "squared_hinge" if params.base_params.get("loss") == "squared_hinge" else "hinge"
        # a mean over the columns, so that their number does not scale the scores
        model = coded(problem.classes, machines, code, how, loss, 1.0 / code.shape[1])
        sparsity = {} if np.isnan(nonzero) else {"nonzero_duals": nonzero}
        model.report = report.of_fixed_code(problem, code, machines) | designed | sparsity
        return model
