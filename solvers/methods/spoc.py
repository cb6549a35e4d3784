"""The multi-class machine of Crammer and Singer with kernels, by support pattern output coding.

    minimise  1/2 sum_c |w_c|^2 + C sum_i max_{c != y_i} max(0, 1 - (f_{y_i}(x_i) - f_c(x_i))),   f_c(x) = <w_c, phi(x)>

Crammer and Singer 2002, equation 29 and Figures 3 and 4, with beta = 1/C; their tau_ic is here ``-alpha_ic / C`` for a
wrong class and ``sum_c alpha_ic / C`` for the true one. The reduced problem of one example (equation 38) is solved to
the end: with ``b_c = (1 - f_y + f_c) / K + alpha_c + S0`` the optimum is ``(b_c - theta)_+`` at the root theta of
``sum_c (b_c - theta)_+ = min(theta, C)``. The paper leaves open which example comes next and when to stop: here the
examples come by the violation psi of the optimality conditions, and training stops at the duality gap.
"""

from solvers.core.base import Handles
from solvers.kernel_svm.kernel_machine import KernelMachine
from solvers.kernel_svm.working_set import BlockRule


class Spoc(KernelMachine):
    """All-in-one kernel machine that takes the largest margin violation of an example."""

    name = "spoc"
    title = "Kernel Crammer-Singer SVM (SPOC)"
    formula = (
        r"\tfrac12 \sum_c \|w_c\|^2 + C \sum_i \max_{c \ne y_i} (1 - f_{y_i}(x_i) + f_c(x_i))_+, \quad f_c(x) "
        r"= \langle w_c, \varphi(x) \rangle"
    )
    paper = "Crammer and Singer 2002"
    handles = Handles(flat=True, kernels=True)

    def block_rule(self, n_classes: int) -> BlockRule:
        return BlockRule(own=1.0, gamma=1.0, largest=True)
