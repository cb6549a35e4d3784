"""Maximum margin regression: only the score of the true class is asked to be large.

    minimise  1/2 sum_c |w_c|^2 + C sum_i max(0, 1 - w_{y_i}' x_i)
    subject to  sum_c w_c = 0

Szedmak, Shawe-Taylor and Parado-Hernandez 2006; as a member of the family, Dogan et al. 2016.
"""

from solvers.core.base import Handles
from solvers.linear.steps.absolute import Margins
from solvers.linear.sum_to_zero import SummedParams, SumToZero


class MaximumMarginRegression(SumToZero[SummedParams]):
    """The cheapest machine of the family: one constraint an example."""

    name = "maximum_margin_regression"
    title = "Maximum margin regression"
    formula = r"\tfrac12 \sum_c \|w_c\|^2 + C \sum_i (1 - w_{y_i}^\top x_i)_+ \quad \text{subject to } \sum_c w_c = 0"
    paper = "Szedmak et al. 2006; Dogan et al. 2016"
    handles = Handles(flat=True, shards=True)
    Params = SummedParams

    def margins(self, n_classes: int) -> Margins:
        return Margins(own=1.0, other=0.0, own_share=1.0, other_share=0.0, shared=False)
