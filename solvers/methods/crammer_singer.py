"""The multi-class machine of Crammer and Singer, by exact block steps on the dual.

    minimise  1/2 sum_c |w_c|^2 + C sum_i max_{c != y_i} max(0, 1 - (w_{y_i} - w_c)' x_i)

Crammer and Singer 2002, section 4, with C = 1/beta and margin 1. All dual variables of one example move together:
with b_c = (1 - f_y + f_c) / |x|^2 + alpha_c + S0 the optimum over alpha >= 0, sum alpha <= C is (b_c - theta)_+ at
the root theta of sum_c (b_c - theta)_+ = min(theta, C).
"""

from solvers.core.base import Handles
from solvers.linear.ascent import AscentParams
from solvers.linear.relative_margins import RelativeMargins


class CrammerSinger(RelativeMargins[AscentParams]):
    """All-in-one machine that takes the largest margin violation of an example."""

    name = "crammer_singer"
    title = "Crammer-Singer SVM"
    paper = "Crammer and Singer 2002"
    handles = Handles(flat=True, shards=True)
    Params = AscentParams
    largest_loss = True
