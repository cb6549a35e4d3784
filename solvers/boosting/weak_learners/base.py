"""Weak learners: functions of an example to +1 or -1, sought by weights of the examples, several at once."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from solvers.boosting.weak_learners.boosted_model import BoostedModel, Ensemble
from solvers.boosting.weak_learners.channels import Channels, Found
from solvers.numerics.array_types import Array, Floats, Ints, Ints8
from solvers.numerics.thread_pool import ThreadPool


class WeakLearners(ABC):
    """All weak learners of one kind on the training rows, and on rows held out.

    A learner has a number; -1 is the constant +1, which every kind has.

    Attributes
    ----------
    exact : bool
        Whether :meth:`find` finds the best learner there is, and :meth:`find_and_evaluate` may be asked.
    work : int
        Rough cost of :meth:`find`, in products a channel.
    """

    exact: bool = False
    work: int

    @abstractmethod
    def find(self, channels: Channels, thread_pool: ThreadPool, seed: list[int]) -> Found | None:
        """The best learner for every channel, or a good one; ``seed`` decides what chance there is.

        None says that the work has only begun, and that the next call, which may be a restored object's, goes on.
        """

    def find_and_evaluate(
        self, channels: Channels, thread_pool: ThreadPool, learners: Ints, of: Ints
    ) -> tuple[Found, Floats]:
        """The best learner for every channel and, by the way, the values of known ones.

        Parameters
        ----------
        learners, of : int64 arrays, shape (n,)
            Known learners, and the channel of each.

        Returns
        -------
        Found
        float64 array, shape (n,)
            ``sum_i u_i h(x_i)`` of the known ones.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot search for the best of all")

    def find_shared(self, channels: Channels, thread_pool: ThreadPool, *, real: bool) -> int:
        """The learner that is worth most to all channels together.

        With ``real``, channels j and j + 8 of a block of 16 hold the weights for and against one output, and the
        learner has a vote of its own on either side (Schapire and Singer 1999, section 4.1).
        """
        raise NotImplementedError(f"{type(self).__name__} cannot be shared")

    @abstractmethod
    def responses(self, learners: Ints, *, held: bool = False) -> Ints8:
        """What learners say, +1 or -1, shape (len(learners), n_rows), of the training rows or those held out."""

    @abstractmethod
    def model(self, learners: Ints, ensemble: Ensemble) -> BoostedModel:
        """The model of the votes; they number ``learners`` by their place."""

    def arrays(self) -> dict[str, Array]:
        """What has to be kept of the learners found so far: nothing where their numbers say all."""
        return {}

    def restore(self, arrays: Mapping[str, Array]) -> None:  # noqa: B027
        """Take back what :meth:`arrays` gave."""
