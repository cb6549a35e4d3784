"""The machine of the largest absolute margin violation over all classes (ATM).

    minimise  1/2 sum_c |w_c|^2 + C sum_i max(max(0, 1 - w_{y_i}' x_i), max_{c != y_i} max(0, 1 + w_c' x_i))
    subject to  sum_c w_c = 0

Dogan et al. 2016. W = 0 is often optimal where the classes overlap; a gap of 0 then says so.
"""

from solvers.core.base import Handles
from solvers.linear.driver.params import AscentParams
from solvers.linear.steps.absolute import Margins
from solvers.linear.sum_to_zero import SumToZero


class AbsoluteTotal(SumToZero[AscentParams]):
    """Takes the largest violation of the absolute margins of all classes."""

    name = "absolute_total"
    title = "Absolute total machine (ATM)"
    formula = (
        r"\tfrac12 \sum_c \|w_c\|^2 + C \sum_i \max_c (1 - s_{ic} w_c^\top x_i)_+ \quad \text{subject to } "
        r"\sum_c w_c = 0"
    )
    paper = "Dogan et al. 2016"
    handles = Handles(flat=True)
    Params = AscentParams

    def margins(self, n_classes: int) -> Margins:
        return Margins(own=1.0, other=1.0, own_share=1.0, other_share=1.0, shared=True)
