"""AdaBoost.MH: a multi-class problem as one binary problem for every pair of an example and a class.

    minimise  sum_i omega_i sum_l exp(-Y_il f_l(x_i)),   Y_il = +1 if l = y_i else -1,   f_l = sum_h w_lh h,

stage by stage, over weights of weak learners h, functions of an example to +1 or -1. Schapire and Singer 1999, Figure
3, with one of three weak hypotheses on pairs: a learner for every class; one stump with a sign for every class; one
stump with a real vote on either side for every class (their section 4.1). The largest f_l wins.
"""

import numpy as np

from solvers.boosting import adaboost_outputs
from solvers.boosting.adaboost_outputs import OutputParams, OutputRun
from solvers.boosting.boosting import Boosting
from solvers.boosting.rounds import Task
from solvers.core.base import Handles


class AdaboostMhParams(OutputParams):
    """Parameters of :class:`AdaboostMh`."""


class AdaboostMh(Boosting[AdaboostMhParams]):
    """AdaBoost on pairs of examples and classes; no certified gap."""

    name = "adaboost_mh"
    title = "AdaBoost.MH"
    formula = r"\sum_i \omega_i \sum_c \exp(-s_{ic} f_c(x_i)), \quad f_c = \sum_h w_{ch} h"
    paper = "Schapire and Singer 1999"
    handles = Handles(flat=True, certified=False)
    Params = AdaboostMhParams

    def run(self, task: Task) -> OutputRun:
        code = 2 * np.eye(task.n_classes, dtype=np.int8) - np.int8(1)
        return OutputRun(task, code, False, self.params, self.seed)

    def training_bytes(self, n_samples: int, n_classes: int) -> int:
        return adaboost_outputs.estimate_bytes(n_samples, n_classes)
