"""The flat machines with relative margins: one kernel; each method says how an example's violations become its loss."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from solvers.ascent import A, DualAscent, Task
from solvers.kernels import joint
from solvers.kernels.coefficients import Coefficients
from solvers.kernels.settling import settle


class RelativeMargins(DualAscent[A]):
    """A machine of this family takes the largest violation ``1 - f_y + f_c`` of an example, or sums them."""

    largest_loss: ClassVar[bool]

    def loss_at_zero(self, n_classes: int) -> float:
        return 1.0 if self.largest_loss else n_classes - 1.0

    def multiply(self, task: Task, duals: Coefficients, factor: float) -> None:
        super().multiply(task, duals, factor)
        if not self.largest_loss:
            settle(duals.start, duals.length, duals.values, task.bounds)

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
        return int(joint.visit(*task, order, begin, end, full, most, self.largest_loss, W, duals, rest, gains, tally))

    def certify(
        self, task: Task, W: NDArray[Any], duals: Coefficients, gaps: NDArray[np.float64]
    ) -> tuple[float, float]:
        return joint.certify(*task, self.largest_loss, W, duals, gaps)  # type: ignore[no-any-return]
