"""Do machines over a label tree beat flat ones, and how long do they take to a certified gap?

One thread, C = 1 (the paper's C = n_samples), no bias, processor seconds of the whole training, certificates included.
"""

import statistics
import sys
import time
from typing import Any

from benchmarks import sets
from benchmarks.results import write
from solvers.core.base import Solver
from solvers.core.problem import Problem
from solvers.metrics.hierarchical import hierarchical
from solvers.registry import SOLVERS, parse_params

METHODS = [
    *[("orthogonal_transfer", tol) for tol in (1e-2, 1e-3)],
    *[(name, 1e-2) for name in ("hierarchical_multiclass", "flat_multiclass", "transfer", "tree_loss")],
]
RUNS = 3
ITERATIONS = 100


def train(name: str, problem: Problem, **params: Any) -> tuple[float, Any, Solver[Any]]:
    """Processor seconds, the last step, and the solver."""
    solver = SOLVERS[name](parse_params(name, params))
    began = time.process_time()
    *_, last = solver.steps(problem)
    return time.process_time() - began, last, solver


def main() -> None:
    rows, averaging = [], []
    for name in sys.argv[1:] or sets.TREE:
        problem, X, y = sets.load_tree(name)
        tree = problem.taxonomy
        assert tree is not None
        for method, tol in METHODS:
            train(method, problem, tol=0.9, max_epochs=2)
            runs = [train(method, problem, tol=tol) for _ in range(RUNS)]
            seconds, (_, last, solver) = statistics.median(run[0] for run in runs), runs[-1]
            reported = hierarchical(tree, y, solver.model(problem, last.state).predict(X))
            score = [
                f"{100 * reported['error']:.1f}",
                f"{reported['tree_loss']:.3f}",
                f"{100 * reported['micro_f1']:.1f}",
            ]
            rows.append([name, method, tol, last.epoch, f"{seconds:.2f}", f"{last.gap:.4f}", *score])
            print(rows[-1], flush=True)
        train("orthogonal_transfer", problem, algorithm="rda", max_epochs=1)
        seconds, last, _ = train("orthogonal_transfer", problem, algorithm="rda", max_epochs=ITERATIONS)
        averaging.append(
            [name, ITERATIONS, f"{seconds:.1f}", f"{last.primal:.5g}", f"{last.dual:.5g}", f"{last.gap:.3f}"]
        )
    header = ["set", "method", "gap asked for", "epochs", "s", "gap", "0/1 error, %", "tree loss", "micro F1, %"]
    write("Machines over a label tree", header, rows, f"Rows of length 1, C = 1; medians of {RUNS} runs.")
    header = ["set", "iterations", "s", "upper bound", "lower bound", "gap"]
    write("Orthogonal transfer by the paper's dual averaging", header, averaging, "The same problems; one run.")


if __name__ == "__main__":
    main()
