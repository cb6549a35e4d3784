"""The search: trials on held-out rows, then the pool of the best or the best one, trained on all rows.

Families of trials are taken in turn. In each the values of C go up from the first as long as that is better, and then
down from there if it was not clearly so, every solution being the start of the next. Trials are solved loosely, as a
certificate of the wrong C helps nobody; what is chosen is trained on all rows to the tolerance that was asked for. The
objectives of a pool's members share nothing, so the sums of their primal and dual values bound the optimum of the
whole; if one has no certificate, nor has the whole.

Memory is estimated before each trial, with what the search itself holds. A trial that does not fit, that runs out of
memory or that fails on these data is left out with its reason, and the results of all others are kept. States that are
larger than ``MOST_STATE`` bytes are neither kept to start the next C from nor written into checkpoints.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from solvers.core.base import Solver, State, Step
from solvers.core.memory import TooLargeError, allowing, limit_bytes, refuse
from solvers.core.model import Model
from solvers.core.problem import Problem, ProblemError
from solvers.numerics.array_types import Floats
from solvers.selection.candidates import SKETCH_ROWS, Family, Trial, best_of, is_due
from solvers.selection.held_out import Measure
from solvers.selection.pooling import Pool
from solvers.selection.progress import Outcome, Progress, bounds_of
from solvers.selection.tasks import View, Views

LOOSE_TOL = 0.05
# of all states of one trial, one for each fold
MOST_STATE = 1 << 28
# what measuring a trial takes for each score: log-odds, their order, and sums along it
MEASURING_BYTES = 56
# trials of a path in C that are usually made, and how much longer the last training takes than one of a fold
USUAL_TRIALS, FINAL_SHARE = 3, 3.0
# of a training, after which half of it is taken to be done
USUAL_STEPS = 8


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
    """

    measure: Measure
    most_members: int
    budget_seconds: float | None
    tol: float
    max_epochs: int


