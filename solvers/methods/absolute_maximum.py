"""The machine of the largest absolute margin violation over the wrong classes (ADM).

    minimise  1/2 sum_c |w_c|^2 + C sum_i max_{c != y_i} max(0, 1 + w_c' x_i)
    subject to  sum_c w_c = 0

Dogan et al. 2016. W = 0 is often optimal where the classes overlap; a gap of 0 then says so.
"""

from solvers.core.base import Handles
from solvers.linear.driver.params import AscentParams
from solvers.linear.steps.absolute import Margins
from solvers.linear.sum_to_zero import SumToZero


class AbsoluteMaximum(SumToZero[AscentParams]):
    """Takes the largest violation of the wrong classes' absolute margins."""

    name = "absolute_maximum"
    title = "Absolute maximum machine (ADM)"
    formula = (
        r"\tfrac12 \sum_c \|w_c\|^2 + C \sum_i \max_{c \ne y_i} (1 + w_c^\top x_i)_+ \quad \text{subject to } "
        r"\sum_c w_c = 0"
    )
    paper = "Dogan et al. 2016"
    handles = Handles(flat=True)
    Params = AscentParams

    def margins(self, n_classes: int) -> Margins:
        return Margins(own=0.0, other=1.0, own_share=0.0, other_share=1.0, shared=True)
