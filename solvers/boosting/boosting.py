"""Boosting: what all methods that add weak learners round by round share.

A round looks for weak learners by weights of the examples, gives them weights, and ends in a step. Part of the rows may
be held out: the error on them ends training early, and the model is then that of the best round.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from solvers.boosting.weak_learners.binary_machines import Machines
from solvers.boosting.weak_learners.binning import Bins
from solvers.boosting.weak_learners.decision_trees import Trees
from solvers.boosting.weak_learners.stumps import Channels, Found, Stumps, WeakLearners
from solvers.boosting.weak_learners.votes import Ledger, Votes
from solvers.core.base import Params, ParamsError, Solver, State, Step
from solvers.core.memory import limit_bytes, refuse
from solvers.core.methods import all_methods, parse, unknown_method
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.numerics.thread_pool import ThreadPool

SLICE_PRODUCTS = 1 << 32
BAG = 1 << 30
QUIET = 10
SPARE = 1e-5


class BoostingParams(Params):
    """What all boosting methods have in common."""

    max_epochs: int = Field(default=500, ge=1, le=10**6, description="Rounds at most.")
    bins: Literal["exact"] | Annotated[int, Field(ge=2, le=65536)] = Field(
        default=255,
        description="Bins that the values of a feature are cut into, at most; exact cuts between any two of them.",
    )
    depth: int = Field(
        default=1,
        ge=1,
        le=6,
        description="Questions that a weak learner asks one after the other: 1 are stumps, more are trees, grown "
        "greedily.",
    )
    weak_learner: str = Field(
        default="tree",
        max_length=100,
        description="tree: stumps or trees; or another method, whose binary machines are then the weak learners.",
    )
    weak_params: dict[str, Any] = Field(default={}, description="Parameters of that other method.")
    bag: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Share of the rows, drawn anew every round, among which weak learners are sought; the weights of "
        "what is found always follow from all rows.",
    )
    validation: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Share of each class's rows that is held out, by the seed, to watch the error; 0: none.",
    )
    patience: int = Field(
        default=50,
        ge=1,
        description="Stop when the error on the held out rows has not fallen for so many rounds; the model is then "
        "that of the best round.",
    )
    memory_mb: int | None = Field(
        default=None,
        ge=1,
        description="Refuse problems that need more megabytes; by default, more than the machine has.",
    )


@dataclass(frozen=True, eq=False)
class Task:
    """What stays fixed while training: rows sorted by class, their bins, and the rows held out.

    Attributes
    ----------
    y : int32 array, shape (n,)
        Ascending.
    omega : float64 array, shape (n,)
        Weights of the rows.
    n_classes, n_features : int
    learners : WeakLearners
    held_y : int32 array, shape (n_held,)
    """

    classes: tuple[str, ...]
    n_features: int
    y: NDArray[np.int32]
    omega: NDArray[np.float64]
    learners: WeakLearners
    held_y: NDArray[np.int32]

    @property
    def n_classes(self) -> int:
        return len(self.classes)


class Report(NamedTuple):
    """How a round ended: bounds of the objective or nan, the largest violation or nan, rows wrong, and whether to stop.

    ``more`` tells other measures by name.
    """

    primal: float
    dual: float
    violation: float
    n_wrong: int
    converged: bool
    exhausted: bool = False
    more: Mapping[str, float] = {}


class Run(ABC):
    """What changes while a method trains."""

    def __init__(self, task: Task, n_outputs: int, params: BoostingParams, seed: int) -> None:
        self.task, self.params, self.seed = task, params, seed
        self.epoch = 0
        self.ledger = Ledger()
        self.held_scores = np.zeros((n_outputs, len(task.held_y)))
        self.best = np.array([0.0, np.inf])

    @property
    def under_way(self) -> bool:
        """Whether the last slice left a round unfinished."""
        return False

    @abstractmethod
    def advance(self, thread_pool: ThreadPool) -> Report | None:
        """One slice of a round; its report if that ended the round."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What the method itself has to keep; live."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what :meth:`arrays` gave."""

    def classify(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Class indices from scores of shape (n_outputs, n)."""
        return np.asarray(scores.argmax(axis=0))

    def find(self, channels: Channels, thread_pool: ThreadPool) -> Found | None:
        """Weak learners for the next round, sought in its bag; None if the work has only begun."""
        self.draw_bag(channels)
        return self.task.learners.find(channels, thread_pool, [self.seed, self.epoch + 1])

    def draw_bag(self, channels: Channels) -> None:
        """Leave only the rows of the next round's bag their weights."""
        if self.params.bag < 1:
            n, rng = len(self.task.y), np.random.default_rng([self.seed, self.epoch + 1, BAG])
            channels.keep(rng.permutation(n) < max(1.0, self.params.bag * n))

    def vote(self, learners: NDArray[Any], outputs: NDArray[Any], deltas: NDArray[np.float64]) -> None:
        """Enter what a round has changed, and let the scores of the held out rows follow."""
        self.ledger.add_round(learners, outputs, deltas)
        if len(self.task.held_y) and len(learners):
            sides = self.task.learners.sides(learners, held=True)
            for side, c, delta in zip(sides, outputs, deltas, strict=True):
                self.held_scores[c] += delta * side

    def state(self) -> dict[str, NDArray[Any]]:
        """All arrays of a step."""
        own = {"epoch": np.array(self.epoch), "best": self.best, "held_scores": self.held_scores}
        return own | self.ledger.votes.arrays() | self.task.learners.arrays() | self.arrays()

    def resume(self, state: State) -> None:
        """Go on from the arrays of a step."""
        self.epoch = int(state["epoch"])
        self.best[:], self.held_scores[:] = state["best"], state["held_scores"]
        self.ledger = Ledger(Votes.of_arrays({name: np.array(array) for name, array in state.items()}))
        self.task.learners.restore(state)
        self.restore(state)


