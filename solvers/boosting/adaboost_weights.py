"""What the AdaBoost methods share: the weight of a weak learner, and when to stop."""

from collections.abc import Mapping

import numpy as np

from solvers.numerics.array_types import Array

QUIET = 10
SPARE = 1e-5


def half_log_odds(right: float, wrong: float, total: float) -> float:
    """AdaBoost's weight of a learner: half the logarithm of right over wrong.

    A small share of all losses, ``total``, is added to both, so that it is finite (Schapire and Singer 1999, section
    4.2, who add 1 / (n k); a share that does not count rows makes weights of examples equal to repetitions).
    """
    spare = SPARE * total
    return 0.5 * float(np.log(right + spare) - np.log(wrong + spare)) if spare > 0 else 0.0


class LossPlateau:
    """Detects that a loss hardly falls any more: by less than ``tol`` of itself in each of ten rounds.

    Attributes
    ----------
    last_loss : float
    n_quiet : int
        How many rounds in a row have lowered it by less.
    """

    def __init__(self, tol: float) -> None:
        self.tol = tol
        self.last_loss, self.n_quiet = np.inf, 0

    def reached(self, loss: float) -> bool:
        """Take notice of the loss after a round; whether to stop."""
        quiet = self.last_loss < np.inf and self.last_loss - loss < self.tol * self.last_loss
        self.last_loss, self.n_quiet = loss, self.n_quiet + 1 if quiet else 0
        return loss <= 0 or self.n_quiet >= QUIET

    def arrays(self) -> dict[str, Array]:
        """What has to be kept."""
        return {"last_loss": np.array(self.last_loss), "n_quiet": np.array(self.n_quiet)}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Take back what :meth:`arrays` gave."""
        self.last_loss, self.n_quiet = float(arrays["last_loss"]), int(arrays["n_quiet"])
