"""What spares passes over all classes changes the way to the optimum, and neither the optimum nor what is certified."""

from collections import deque

import numpy as np
import pytest
import test_contract
from test_hybrid import many
from training import machine

import solvers.linear.driver.ascent
import solvers.linear.driver.long_passes
from solvers.core.base import Step
from solvers.linear.driver.long_passes import LongPasses
from solvers.linear.driver.run import Run

machines = pytest.mark.parametrize("name", ["weston_watkins", "crammer_singer"])


@pytest.fixture
def long(monkeypatch):
    """All passes count as long, and any classes as many."""
    monkeypatch.setattr(solvers.linear.driver.long_passes, "LONG", 0.0)
    monkeypatch.setattr(solvers.linear.driver.long_passes, "MANY_CLASSES", 32)


def steps_of(name: str, seed: int = 0, **params) -> list[Step]:
    method = machine(name, seed=seed, **params)
    return list(method.steps(many()))


@machines
def test_the_same_optimum_is_certified(name, long, monkeypatch):
    (*_, last) = steps_of(name, tol=1e-6)
    monkeypatch.setattr(solvers.linear.driver.long_passes, "LONG", np.inf)
    (*_, plain) = steps_of(name, tol=1e-6)
    assert last.converged
    assert last.primal == pytest.approx(plain.primal, rel=2e-6)
    assert last.dual == pytest.approx(plain.dual, rel=2e-6)


@machines
def test_the_first_pass_looks_at_a_block_of_classes_beside_the_own_one(name, long):
    (*_, last) = steps_of(name, tol=1e-3, max_epochs=1)
    held = last.state["dual_length"]
    assert 0 < held.max() <= 1 + solvers.linear.driver.ascent.FIRST_CANDIDATES
    # what all classes violate is not known
    assert last.violation == 0.0


@machines
@pytest.mark.parametrize("slices", [1 << 27, 3000])
def test_a_run_resumes_bit_for_bit_within_the_first_pass_and_behind_it(name, slices, long, monkeypatch):
    monkeypatch.setattr(solvers.linear.driver.ascent, "SLICE_OPERATIONS", slices)
    problem = many()
    method = machine(name, tol=1e-3, max_epochs=8)
    states = [test_contract.copied(step.state) for step in method.steps(problem)]
    for stop in (0, 1, len(states) // 2):
        ((left, last),) = deque(enumerate(method.steps(problem, states[stop]), 1), maxlen=1)
        assert left == len(states) - stop - 1
        for key, array in states[-1].items():
            np.testing.assert_array_equal(last.state[key], array, err_msg=key)


@machines
def test_a_warm_start_begins_with_all_classes(name, long):
    problem = many()
    method = machine(name, tol=1e-2)
    *_, last = method.steps(problem)
    warm = next(method.steps(problem, method.rescale(problem, last.state, 2.0)))
    assert warm.epoch == 1
    assert warm.violation > 0.0


@machines
def test_a_sample_of_all_examples_has_the_gap_of_the_certificate(name, long, monkeypatch):
    found = []
    sampled_gap = LongPasses._sampled_gap

    def noted(self, task, run: Run, some, n):
        gaps = np.zeros(len(task.y))
        primal, dual, _ = self.loss.measure(task, run, gaps, np.zeros_like(gaps))
        error = 2.0 * np.sqrt(n) * gaps.std()
        expected = (primal + error - dual) / (primal + error)
        found.append((sampled_gap(self, task, run, some, n), expected))
        return 1.0

    monkeypatch.setattr(LongPasses, "_sampled_gap", noted)
    monkeypatch.setattr(solvers.linear.driver.long_passes, "SAMPLED", 1)
    steps_of(name, tol=1e-2, dtype="float64")
    assert len(found) > 0
    sampled, exact = np.array(found).T
    # the products are summed in another order, from weights that visits have changed step by step
    np.testing.assert_allclose(sampled, exact, rtol=1e-6, atol=1e-9)


def test_a_sample_that_promises_has_the_certificate_taken_at_once(long, monkeypatch):
    monkeypatch.setattr(LongPasses, "_sampled_gap", lambda *arguments: 0.0)
    monkeypatch.setattr(solvers.linear.driver.long_passes, "SAMPLED", 1)
    certified = [step.epoch for step in steps_of("weston_watkins", tol=1e-2) if not np.isnan(step.gap)]
    monkeypatch.setattr(LongPasses, "_sampled_gap", lambda *arguments: 1.0)
    later = [step.epoch for step in steps_of("weston_watkins", tol=1e-2) if not np.isnan(step.gap)]
    assert certified[0] < later[0]
