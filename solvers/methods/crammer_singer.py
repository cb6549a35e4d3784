"""The multi-class machine of Crammer and Singer, by exact block steps on the dual.

    minimise  1/2 sum_c |w_c|^2 + C sum_i max_{c != y_i} max(0, 1 - (w_{y_i} - w_c)' x_i)

Crammer and Singer 2002, section 4, with C = 1/beta and margin 1. All dual variables of one example move together:
with b_c = (1 - f_y + f_c) / |x|^2 + alpha_c + S0 the optimum over alpha >= 0, sum alpha <= C is (b_c - theta)_+ at
the root theta of sum_c (b_c - theta)_+ = min(theta, C).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.ascent import AscentParams, DualAscent, Task
from solvers.base import Handles
from solvers.kernels import joint
from solvers.kernels.coefficients import Coefficients


class CrammerSinger(DualAscent[AscentParams]):
    """All-in-one machine that takes the largest margin violation of an example."""

    name = "crammer_singer"
    title = "Crammer-Singer SVM"
    paper = "Crammer and Singer 2002"
    handles = Handles(flat=True)
    Params = AscentParams

    def visit(
        self,
        task: Task,
        order: NDArray[np.int32],
        begin: int,
        end: int,
        full: bool,
        most: int,
        W: NDArray[Any],
        duals: Coefficients,
        rest: NDArray[np.uint8],
        gains: NDArray[np.float32],
        tally: NDArray[np.float64],
    ) -> int:
        return int(joint.visit(*task, order, begin, end, full, most, True, W, duals, rest, gains, tally))

    def certify(
        self, task: Task, W: NDArray[Any], duals: Coefficients, gaps: NDArray[np.float64]
    ) -> tuple[float, float]:
        return joint.certify(*task, True, W, duals, gaps)  # type: ignore[no-any-return]

    def loss_at_zero(self, n_classes: int) -> float:
        return 1.0