class Waning:
    """Tells when a loss hardly falls any more: by less than ``tol`` of itself in each of ten rounds.

    Attributes
    ----------
    numbers : float64 array, shape (2,)
        The last loss, and how many rounds in a row have lowered it by less.
    """

    def __init__(self, tol: float) -> None:
        self.tol = tol
        self.numbers = np.array([np.inf, 0.0])

    def note(self, loss: float) -> bool:
        """Take notice of the loss after a round."""
        quiet = self.numbers[0] - loss < self.tol * self.numbers[0] if self.numbers[0] < np.inf else False
        self.numbers[:] = loss, self.numbers[1] + 1 if quiet else 0.0
        return loss <= 0 or bool(self.numbers[1] >= QUIET)


P = TypeVar("P", bound=BoostingParams)


class Boosting(Solver[P]):
    """A method that adds weak learners round by round; it says what a round does."""

    Params: ClassVar[type[Any]]
    parts = "weak learners"
    _binned: tuple[Problem, Bins, Bins] | None = None

    @classmethod
    def takes(cls, method: type[Solver[Any]]) -> bool:
        """Whether binary machines of a method can be weak learners."""
        return method.handles.flat and method.parts == "none"

    @classmethod
    def check_params(cls, params: BoostingParams) -> None:
        name = params.weak_learner
        if name == "tree":
            if params.weak_params:
                raise ParamsError([("/weak_params", "a tree has none; they are those of another method")])
            return
        method = all_methods().get(name)
        if method is None:
            raise ParamsError([("/weak_learner", f"{unknown_method(name)}; or tree")])
        if not cls.takes(method):
            fault = f"{name} cannot be a weak learner: it has parts itself, or takes no labels"
            raise ParamsError([("/weak_learner", fault)])
        try:
            parse(method, params.weak_params)
        except ParamsError as error:
            raise ParamsError([(f"/weak_params{at}", what) for at, what in error.items]) from None

    @abstractmethod
    def run(self, task: Task) -> Run:
        """The start of training."""

    @abstractmethod
    def training_bytes(self, n_samples: int, n_classes: int) -> int:
        """What training takes beside the binned features."""

    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        self.admit(problem)
        run = self.run(self.task(problem))
        if state is not None:
            run.resume(state)
        with ThreadPool(self.threads) as thread_pool:
            while run.under_way or run.epoch < self.params.max_epochs:
                report = run.advance(thread_pool)
                if report is None:
                    yield Step(run.epoch, np.nan, np.nan, np.nan, converged=False, state=run.state())
                    continue
                measures, stop = self._measure(run, report), report.converged
                if "validation_error" in measures:
                    stop = stop or run.epoch - int(run.best[0]) >= self.params.patience
                yield Step(run.epoch, report.primal, report.dual, report.violation, stop, run.state(), measures)
                if stop or report.exhausted:
                    return

    def _measure(self, run: "Run", report: Report) -> dict[str, float]:
        measures = {"train_error": report.n_wrong / len(run.task.y), **report.more}
        if len(run.task.held_y):
            error = float(np.mean(run.classify(run.held_scores) != run.task.held_y))
            measures["validation_error"] = error
            if error < run.best[1]:
                run.best[:] = run.epoch, error
        return measures

    def model(self, problem: Problem, state: State) -> Model:
        task = self.task(problem)
        votes = Votes.of_arrays({name: np.array(state[name]) for name in state if name.startswith("vote_")})
        if len(task.held_y) and state["best"][0] > 0:
            votes = votes.upto(int(state["best"][0]))
        task.learners.restore(state)
        learners, votes = votes.renumbered()
        model = task.learners.model(task.classes, task.n_features, learners, votes, self.code(task))
        model.report = {"rounds": float(len(votes.ends)), "weak_learners": float(len(learners))}
        return model

    def code(self, task: Task) -> NDArray[np.int8] | None:
        """The code that decodes the outputs, shape (n_classes, n_outputs); None if they are the classes' scores."""
        return None

    def task(self, problem: Problem) -> Task:
        """Rows in order, held out rows, bins.

        Raises
        ------
        TooLargeError
            Training would need more memory than it may use.
        """
        kept, held = split(problem.y, self.params.validation, self.seed)
        kept = kept[np.argsort(problem.y[kept], kind="stable")]
        needed = self.training_bytes(len(kept), problem.n_classes) + 9 * problem.X.nnz
        refuse(f"training on {len(kept)} examples of {problem.n_classes} classes", needed, self.params.memory_mb)
        return Task(
            problem.classes, problem.n_features, problem.y[kept], problem.weights[kept],
            self._weak_learners(problem, kept, held), problem.y[held],
        )  # fmt: skip

    def _weak_learners(self, problem: Problem, kept: NDArray[np.int64], held: NDArray[np.int64]) -> WeakLearners:
        params = self.params
        if params.weak_learner != "tree":
            method = all_methods()[params.weak_learner]
            own = method.Params.model_validate(params.weak_params)
            return Machines(problem.X[kept], problem.X[held], method, own)
        # the model is made of the bins that training has used
        if self._binned is None or self._binned[0] is not problem:
            bins = Bins.of(problem.X[kept], None if params.bins == "exact" else params.bins)
            self._binned = problem, bins, bins.encode(problem.X[held])
        _, bins, others = self._binned
        if params.depth == 1:
            return Stumps(bins, others)
        return Trees(bins, others, params.depth, limit_bytes(params.memory_mb) // 4)


def split(y: NDArray[np.int32], share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to train on and rows to hold out, both ascending: ``share`` of each class, but never its last row."""
    if share == 0:
        return np.arange(len(y)), np.empty(0, np.int64)
    order = np.random.default_rng([seed, 0]).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    counts = np.bincount(y)
    rank = np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)
    many = np.minimum(np.round(share * counts), counts - 1)
    held = rank < np.repeat(many, counts)
    return np.sort(order[~held]), np.sort(order[held])


def half_log_odds(right: float, wrong: float, total: float) -> float:
    """AdaBoost's weight of a learner: half the logarithm of right over wrong.

    A small share of all losses, ``total``, is added to both, so that it is finite (Schapire and Singer 1999, section
    4.2, who add 1 / (n k); a share that does not count rows lets weights of examples stand for repetitions).
    """
    spare = SPARE * total
    return 0.5 * float(np.log(right + spare) - np.log(wrong + spare)) if spare > 0 else 0.0
