"""The search: trials on rows held out, then the pool of the best or the best one, trained on all rows.

Families of trials are taken in turn. In each the values of C go up from the first as long as that is better, and then
down from there if it was not clearly so, every solution being the start of the next. Trials are solved loosely, as a
certificate of the wrong C helps nobody; what is chosen is trained on all rows to the tolerance that was asked for. The
objectives of a pool's members share nothing, so the sums of their primal and dual values bound the optimum of the
whole; if one has no certificate, nor has the whole.
"""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from solvers.core.base import Solver, State, Step
from solvers.core.memory import TooLargeError
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.numerics.array_types import Floats
from solvers.selection.candidates import SKETCH_ROWS, Family
from solvers.selection.held_out import Fold, Measure
from solvers.selection.pooling import Pool
from solvers.selection.progress import Outcome, Progress, bounds_of
from solvers.selection.schedule import Trial, is_due
from solvers.selection.tasks import Task

LOOSE_TOL = 0.05


class Options(NamedTuple):
    """How to search, and how to train what is found.

    Attributes
    ----------
    measure : Measure
        One of the task's.
    most_members : int
        Of a pool; 1 chooses a single model.
    budget_seconds : float or None
        No trial is begun later; at least one is made.
    tol, max_epochs : float, int
        For the training on all rows, of methods that have them.
    leaves_out : bool
        Whether trials that do not fit into memory are left out; else they end the search.
    """

    measure: Measure
    most_members: int
    budget_seconds: float | None
    tol: float
    max_epochs: int
    leaves_out: bool


