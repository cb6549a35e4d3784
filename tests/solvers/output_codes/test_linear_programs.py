"""Linear programs in a process of their own: the same optimum, steps meanwhile, and an end when nobody waits."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp
from problems import small
from training import machine

from solvers.core.problem import ProblemError
from solvers.output_codes.design import highs_process, linear_programs
from solvers.output_codes.design.linear_programs import LinearProgram


def program(n=40, e=10, seed=0):
    """A feasible, bounded program."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, n)
    A_ub, A_eq = (sp.random(m, n, density=0.5, random_state=rng, format="csc") for m in (2 * e, e))
    box = np.tile([0.0, 2.0], (n, 1))
    return LinearProgram(rng.standard_normal(n), A_ub, A_ub @ x + 0.1, A_eq, A_eq @ x, box, 1e-9)


def solved(task):
    solving = task.solving()
    while True:
        try:
            next(solving)
        except StopIteration as ended:
            return ended.value


@pytest.fixture
def processes(monkeypatch):
    """Every program in a process; those that were begun."""
    begun, start = [], subprocess.Popen

    def noted(*arguments, **named):
        begun.append(start(*arguments, **named))
        return begun[-1]

    monkeypatch.setattr(linear_programs, "OWN_PROCESS_ENTRIES", 0)
    monkeypatch.setattr(linear_programs, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr(subprocess, "Popen", noted)
    return begun


def test_the_process_finds_what_is_found_here(processes):
    task = program()
    here = task._here()
    apart = solved(task)
    assert processes[0].returncode == 0
    for left, right in zip(here, apart, strict=True):
        np.testing.assert_array_equal(left, right)
    assert task.A_eq @ apart[0] == pytest.approx(task.b_eq, abs=1e-7)


def test_small_programs_take_no_process(processes, monkeypatch):
    monkeypatch.setattr(linear_programs, "OWN_PROCESS_ENTRIES", program().n_entries)
    solved(program())
    assert processes == []


def test_a_program_without_an_optimum_is_refused_wherever_it_is_solved(processes, monkeypatch):
    task = program()
    impossible = LinearProgram(task.costs, task.A_ub, task.b_ub, task.A_eq, task.b_eq + 1e4, task.box, 1e-9)
    for entries in (0, 10**9):
        monkeypatch.setattr(linear_programs, "OWN_PROCESS_ENTRIES", entries)
        with pytest.raises(ProblemError, match="HiGHS could not solve"):
            solved(impossible)


def test_a_design_hands_out_steps_while_its_program_is_at_work_and_ends_as_without_a_process(processes, monkeypatch):
    problem = small(n=60, k=4)
    method = machine("continuous_code", norm="l1", tol=1e-4)
    steps = []
    for step in method.steps(problem):
        if "now_design_rounds" in step.state and np.isnan(step.primal):
            # the model of an unfinished design can be had
            method.model(problem, step.state)
        steps.append((step.primal, {name: np.array(value) for name, value in step.state.items()}))
    assert processes
    waited = [t for t, (primal, state) in enumerate(steps) if np.isnan(primal) and "now_design_rounds" in state]
    assert waited
    *_, resumed = method.steps(problem, steps[waited[0]][1])
    monkeypatch.setattr(linear_programs, "OWN_PROCESS_ENTRIES", 10**9)
    *_, alone = method.steps(problem)
    assert steps[-1][0] == alone.primal == resumed.primal


def test_who_no_longer_waits_ends_the_process(processes):
    problem = small(n=60, k=4)
    method = machine("continuous_code", norm="l1")
    steps = method.steps(problem)
    while not processes:
        next(steps)
    assert processes[-1].poll() is None
    steps.close()
    assert processes[-1].poll() == -signal.SIGKILL


def test_a_process_that_is_killed_is_told_as_want_of_memory(processes):
    solving = program().solving()
    next(solving)
    processes[0].kill()
    processes[0].wait()
    with pytest.raises(ProblemError, match="was killed, probably because memory ran out"):
        next(solving)


def test_the_process_ends_with_its_caller(tmp_path):
    # the script as a caller would start it that dies at once: its end of the pipe closes
    np.savez(tmp_path / "task.npz", **program(n=400, e=150)._arrays())
    files = str(tmp_path / "task.npz"), str(tmp_path / "answer.npz")
    command = [sys.executable, "-P", highs_process.__file__, *files]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    process.stdin.close()
    began = time.monotonic()
    assert process.wait(60) == highs_process.ORPHANED
    assert time.monotonic() - began < 60
    assert not (tmp_path / "answer.npz").exists()