class Search:
    """One search on one problem.

    Parameters
    ----------
    views : Views
        Each is measured on the rows that its folds hold out.
    seed, threads : int
        Of all solvers.
    """

    def __init__(
        self,
        views: Views,
        families: list[Family],
        options: Options,
        *,
        seed: int,
        threads: int,
    ) -> None:
        self.views, self.families, self.options = views, families, options
        # by problem, which the views hold, and fold
        self._held_out: dict[tuple[int, int], sp.csr_matrix] = {}
        self.seed, self.threads = seed, threads
        places = [(family, place) for family in families for place in range(family.n_trials)]
        self.trials = [Trial(family, place, number) for number, (family, place) in enumerate(places)]
        self.results = (*views.usual.task.measures, "seconds", "epochs", "rows")
        # what each member's training on all rows begins from, by its place in the pool
        self.start_of: Callable[[int], State | None] = lambda place: None
        # the member that was trained last, and its solver, which has prepared what its model is made of
        self._trained: tuple[int, Solver[Any]] | None = None

    def steps(self, state: State | None) -> Iterator[Step]:
        """Search, then train what is found on all rows; the last step has the certificate."""
        shape = len(self.trials), len(self.results)
        # a state of an earlier version may have other measures, and the search starts again
        if state is None or np.shape(state["now.results"]) != shape:
            progress, inner = Progress(np.full(shape, np.nan)), None
        else:
            progress, inner = Progress.resumed(state)
        while progress.pool is None:
            if not self.views.usual.folds:
                # no row can be held out
                progress.pool = Pool((0,), np.ones(1), 0.0)
                break
            if inner is None and not self.advance(progress):
                self._choose(progress)
                break
            try:
                yield from self._try(progress, inner)
            except (MemoryError, ProblemError, np.linalg.LinAlgError) as error:
                self._leave_out(progress, self.trials[progress.trial], _reason(error))
                if not self._may_do_without(progress):
                    raise
                yield self._left_out(progress)
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
            raise ValueError("the search has not ended, so there is no model yet")
        members, task = [], self.views.for_family(self.trials[progress.pool.members[0]].family).task
        trained, self._trained = self._trained, None
        for place, number in enumerate(progress.pool.members):
            trial = self.trials[number]
            solver = trained[1] if trained is not None and trained[0] == number else self._solver(trial)
            members.append(task.member(solver, self.views.for_family(trial.family).problem, progress.final[place]))
        model = task.model(members, progress.pool, progress.kept)
        model.report = {"trials": float(np.isfinite(progress.results[:, 0]).sum())} | progress.found
        model.record = {**self.record(progress), "members": self._members(progress)}
        return model

    def record(self, progress: Progress) -> dict[str, Any]:
        """The trials that were made, and those that were left out, where some were."""
        missing = {"left_out": self._missing(progress)} if progress.left_out else {}
        return {"trials": self.leaderboard(progress), **missing}

    def without_current(self, state: State) -> State:
        """The state without the trial that is under way, or the next one, which has ended the last attempts."""
        progress, _ = Progress.resumed(state)
        made = progress.trial >= 0 and np.isfinite(progress.results[progress.trial, 0])
        if (
            progress.pool is None
            and self.views.usual.folds
            and (not (made or progress.trial < 0) or self.advance(progress))
        ):
            self._leave_out(progress, self.trials[progress.trial], "the worker was lost while it ran")
        return progress.state()

    def member(self, number: int) -> Solver[Any]:
        """The solver that trains the member which a trial has become."""
        return self._solver(self.trials[number])

    def leaderboard(self, progress: Progress) -> list[dict[str, Any]]:
        """The trials that were made, the best first and sketches last, with method, parameters and measures."""
        done = [trial for trial in self.trials if np.isfinite(progress.results[trial.number, 0])]
        column = self.results.index(self.options.measure)
        columns = [column, self.results.index("log_loss")]
        done.sort(
            key=lambda trial: (trial.family.sketch is not None, *(-progress.results[trial.number, columns]).tolist())
        )
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

    def _missing(self, progress: Progress) -> list[dict[str, Any]]:
        """The trials that were left out, with the reasons."""
        return [
            self.trials[number].family.described(self.trials[number].place) | {"reason": reason}
            for number, reason in sorted(progress.left_out.items())
        ]

    def advance(self, progress: Progress) -> bool:
        """Go to the next trial; False if there is none, or no time is left."""
        budget = self.options.budget_seconds
        if budget is not None and progress.seconds >= budget and np.isfinite(self._whole(progress)).any():
            return False
        for trial in self.trials[progress.trial + 1 :]:
            if not self._is_due(progress, trial):
                continue
            if progress.trial >= 0 and self.trials[progress.trial].family is not trial.family:
                progress.warm = {}
            reason = self._too_large(progress, trial)
            if reason is not None:
                self._leave_out(progress, trial, reason)
                continue
            progress.trial, progress.fold, progress.partial = trial.number, 0, []
            progress.trial_seconds, progress.trial_epochs = 0.0, 0
            return True
        if not np.isfinite(self._whole(progress)).any():
            # one must be tried whatever the estimate says, so that it raises why it cannot be trained
            progress.trial, progress.fold = next(each.number for each in self.trials if not each.family.sketch), 0
            return True
        return False

    def _leave_out(self, progress: Progress, trial: Trial, reason: str) -> None:
        progress.left_out[trial.number] = reason
        progress.trial, progress.fold, progress.partial, progress.warm = trial.number, 0, [], {}

    def _may_do_without(self, progress: Progress) -> bool:
        """Whether there is hope without the trial that has failed."""
        if np.isfinite(self._whole(progress)).any():
            return True
        more = [trial for trial in self.trials[progress.trial + 1 :] if trial.place == 0]
        return any(trial.number not in progress.left_out and self._too_large(progress, trial) is None for trial in more)

    def _left_out(self, progress: Progress) -> Step:
        unmeasured, trial = (np.nan,) * 3, self.trials[progress.trial]
        setting = f"{trial.family.named(trial.place)}: left out, {progress.left_out[trial.number]}"
        state, done = progress.state(), self._fraction(progress)
        return Step(progress.epochs, *unmeasured, False, state, {}, setting, fraction=done, milestone=True)

    def _too_large(self, progress: Progress, trial: Trial) -> str | None:
        """Why a trial is left out: it needs more memory than there is beside what the search holds; else None."""
        problem, task, folds = self.views.for_family(trial.family)
        size, n_scores = _size(problem), task.n_scores(sum(len(fold.held_out) for fold in folds))
        held = sum(scores.nbytes for scores in progress.scores.values()) + 4 * n_scores
        held += self._state_bytes(trial) if self._keeps_states(trial) else 0
        solver, most = self._solver(trial), trial.family.most_bytes
        needed = solver.bytes_needed(*size)
        if most is not None and needed > most:
            return f"it needs {needed / 2**20:,.0f} MB, and at most {most / 2**20:,.0f} MB are spent on it"
        try:
            if problem.labels is not None:
                refuse(f"measuring {n_scores:,} scores", held + MEASURING_BYTES * n_scores, None)
            with allowing(limit_bytes(None) - held):
                solver.check_memory(*size)
        except TooLargeError as error:
            return _reason(error)
        return None

    def _keeps_states(self, trial: Trial) -> bool:
        """Whether the states of a trial's folds are small enough to be kept and written."""
        return self._state_bytes(trial) <= MOST_STATE

    def _state_bytes(self, trial: Trial) -> int:
        """Of a trial's states, one for each fold."""
        view = self.views.for_family(trial.family)
        return self._solver(trial).bytes_needed(*_size(view.problem)) * len(view.folds)

    def _is_due(self, progress: Progress, trial: Trial) -> bool:
        columns = [self.results.index(self.options.measure), self.results.index("log_loss")]
        return is_due(trial, self.trials, progress.results[:, columns])

    def _try(self, progress: Progress, inner: State | None) -> Iterator[Step]:
        """One trial, from its current fold."""
        trial = self.trials[progress.trial]
        view = self.views.for_family(trial.family)
        task = view.task
        keeps, shown = self._keeps_states(trial), {"trial": float(self._shown(progress, trial))}
        for fold in range(progress.fold, len(view.folds)):
            progress.fold = fold
            problem = self._part(trial, fold)
            solver = self._solver(trial, loosely=True)
            start = inner
            if inner is None and fold in progress.warm:
                before = self._solver(self.trials[progress.warm_from[fold]], loosely=True)
                start = solver.rescaled(problem, progress.warm[fold], before.params.C)
            inner, last, progress.steps = None, None, 0
            began = time.perf_counter()
            for last in solver.steps(problem, start):
                progress.trial_seconds += time.perf_counter() - began
                progress.steps += 1
                if not last.converged:
                    yield self._step(progress, last, trial, shown, keeps=keeps)
                began = time.perf_counter()
            assert last is not None
            progress.trial_epochs += last.epoch
            if trial.family.Cs and solver.has_path and keeps:
                progress.warm[fold] = {name: np.asarray(last.state[name]) for name in last.state}
                progress.warm_from[fold] = trial.number
            X = self._rows_held_out(view, fold)
            scores = task.scores(task.member(solver, problem, last.state), X, fold)
            progress.partial.append(np.asarray(scores, np.float32))
            n_rows, last = problem.n_samples, None
            progress.trial_seconds += time.perf_counter() - began
        every = np.concatenate(progress.partial[: len(view.folds)])
        found = task.measured(every)
        progress.left_out.pop(trial.number, None)
        progress.results[trial.number] = [*found, progress.trial_seconds, progress.trial_epochs, n_rows]
        progress.epochs += progress.trial_epochs
        progress.seconds += progress.trial_seconds
        progress.partial, progress.fold = [], 0
        if not trial.family.sketch:
            progress.scores[trial.number] = every
            self._forget(progress, trial)
        unmeasured = (np.nan,) * 3
        reported, setting = self._reported(progress, trial), trial.family.named(trial.place)
        state, done = progress.state(), self._fraction(progress)
        yield Step(progress.epochs, *unmeasured, False, state, reported, setting, fraction=done, milestone=True)

    def _rows_held_out(self, view: View, fold: int) -> sp.csr_matrix:
        """Those of a fold, which are the same for all trials on a problem."""
        key = id(view.problem), fold
        if key not in self._held_out:
            self._held_out[key] = view.folds[fold].rows_held_out(view.problem)
        return self._held_out[key]

    def _part(self, trial: Trial, fold: int) -> Problem:
        """What a trial is trained on: the rows of a fold, or some of them; the view may have some of the labels."""
        view = self.views.for_family(trial.family)
        part = view.folds[fold]
        if trial.family.sketch == "rows":
            part = part.sketch(view.problem.y, SKETCH_ROWS, self.seed)
        return part.problem(view.problem)

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
        sketches = [trial.family.sketch is not None for trial in self.trials]
        return np.where(sketches, np.nan, progress.results[:, self.results.index(self.options.measure)])

    def _choose(self, progress: Progress) -> None:
        log_loss = progress.results[:, self.results.index("log_loss")]
        best, options = best_of(np.stack([self._whole(progress), log_loss], axis=1)), self.options
        task = self.views.for_family(self.trials[best].family).task
        choice = task.choose(progress.scores, best, options.measure, options.most_members)
        progress.pool, progress.found, progress.kept = choice
        progress.scores, progress.warm, progress.trial_epochs = {}, {}, 0

    def _train(self, progress: Progress, place: int, start: State | None) -> Iterator[Step]:
        """Train a member on all rows."""
        assert progress.pool is not None
        trial, last = self.trials[progress.pool.members[place]], None
        solver = self._solver(trial)
        start = self.start_of(place) if start is None else start
        progress.steps = 0
        for last in solver.steps(self.views.for_family(trial.family).problem, start):
            progress.steps += 1
            if not last.converged:
                yield self._step(progress, last, trial, {"member": float(place)})
        assert last is not None
        self._trained = trial.number, solver
        progress.final[place] = {name: np.asarray(last.state[name]) for name in last.state}
        certified = solver.handles.certified
        bounds = (last.primal, last.dual) if certified else (np.nan, np.nan)
        progress.outcomes.append(Outcome(*bounds, last.converged, solver.handles.closed_form))
        progress.epochs += last.epoch
        progress.violation = float(np.nanmax([progress.violation, last.violation, 0.0]))
        if place < len(progress.pool.members) - 1:
            yield self._step(progress, last, trial, {"member": float(place)}, done=True)

    def _step(
        self,
        progress: Progress,
        inner: Step,
        trial: Trial,
        measures: dict[str, float],
        *,
        keeps: bool = True,
        done: bool = False,
    ) -> Step:
        """A step of a solver as one of the search, whose state has that of the solver if it ``keeps`` that."""
        state = progress.state(inner.state if keeps and not done else None)
        epoch = progress.epochs + (0 if done else progress.trial_epochs + inner.epoch)
        within = 0.0 if done else _within(inner.fraction, progress.steps)
        setting, unmeasured, share = trial.family.named(trial.place), (np.nan,) * 2, self._fraction(progress, within)
        return Step(epoch, *unmeasured, inner.violation, False, state, measures, setting, None, share, milestone=done)

    def _fraction(self, progress: Progress, within: float = 0.0) -> float:
        """An estimate by trials: of a path in C as many are taken to come as are usually made.

        ``within``: how much of the training of the fold, or of the member, under way is done.
        """
        if progress.pool is not None:
            left = FINAL_SHARE * (1.0 - (len(progress.final) + within) / len(progress.pool.members))
            # without folds there are no trials before it
            return 1.0 - left / ((self._expected(progress) if self.views.usual.folds else 0.0) + FINAL_SHARE)
        made = float(np.isfinite(progress.results[:, 0]).sum())
        made += (progress.fold + within) / max(1, len(self.views.for_family(self.trials[progress.trial].family).folds))
        return min(0.99, made / (self._expected(progress) + FINAL_SHARE))

    def _expected(self, progress: Progress) -> float:
        """Trials that are made in all, as far as is known."""
        n = 0.0
        for family in self.families:
            own = [trial.number for trial in self.trials if trial.family is family]
            made = float(np.isfinite(progress.results[own, 0]).sum())
            if own[0] in progress.left_out or (progress.pool is not None or own[-1] < progress.trial):
                n += made
            else:
                n += max(made + (progress.trial in own), 1.0 if family.like else min(len(own), USUAL_TRIALS))
        return max(n, 1.0)

    def _shown(self, progress: Progress, trial: Trial) -> int:
        """The number of a trial among those that are made, from 0: trials are made in their order."""
        return int(np.isfinite(progress.results[: trial.number, 0]).sum())

    def _reported(self, progress: Progress, trial: Trial | None = None) -> dict[str, float]:
        if trial is None:
            return {"members": float(len(progress.final))}
        found = dict(zip(self.results, progress.results[trial.number].tolist(), strict=True))
        return {"trial": float(self._shown(progress, trial)), **found, "log_loss": -found["log_loss"]}

    def _solver(self, trial: Trial, *, loosely: bool = False) -> Solver[Any]:
        tol = max(LOOSE_TOL, self.options.tol) if loosely else self.options.tol
        settings = {"tol": tol, "max_epochs": self.options.max_epochs}
        return trial.family.solver(trial.place, seed=self.seed, threads=self.threads, **settings)


def _size(problem: Problem) -> tuple[int, int, int]:
    """Rows, features and classes, or of sets of labels nodes."""
    labels = problem.labels
    return *problem.X.shape, problem.n_classes if labels is None else int(labels.shape[1])


def _within(reported: float, n_steps: int) -> float:
    """How much of a training is done after so many steps, if it does not report it: an estimate that never falls."""
    return reported if np.isfinite(reported) else n_steps / (n_steps + USUAL_STEPS)


def _reason(error: Exception) -> str:
    """Why a trial was left out, for the record."""
    return "memory ran out" if isinstance(error, MemoryError) else str(error)
