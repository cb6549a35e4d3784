"""The multi-class machine of Weston and Watkins, by exact block steps on the dual.

    minimise  1/2 sum_c |w_c|^2 + C sum_i sum_{c != y_i} max(0, 1 - (w_{y_i} - w_c)' x_i)

Weston and Watkins 1999; dual and notation of Alber et al. 2017, equations (3) and (5). There Algorithm 3 moves one
variable alpha_ic at a time; here all variables of one example move together, to the exact maximum: with
b_c = (1 - f_y + f_c) / |x|^2 + alpha_c + S0 the optimum is clip(b_c - S, 0, C) at the root S of its own sum.
"""

from solvers.core.base import Handles
from solvers.linear.relative_margins import RelativeMargins, RelativeParams


class WestonWatkins(RelativeMargins):
    """All-in-one machine that sums the margin violations of an example over the wrong classes."""

    name = "weston_watkins"
    title = "Weston-Watkins SVM"
    formula = r"\tfrac12 \sum_c \|w_c\|^2 + C \sum_i \sum_{c \ne y_i} (1 - (w_{y_i} - w_c)^\top x_i)_+"
    paper = "Weston and Watkins 1999; Alber et al. 2017"
    handles = Handles(flat=True, shards=True)
    Params = RelativeParams
    largest_loss = False
