"""Boosting: what all methods that add weak learners round by round share.

A round looks for weak learners by weights of the examples, gives them weights, and ends in a step. Part of the rows may
be held out: the error on them ends training early, and the model is then that of the best round.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from solvers.boosting.params import BoostingParams
from solvers.boosting.rounds import Run, Task
from solvers.boosting.weak_learners.base import WeakLearners
from solvers.boosting.weak_learners.binary_machines import BinaryMachines
from solvers.boosting.weak_learners.binning import Bins
from solvers.boosting.weak_learners.boosted_model import Ensemble
from solvers.boosting.weak_learners.decision_trees import DecisionTrees
from solvers.boosting.weak_learners.stumps import Stumps
from solvers.boosting.weak_learners.votes import Votes
from solvers.core.base import ParamsError, Solver, State, Step
from solvers.core.memory import limit_bytes, refuse
from solvers.core.methods import all_methods, parse, unknown_method
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.numerics.array_types import Ints, Ints8, Ints32
from solvers.numerics.thread_pool import ThreadPool

P = TypeVar("P", bound=BoostingParams)


class Boosting(Solver[P]):
    """A method that adds weak learners round by round; it says what a round does."""

    Params: ClassVar[type[Any]]
    parts = "weak learners"
    _binned: tuple[Problem, Bins, Bins] | None = None

    @classmethod
    def takes(cls, method: type[Solver[Any]]) -> bool:
        """Whether binary machines of a method can be weak learners."""
        return method.handles.flat and method.parts == "none" and not method.chooses

    @property
    def column_scaling(self) -> Literal["standard", "max_abs", "none"]:
        return "none" if self.params.weak_learner == "tree" else "standard"

    @property
    def feature_range(self) -> tuple[float, float]:
        return (0.0, math.inf) if self.params.weak_learner == "tree" else super().feature_range

    @classmethod
    def check_params(cls, params: BoostingParams) -> None:
        name = params.weak_learner
        if name == "tree":
            if params.weak_params:
                raise ParamsError([("/weak_params", "weak_learner tree has no weak_params; remove them")])
            return
        method = all_methods().get(name)
        if method is None:
            raise ParamsError([("/weak_learner", f"{unknown_method(name)}; or tree")])
        if not cls.takes(method):
            fault = f"{name} cannot be a weak learner: it trains other methods itself, or takes no flat labels"
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
        self.check_features(problem)
        run = self.run(self.task(problem))
        if state is not None:
            run.resume(state)
        with ThreadPool(self.threads) as thread_pool:
            while run.under_way or run.epoch < self.params.max_epochs:
                report = run.advance(thread_pool)
                if report is None:
                    yield Step(run.epoch, np.nan, np.nan, np.nan, converged=False, state=run.state())
                    continue
                measures, stop = run.measure(report), report.converged
                if "validation_error" in measures:
                    stop = stop or run.epoch - run.best_epoch >= self.params.patience
                yield Step(run.epoch, report.primal, report.dual, report.violation, stop, run.state(), measures)
                if stop or report.exhausted:
                    return

    def model(self, problem: Problem, state: State) -> Model:
        task = self.task(problem)
        votes = Votes.of_arrays({name: np.array(state[name]) for name in state if name.startswith("vote_")})
        if len(task.held_y) and state["best_epoch"] > 0:
            votes = votes.upto(int(state["best_epoch"]))
        task.learners.restore(state)
        learners, votes = votes.renumbered()
        model = task.learners.model(learners, Ensemble(task.classes, task.n_features, votes, self.code(task)))
        model.report = {"rounds": float(len(votes.ends)), "weak_learners": float(len(learners))}
        return model

    def code(self, task: Task) -> Ints8 | None:
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

    def _weak_learners(self, problem: Problem, kept: Ints, held: Ints) -> WeakLearners:
        params = self.params
        if params.weak_learner != "tree":
            method = all_methods()[params.weak_learner]
            own = method.Params.model_validate(params.weak_params)
            return BinaryMachines(problem.X[kept], problem.X[held], method, own)
        # the model is made of the bins that training has used
        if self._binned is None or self._binned[0] is not problem:
            bins = Bins.from_matrix(problem.X[kept], None if params.bins == "exact" else params.bins)
            self._binned = problem, bins, bins.encode(problem.X[held])
        _, bins, others = self._binned
        if params.depth == 1:
            return Stumps(bins, others)
        return DecisionTrees(bins, others, params.depth, limit_bytes(params.memory_mb) // 4)


def split(y: Ints32, share: float, seed: int) -> tuple[Ints, Ints]:
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
