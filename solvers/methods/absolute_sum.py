"""The machine of the sum of all absolute margin violations (ATS).

    minimise  1/2 sum_c |w_c|^2 + C sum_i (max(0, 1 - w_{y_i}' x_i) + sum_{c != y_i} max(0, 1 + w_c' x_i))
    subject to  sum_c w_c = 0

Dogan et al. 2016. It is one-vs-rest with hinge loss under the constraint.
"""

from solvers.core.base import Handles
from solvers.linear.steps.absolute import Margins
from solvers.linear.sum_to_zero import SummedParams, SumToZero


class AbsoluteSum(SumToZero[SummedParams]):
    """Sums the violations of the absolute margins of all classes."""

    name = "absolute_sum"
    title = "Absolute sum machine (ATS)"
    formula = (
        r"\tfrac12 \sum_c \|w_c\|^2 + C \sum_i \Big( (1 - w_{y_i}^\top x_i)_+ + \sum_{c \ne y_i} (1 + "
        r"w_c^\top x_i)_+ \Big) \quad \text{subject to } \sum_c w_c = 0"
    )
    paper = "Dogan et al. 2016"
    handles = Handles(flat=True, shards=True)
    Params = SummedParams

    def margins(self, n_classes: int) -> Margins:
        return Margins(own=1.0, other=1.0, own_share=1.0, other_share=1.0, shared=False)
