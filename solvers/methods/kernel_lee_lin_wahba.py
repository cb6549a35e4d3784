"""The multi-class machine of Lee, Lin and Wahba with kernels.

    minimise  1/2 sum_c |w_c|^2 + C sum_i sum_{c != y_i} max(0, 1 + f_c(x_i))   subject to  sum_c w_c = 0

with ``f_c(x) = <w_c, phi(x)>``. Lee, Lin and Wahba 2004; dual and notation of Alber et al. 2017, equations (2) and
(4): ``w_c = sum_i (mean_q alpha_iq - alpha_ic) phi(x_i)``, which keeps the constraint at every step. The examples are
chosen and their scores kept as in Crammer and Singer 2002, Figure 4; all dual variables of one example move together
to ``clip(b_c + S / k, 0, C)``, ``b_c = (1 + f_c) / K + alpha_c - S0 / k``, at the root S of their own sum.
"""

from solvers.core.base import Handles
from solvers.kernel_svm.kernel_machine import KernelMachine
from solvers.kernel_svm.working_set import BlockRule


class KernelLeeLinWahba(KernelMachine):
    """All-in-one kernel machine with absolute margins of the wrong classes; consistent in the sense of Fisher."""

    name = "kernel_lee_lin_wahba"
    title = "Kernel Lee-Lin-Wahba SVM"
    formula = (
        r"\tfrac12 \sum_c \|w_c\|^2 + C \sum_i \sum_{c \ne y_i} (1 + f_c(x_i))_+ \quad \text{subject to } "
        r"\sum_c w_c = 0, \quad f_c(x) = \langle w_c, \varphi(x) \rangle"
    )
    paper = "Lee, Lin and Wahba 2004; Crammer and Singer 2002"
    handles = Handles(flat=True, kernels=True)
    lead = 2.0

    def block_rule(self, n_classes: int) -> BlockRule:
        return BlockRule(own=0.0, gamma=-1.0 / n_classes, largest=False)