class Search:
    """One search on one problem.

    Parameters
    ----------
    problem : Problem
    task : Task
        Of the rows that the folds hold out.
    families : sequence of Family
    folds : sequence of Fold
    options : Options
    seed, threads : int
        Of all solvers.
    """

    def __init__(
        self,
        problem: Problem,
        task: Task,
        families: list[Family],
        folds: list[Fold],
        options: Options,
        *,
        seed: int,
        threads: int,
    ) -> None:
        self.problem, self.task, self.families, self.folds, self.options = problem, task, families, folds, options
        self.seed, self.threads = seed, threads
        places = [(family, place) for family in families for place in range(family.n_trials)]
        self.trials = [Trial(family, place, number) for number, (family, place) in enumerate(places)]
        self.results = (*self.task.measures, "seconds", "epochs", "rows")

    def steps(self, state: State | None) -> Iterator[Step]:
        """Search, then train what is found on all rows; the last step has the certificate."""
        if state is None:
            progress, inner = Progress(np.full((len(self.trials), len(self.results)), np.nan)), None
        else:
            progress, inner = Progress.resumed(state)
        while progress.pool is None:
            if not self.folds:
                # no row can be held out
                progress.pool = Pool((0,), np.ones(1), 0.0)
                break
            if inner is None and not self.advance(progress):
                self._choose(progress)
                break
            try:
                yield from self._try(progress, inner)
            except TooLargeError:
                if not self.options.leaves_out or not self._may_do_without(progress):
                    raise
            inner = None
        assert progress.pool is not None
        for place in range(len(progress.final), len(progress.pool.members)):
            yield from self._train(progress, place, inner)
            inner = None
        primal, dual = bounds_of(progress.outcomes)
        converged = all(outcome.converged for outcome in progress.outcomes)
        yield Step(
            progress.epochs, primal, dual, progress.violation, converged, progress.state(), self._reported(progress)
        )

    def model(self, state: State) -> Model:
        """The model of the last step; raises ValueError for an earlier one."""
        progress, _ = Progress.resumed(state)
        if progress.pool is None or len(progress.final) < len(progress.pool.members):
            raise ValueError("the search has not come to its end, so there is no model yet")
        members = []
        for place, number in enumerate(progress.pool.members):
            members.append(self._solver(self.trials[number]).model(self.problem, progress.final[place]))
        model = self.task.model(members, progress.pool, progress.kept)
        model.report = {"trials": float(np.isfinite(progress.results[:, 0]).sum())} | progress.found
        model.record = {"trials": self.leaderboard(progress), "members": self._members(progress)}
        return model

    def leaderboard(self, progress: Progress) -> list[dict[str, Any]]:
        """The trials that were made, the best first, with method, parameters and measures."""
        done = [trial for trial in self.trials if np.isfinite(progress.results[trial.number, 0])]
        column = self.results.index(self.options.measure)
        done.sort(key=lambda trial: -progress.results[trial.number, column])
        rows = []
        for trial in done:
            found = dict(zip(self.results, progress.results[trial.number].tolist(), strict=True))
            found["log_loss"] = -found["log_loss"]
            rows.append(trial.family.described(trial.place) | {"measures": found})
        return rows

    def _members(self, progress: Progress) -> list[dict[str, Any]]:
        assert progress.pool is not None
        found = []
        for place, number in enumerate(progress.pool.members):
            trial, gap = self.trials[number], progress.outcomes[place].gap
            found.append(
                trial.family.described(trial.place)
                | {"coefficient": float(progress.pool.coefficients[place]), "gap": None if np.isnan(gap) else gap}
            )
        return found

    def advance(self, progress: Progress) -> bool:
        """Go to the next trial; False if there is none, or no time is left."""
        budget = self.options.budget_seconds
        if budget is not None and progress.seconds >= budget and np.isfinite(self._whole(progress)).any():
            return False
        for trial in self.trials[progress.trial + 1 :]:
            if self._fits(trial) and self._is_due(progress, trial):
                if self.trials[progress.trial].family is not trial.family:
                    progress.warm = {}
                progress.trial, progress.fold, progress.partial = trial.number, 0, []
                progress.trial_seconds, progress.trial_epochs = 0.0, 0
                return True
        if np.isnan(progress.results[:, 0]).all():
            # nothing fits: the first says how much it needs
            progress.trial = progress.fold = 0
            return True
        return False

    def _may_do_without(self, progress: Progress) -> bool:
        """Leave out the trial that has turned out too large; False if it was the last hope."""
        progress.partial, progress.fold = [], 0
        made, more = np.isfinite(progress.results[:, 0]).any(), self.trials[progress.trial + 1 :]
        return bool(made or any(self._fits(trial) for trial in more if trial.place == 0))

    def _fits(self, trial: Trial) -> bool:
        if not self.options.leaves_out:
            return True
        problem = self.problem
        n_classes = problem.n_classes if problem.labels is None else problem.labels.shape[1]
        try:
            self._solver(trial).check_memory(*problem.X.shape, n_classes)
        except TooLargeError:
            return False
        return True

    def _is_due(self, progress: Progress, trial: Trial) -> bool:
        columns = [self.results.index(self.options.measure), self.results.index("log_loss")]
        return is_due(trial, self.trials, progress.results[:, columns])

    def _try(self, progress: Progress, inner: State | None) -> Iterator[Step]:
        """One trial, from the fold it stands at."""
        trial = self.trials[progress.trial]
        for fold in range(progress.fold, len(self.folds)):
            progress.fold = fold
            problem = self._part(trial, fold)
            solver = self._solver(trial, loosely=True)
            start = inner
            if inner is None and fold in progress.warm:
                before = self._solver(self.trials[progress.warm_from[fold]], loosely=True)
                start = solver.rescaled(problem, progress.warm[fold], before.params.C)
            inner, last = None, None
            began = time.perf_counter()
            for last in solver.steps(problem, start):
                progress.trial_seconds += time.perf_counter() - began
                if not last.converged:
                    yield self._step(progress, last, trial, {"trial": float(trial.number)})
                began = time.perf_counter()
            assert last is not None
            progress.trial_epochs += last.epoch
            if trial.family.Cs and solver.has_path:
                progress.warm[fold] = {name: np.asarray(last.state[name]) for name in last.state}
                progress.warm_from[fold] = trial.number
            X = self.problem.X[self.folds[fold].held_out]
            progress.partial.append(np.asarray(self.task.scores(solver.model(problem, last.state), X), np.float32))
            progress.trial_seconds += time.perf_counter() - began
        scores, n_rows = np.concatenate(progress.partial), problem.n_samples
        found = self.task.measured(scores)
        progress.results[trial.number] = [*found, progress.trial_seconds, progress.trial_epochs, n_rows]
        progress.epochs += progress.trial_epochs
        progress.seconds += progress.trial_seconds
        progress.partial, progress.fold = [], 0
        if not trial.family.sketch:
            progress.scores[trial.number] = scores
            self._forget(progress, trial)
        unmeasured = (np.nan,) * 3
        reported, setting = self._reported(progress, trial), trial.family.named(trial.place)
        yield Step(progress.epochs, *unmeasured, False, progress.state(), reported, setting)

    def _part(self, trial: Trial, fold: int) -> Problem:
        """What a trial is trained on: the rows of a fold, or some of them."""
        part = self.folds[fold]
        if trial.family.sketch:
            part = part.sketch(self.problem.y, SKETCH_ROWS, self.seed)
        return part.problem(self.problem)

    def _forget(self, progress: Progress, trial: Trial) -> None:
        """Keep of a family only the scores of the best trial by the measure, and by the log loss."""
        first = trial.number - trial.place
        results = progress.results[first : trial.number + 1]
        columns = self.results.index(self.options.measure), self.results.index("log_loss")
        best = {first + int(np.nanargmax(results[:, column])) for column in columns}
        for number in range(first, trial.number + 1):
            if number not in best:
                progress.scores.pop(number, None)

    def _whole(self, progress: Progress) -> Floats:
        """The measure that counts of each trial; nan of those that are not made, or are sketches."""
        sketches = [trial.family.sketch for trial in self.trials]
        return np.where(sketches, np.nan, progress.results[:, self.results.index(self.options.measure)])

    def _choose(self, progress: Progress) -> None:
        best = int(np.nanargmax(self._whole(progress)))
        options = self.options
        choice = self.task.choose(progress.scores, best, options.measure, options.most_members)
        progress.pool, progress.found, progress.kept = choice
        progress.scores, progress.warm, progress.trial_epochs = {}, {}, 0

    def _train(self, progress: Progress, place: int, start: State | None) -> Iterator[Step]:
        """Train a member on all rows."""
        assert progress.pool is not None
        trial, last = self.trials[progress.pool.members[place]], None
        solver = self._solver(trial)
        for last in solver.steps(self.problem, start):
            if not last.converged:
                yield self._step(progress, last, trial, {"member": float(place)})
        assert last is not None
        progress.final[place] = {name: np.asarray(last.state[name]) for name in last.state}
        certified = solver.handles.certified
        bounds = (last.primal, last.dual) if certified else (np.nan, np.nan)
        progress.outcomes.append(Outcome(*bounds, last.converged, solver.handles.closed_form))
        progress.epochs += last.epoch
        progress.violation = float(np.nanmax([progress.violation, last.violation, 0.0]))
        if place < len(progress.pool.members) - 1:
            yield self._step(progress, last, trial, {"member": float(place)}, done=True)

    def _step(
        self, progress: Progress, inner: Step, trial: Trial, measures: dict[str, float], *, done: bool = False
    ) -> Step:
        state = progress.state(None if done else inner.state)
        epoch = progress.epochs + (0 if done else progress.trial_epochs + inner.epoch)
        setting = trial.family.named(trial.place)
        return Step(epoch, np.nan, np.nan, inner.violation, False, state, measures, setting)

    def _reported(self, progress: Progress, trial: Trial | None = None) -> dict[str, float]:
        if trial is None:
            return {"members": float(len(progress.final))}
        found = dict(zip(self.results, progress.results[trial.number].tolist(), strict=True))
        return {"trial": float(trial.number), **found, "log_loss": -found["log_loss"]}

    def _solver(self, trial: Trial, *, loosely: bool = False) -> Solver[Any]:
        tol = max(LOOSE_TOL, self.options.tol) if loosely else self.options.tol
        settings = {"tol": tol, "max_epochs": self.options.max_epochs}
        return trial.family.solver(trial.place, seed=self.seed, threads=self.threads, **settings)
