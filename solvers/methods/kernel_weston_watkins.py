"""The multi-class machine of Weston and Watkins with kernels.

    minimise  1/2 sum_c |w_c|^2 + C sum_i sum_{c != y_i} max(0, 1 - (f_{y_i}(x_i) - f_c(x_i))),   f_c(x) = <w_c, phi(x)>

Weston and Watkins 1999; dual and notation of Alber et al. 2017, equations (3) and (5). The examples are chosen and
their scores kept as in Crammer and Singer 2002, Figure 4; all dual variables of one example move together to
``clip(b_c - S, 0, C)``, ``b_c = (1 - f_y + f_c) / K + alpha_c + S0``, at the root S of their own sum.
"""

from solvers.core.base import Handles
from solvers.kernel_svm.kernel_machine import KernelMachine
from solvers.kernel_svm.working_set import BlockRule


class KernelWestonWatkins(KernelMachine):
    """All-in-one kernel machine that sums the margin violations of an example over the wrong classes."""

    name = "kernel_weston_watkins"
    title = "Kernel Weston-Watkins SVM"
    formula = (
        r"\tfrac12 \sum_c \|w_c\|^2 + C \sum_i \sum_{c \ne y_i} (1 - f_{y_i}(x_i) + f_c(x_i))_+, \quad f_c(x) "
        r"= \langle w_c, \varphi(x) \rangle"
    )
    paper = "Weston and Watkins 1999; Crammer and Singer 2002"
    handles = Handles(flat=True, kernels=True)

    def block_rule(self, n_classes: int) -> BlockRule:
        return BlockRule(own=1.0, gamma=1.0, largest=False)
