"""How far does a round get with so many sweeps of coordinate descent, and with L-BFGS-B? Lin et al. 2012, Figure 6.

Column generation with class-specific stumps at C = 1e4: ``multiboost_cw`` with several ``tau_max``, and the same rounds
with all weights solved for by L-BFGS-B in place of the sweeps, from the weights of the round before, with its default
stop, the objective through BLAS on one dense matrix of floats a class. One thread, processor seconds of the solver: all
but the search for weak learners. Each stops after so many seconds of it.
"""

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import fmin_l_bfgs_b

from benchmarks import pictures, sets
from benchmarks.bench_boosting_figures import timed
from benchmarks.results import write
from solvers.boosting.pairs.pair_loss import PairLoss
from solvers.boosting.weak_learners.stumps import Stumps
from solvers.core.problem import Problem
from solvers.methods.multiboost_cw import MultiboostCw, MultiboostCwParams
from solvers.numerics.thread_pool import ThreadPool

SETS, SWEEPS = ["vowel", "usps"], [1, 2, 5, 20]
C, ROUNDS, CAP = 1e4, 200, 20.0
MARKS = (20, 100, 200)


def descended(problem: Problem, tau_max: int, rounds: int) -> Iterator[tuple[float, float]]:
    """Objective and seconds of the solver after each round."""
    method, spent = MultiboostCw(MultiboostCwParams(C=C, tau_max=tau_max, max_epochs=rounds, tol=1e-9)), 0.0
    with timed([(Stumps, "find_and_evaluate"), (PairLoss, "measure")]) as search:
        steps = method.steps(problem)
        while spent - search[0] < CAP:
            began = time.process_time()
            step = next(steps, None)
            spent += time.process_time() - began
            if step is None:
                return
            if step.primal == step.primal:
                yield step.primal, spent - search[0]


def solved(problem: Problem, rounds: int) -> Iterator[tuple[float, float]]:
    """The same by L-BFGS-B."""
    method = MultiboostCw(MultiboostCwParams(C=C, max_epochs=rounds, tol=1e-9))
    task, thread_pool, spent = method.task(problem), ThreadPool(1), 0.0
    run = method.run(task)
    signs = np.empty(0)
    for _ in range(rounds):
        view = run._measure(thread_pool)
        assert view.found is not None
        run._admit(view.found)
        began = time.process_time()
        variables = run.variables
        new = np.arange(len(signs), len(variables))
        # the weights of L-BFGS-B are not negative, as the paper's: of a stump and its negative the one that was found
        signs = np.append(signs, np.sign(view.found.values[variables.owners[new]]))
        responses = task.learners.responses(variables.learners)
        variables.weights[:], value = minimum(run.loss, responses, variables.owners, variables.weights, signs)
        spent += time.process_time() - began
        variables.scored[:], run._measured = variables.weights, None
        run.loss.refresh()
        yield value, spent
        if spent > CAP:
            return


def minimum(
    loss: PairLoss, responses: NDArray[np.int8], owners: NDArray[np.int32], weights: NDArray[np.float64], signs: Any
) -> tuple[NDArray[np.float64], float]:
    """The best weights for all columns, and the objective there; the scores of the loss follow."""
    k, rows = len(loss.F), np.arange(len(loss.y))
    of_class = [np.flatnonzero(owners == c) for c in range(k)]
    matrices = [np.asfortranarray((responses[own] * signs[own, None]).T) for own in of_class]

    def objective(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        for c, (own, H) in enumerate(zip(of_class, matrices, strict=True)):
            loss.F[c] = H @ w[own]
        u = -loss.omega * np.exp(np.minimum(loss.F - loss.F[loss.y, rows], 500.0))
        u[loss.y, rows] = 0.0
        u[loss.y, rows] = -u.sum(axis=0)
        gradient = np.empty(len(w))
        for c, (own, H) in enumerate(zip(of_class, matrices, strict=True)):
            gradient[own] = u[c] @ H
        return float(w.sum() + loss.rate * u[loss.y, rows].sum()), 1.0 - loss.rate * gradient

    best, value, _ = fmin_l_bfgs_b(objective, signs * weights, bounds=[(0.0, None)] * len(weights))
    objective(best)
    return signs * best, float(value)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sets", nargs="*", default=SETS)
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = arguments.parse_args()
    names = [name for name in chosen.sets if name in sets.available()]
    rows, lines = [], []
    for name in names:
        problem = Problem.check(*sets.load(name))
        list(descended(problem, 2, 2))
        list(solved(problem, 2))
        ways = {f"FCD {tau_max}": descended(problem, tau_max, chosen.rounds) for tau_max in SWEEPS}
        for who, steps in (ways | {"L-BFGS-B": solved(problem, chosen.rounds)}).items():
            curve = np.array(list(steps))
            for panel, values in zip(("objective", "solver's time, s"), curve.T, strict=True):
                thin = np.unique(np.geomspace(1, len(values), pictures.MOST_POINTS).astype(int)) - 1
                points = [(float(at + 1), float(values[at])) for at in thin]
                lines.append(pictures.Curve(name, panel, who, points))
            reported = [f"{curve[at - 1, 0]:.4g}" if at <= len(curve) else "" for at in MARKS]
            rows.append([name, who, len(curve), *reported, f"{curve[-1, 1]:.2f}"])
            print(*rows[-1], flush=True)
    header = ["set", "solver", "iterations", *(f"objective at {mark}" for mark in MARKS), "solver, s"]
    note = f"The number is tau_max. What has fewer iterations than {chosen.rounds} took {CAP:g} s of the solver."
    write("Boosting: sweeps a round, and L-BFGS-B", header, rows, note)
    pictures.write("boosting_sweeps", lines)


if __name__ == "__main__":
    main()
