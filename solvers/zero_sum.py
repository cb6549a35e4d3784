"""The flat machines with absolute margins and sum_c w_c = 0: one kernel; each method chooses the constraints."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.ascent import A, DualAscent, Task
from solvers.kernels import absolute
from solvers.kernels.absolute import Alpha, Margins


class ZeroSum(DualAscent[A]):
    """A machine of this family is no more than its margins (Dogan et al. 2016, Table 1)."""

    refinements = 0

    @abstractmethod
    def margins(self, n_classes: int) -> Margins:
        """The constraints of one example."""

    def loss_at_zero(self, n_classes: int) -> float:
        own, other, own_share, other_share, shared = self.margins(n_classes)
        if shared:
            return max(own if own_share > 0 else 0.0, other if other_share > 0 else 0.0)
        return own_share * own + other_share * other * (n_classes - 1)

    def duals(self, task: Task) -> Alpha:
        dtype = task.rows.data.dtype
        return Alpha(np.zeros((len(task.y), task.n_classes), dtype))

    def with_room(self, task: Task, duals: Alpha) -> Alpha:
        return duals

    def rebuild(self, task: Task, duals: Alpha, W: NDArray[Any]) -> None:
        absolute.rebuild(task.rows, task.y, task.n_classes, duals.values, W)

    def visit(
        self,
        task: Task,
        order: NDArray[np.int32],
        begin: int,
        end: int,
        full: bool,
        W: NDArray[Any],
        duals: Alpha,
        rest: NDArray[np.uint8],
        tally: NDArray[np.float64],
    ) -> int:
        margins = self.margins(task.n_classes)
        absolute.visit(*task, margins, order, begin, end, W, duals.values, rest, tally)
        return end

    def certify(self, task: Task, W: NDArray[Any], duals: Alpha, gaps: NDArray[np.float64]) -> tuple[float, float]:
        margins = self.margins(task.n_classes)
        return absolute.certify(*task, margins, W, duals.values, gaps)  # type: ignore[no-any-return]
