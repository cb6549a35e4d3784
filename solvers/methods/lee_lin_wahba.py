"""The multi-class machine of Lee, Lin and Wahba, by exact block steps on the dual.

    minimise  1/2 sum_c |w_c|^2 + C sum_i sum_{c != y_i} max(0, 1 + w_c' x_i)
    subject to  sum_c w_c = 0

Lee, Lin and Wahba 2004; Alber et al. 2017, equations (2) and (4), with margin 1. There Algorithm 1 alternates between
the classes and their mean, as class shards do that exchange the mean; here all variables of one example move together
on W itself.
"""

from solvers.core.base import Handles
from solvers.linear.steps.absolute import Margins
from solvers.linear.sum_to_zero import SummedParams, SumToZero


class LeeLinWahba(SumToZero[SummedParams]):
    """All-in-one machine that keeps the scores of the wrong classes below -1; Fisher consistent."""

    name = "lee_lin_wahba"
    title = "Lee-Lin-Wahba SVM"
    formula = (
        r"\tfrac12 \sum_c \|w_c\|^2 + C \sum_i \sum_{c \ne y_i} (1 + w_c^\top x_i)_+ \quad \text{subject to } "
        r"\sum_c w_c = 0"
    )
    paper = "Lee, Lin and Wahba 2004; Alber et al. 2017"
    handles = Handles(flat=True, shards=True)
    Params = SummedParams

    def margins(self, n_classes: int) -> Margins:
        return Margins(own=0.0, other=1.0, own_share=0.0, other_share=1.0, shared=False)
