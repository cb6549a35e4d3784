"""The reinforced multi-category machine: a blend of its own class's margin and the other classes'.

    minimise  1/2 sum_c |w_c|^2 + C sum_i [g max(0, (k-1) - w_{y_i}' x_i) + (1-g) sum_{c != y_i} max(0, 1 + w_c' x_i)]
    subject to  sum_c w_c = 0

Liu and Yuan 2011; g = 0 is the machine of Lee, Lin and Wahba, g = 1/2 is their recommendation.
"""

from pydantic import Field

from solvers.core.base import Handles
from solvers.linear.steps.absolute import Margins
from solvers.linear.sum_to_zero import SummedParams, SumToZero


class ReinforcedParams(SummedParams):
    """Parameters of :class:`Reinforced`."""

    g: float = Field(default=0.5, ge=0, le=1, description="Share of the margin of the example's own class in the loss.")


class Reinforced(SumToZero[ReinforcedParams]):
    """Blends the machines of Lee, Lin and Wahba (g = 0) and of maximum margin regression (g = 1)."""

    name = "reinforced"
    title = "Reinforced multi-category SVM"
    formula = (
        r"\tfrac12 \sum_c \|w_c\|^2 + C \sum_i \Big( g (k - 1 - w_{y_i}^\top x_i)_+ + (1 - g) \sum_{c \ne "
        r"y_i} (1 + w_c^\top x_i)_+ \Big) \quad \text{subject to } \sum_c w_c = 0"
    )
    paper = "Liu and Yuan 2011"
    handles = Handles(flat=True, shards=True)
    Params = ReinforcedParams

    def margins(self, n_classes: int) -> Margins:
        return Margins(n_classes - 1.0, 1.0, self.params.g, 1.0 - self.params.g, False)
