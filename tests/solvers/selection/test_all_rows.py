"""A model that was measured on rows held out is trained once more, with them."""

from itertools import islice

import numpy as np
import pytest
from problems import small_sets
from test_auto import CANDIDATES, texts
from test_auto_sets import CANDIDATES as SET_CANDIDATES

from solvers.core.problem import Problem
from solvers.registry import make


def parted(problem, rows):
    """The problem of some rows, whose classes are those that they have."""
    present, y = np.unique(problem.y[rows], return_inverse=True)
    return Problem.check(problem.X[rows], y, [problem.classes[c] for c in present])


def places(n, rows):
    found = np.full(n, -1)
    found[rows] = np.arange(len(rows))
    return found


def last_of(steps):
    *_, last = steps
    return last


def test_the_chosen_members_are_trained_on_all_rows_with_the_coefficients_of_the_search():
    problem = texts(n=240)
    rows = np.flatnonzero(np.arange(240) % 5 > 0)
    rows = rows[problem.y[rows] > 0]  # a class that only the others have
    former, solver = parted(problem, rows), make("auto", {"candidates": CANDIDATES, "tol": 1e-3}, seed=1)
    state = last_of(solver.steps(former)).state
    measured = solver.model(former, state)
    again, start = solver.on_all_rows(former, state, problem, places(240, rows))
    last = last_of(again.steps(problem, start))
    served = again.model(problem, last.state)
    assert last.converged
    assert last.gap <= 1e-3
    assert len(served.classes) == len(measured.classes) + 1
    np.testing.assert_array_equal(served.coefficients, measured.coefficients)
    assert [member["solver"] for member in served.record["members"]] == [
        member["solver"] for member in measured.record["members"]
    ]
    assert served.record["trials"] == measured.record["trials"]
    # the new class is answered
    assert (served.scores(problem.X).argmax(axis=1)[problem.y == 0] == 0).mean() > 0.5


@pytest.mark.parametrize("name", ["crammer_singer", "weston_watkins"])
def test_dual_variables_take_a_machine_to_the_same_optimum_in_fewer_epochs(name):
    problem = texts(n=240)
    rows = np.flatnonzero(np.arange(240) % 5 > 0)
    former, solver = parted(problem, rows), make(name, {"tol": 1e-3})
    state = last_of(solver.steps(former)).state
    again, start = solver.on_all_rows(former, state, problem, places(240, rows))
    warm, cold = last_of(again.steps(problem, start)), last_of(solver.steps(problem))
    assert warm.converged
    assert warm.epoch < cold.epoch
    assert warm.dual <= cold.primal
    assert cold.dual <= warm.primal


def test_a_label_that_only_held_out_rows_have_gets_a_calibration_like_others():
    problem = small_sets(n=120)
    leaf = int(np.flatnonzero(problem.tree.parent >= 0)[-1])
    has = np.asarray(problem.labels[:, [leaf]].toarray()).ravel()
    rows = np.flatnonzero(~has)
    former = Problem.check_sets(problem.X[rows], problem.labels[rows], problem.tree)
    solver = make("auto", {"candidates": SET_CANDIDATES[:1]}, seed=1)
    state = last_of(solver.steps(former)).state
    again, start = solver.on_all_rows(former, state, problem, places(120, rows))
    served = again.model(problem, last_of(again.steps(problem, start)).state)
    before = solver.model(former, state)
    assert np.ptp(before.scores(problem.X)[:, leaf]) == 0.0 or leaf not in before.part.nodes
    scores = served.scores(problem.X)[:, leaf]
    assert scores[has].mean() > scores[~has].mean()


def test_a_training_on_all_rows_resumes_to_the_same_bits():
    problem = texts(n=240)
    rows = np.flatnonzero(np.arange(240) % 5 > 0)
    former, solver = parted(problem, rows), make("auto", {"candidates": CANDIDATES, "tol": 1e-3}, seed=1)
    state = {name: np.array(array) for name, array in last_of(solver.steps(former)).state.items()}
    again, start = solver.on_all_rows(former, state, problem, places(240, rows))
    whole = again.model(problem, last_of(again.steps(problem, start)).state).arrays()
    step = list(islice(again.steps(problem, start), 2))[-1]
    kept = {name: np.array(array) for name, array in step.state.items()}
    other, _ = solver.on_all_rows(former, state, problem, places(240, rows))
    resumed = other.model(problem, last_of(other.steps(problem, kept)).state).arrays()
    for name, array in whole.items():
        np.testing.assert_array_equal(array, resumed[name])
