"""AdaBoost.MO: AdaBoost on the columns of an output code.

    minimise  sum_i omega_i sum_l exp(-M[y_i, l] f_l(x_i)),   f_l = sum_h w_lh h,

stage by stage, over weights of weak learners h, functions of an example to +1 or -1, for a code M of +1, -1 and 0 that
is chosen beforehand. Schapire and Singer 1999, section 7. The class wins whose row has the least loss,
``sum_l exp(-M[c, l] f_l(x))``.
"""

from functools import lru_cache
from typing import Annotated

from pydantic import Field

from solvers.boosting import adaboost_outputs
from solvers.boosting.adaboost_outputs import OutputParams, OutputRun
from solvers.boosting.boosting import Boosting
from solvers.boosting.rounds import Task
from solvers.core.base import Handles
from solvers.numerics.array_types import Ints8
from solvers.output_codes.code_families import Family, make, most_columns


class AdaboostMoParams(OutputParams):
    """Parameters of :class:`AdaboostMo`."""

    code: Family = Field(
        default="dense_random",
        description="Family of the code: one column per class or pair of classes, random with or without zeros, "
        "all splits of the classes, or words of a BCH code.",
    )
    columns: Annotated[int, Field(ge=1, le=1 << 16)] | None = Field(
        default=None, description="Columns of a random or BCH code; the default depends on the family."
    )


class AdaboostMo(Boosting[AdaboostMoParams]):
    """AdaBoost on the bits of an output code; no certified gap."""

    name = "adaboost_mo"
    title = "AdaBoost.MO"
    formula = r"\sum_i \omega_i \sum_t \exp(-M_{y_i t} f_t(x_i)), \quad f_t = \sum_h w_{th} h"
    paper = "Schapire and Singer 1999"
    handles = Handles(flat=True, certified=False)
    Params = AdaboostMoParams

    def run(self, task: Task) -> OutputRun:
        return OutputRun(task, self.code(task), True, self.params, self.seed)

    def code(self, task: Task) -> Ints8:
        return _code(self.params.code, task.n_classes, self.params.columns, self.seed)

    def training_bytes(self, n_samples: int, n_classes: int) -> int:
        columns = most_columns(self.params.code, n_classes, self.params.columns)
        # the code itself, and its two signs as floats where it decodes
        return adaboost_outputs.estimate_bytes(n_samples, columns) + 17 * n_classes * columns


@lru_cache(maxsize=4)
def _code(family: str, n_classes: int, columns: int | None, seed: int) -> Ints8:
    return make(family, n_classes, columns, seed)
