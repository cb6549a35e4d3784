"""Do machines over a label tree beat flat ones, and how long do they take to a certified gap?

One thread, no bias, processor seconds of the whole training, certificates included. Beside Crammer-Singer's machine, on
the same rows with the same C, all machines of a set take turns.
"""

import argparse
import statistics
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from benchmarks import sets
from benchmarks.results import write
from solvers.core.base import Solver
from solvers.core.problem import Problem
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.hierarchical import hierarchical
from solvers.registry import SOLVERS, parse_params

METHODS = [
    *[("orthogonal_transfer", tol) for tol in (1e-2, 1e-3)],
    *[(name, 1e-2) for name in ("hierarchical_multiclass", "flat_multiclass", "transfer", "tree_loss")],
]
BESIDE = (
    "crammer_singer",
    "flat_multiclass",
    "hierarchical_multiclass",
    "orthogonal_transfer",
    "transfer",
    "tree_loss",
)
RUNS = 3
ITERATIONS = 100
PARTS = ("sets", "beside")
CASES = [
    ("made", 1.0),
    ("made", 10.0),
    ("made", 100.0),
    *((name, C) for name in ("imclef07a", "naics") for C in (1.0, 10.0)),
]
MOST_SECONDS = 60.0
# rows, features and leaves of the made set
MADE = (2065, 371, 329)
# nodes of its upper levels
WIDTHS = (9, 54)


def made(n: int = MADE[0], d: int = MADE[1], k: int = MADE[2], seed: int = 0) -> Problem:
    """Dense rows of length 1 in clusters around the centres of leaves, which lie around those of their parents.

    Half of each row is noise, and one label in twenty is drawn again. The tree has three levels.
    """
    rng, parents, above = np.random.default_rng(seed), [-1] * WIDTHS[0], np.arange(WIDTHS[0])
    for width in (WIDTHS[1], k):
        # every node has a child, the others go anywhere
        parents += np.sort(np.concatenate([above, rng.choice(above, width - len(above))])).tolist()
        above = np.arange(len(parents) - width, len(parents))
    tree = Taxonomy.from_parents([str(i) for i in range(len(parents))], np.array(parents))
    centres = rng.standard_normal((tree.n_nodes, d))
    for node in np.flatnonzero(tree.parent >= 0):
        centres[node] = centres[tree.parent[node]] + centres[node]
    y = np.concatenate([np.arange(k), rng.integers(k, size=n - k)])
    X = normalize(centres[tree.leaves[y]]) + normalize(rng.standard_normal((n, d)))
    noisy = np.flatnonzero(rng.random(n) < 0.05)
    y[noisy[noisy >= k]] = rng.integers(k, size=int((noisy >= k).sum()))
    return Problem.check(sp.csr_matrix(normalize(X)), y, [tree.names[i] for i in tree.leaves.tolist()], taxonomy=tree)


def train(name: str, problem: Problem, most: float = np.inf, **params: Any) -> tuple[float, Any, Solver[Any]]:
    """Processor seconds, the last step with bounds, and the solver; ended at a step after ``most`` seconds."""
    solver, last = SOLVERS[name](parse_params(name, params)), None
    began = time.process_time()
    for step in solver.steps(problem):
        last = step if last is None or np.isfinite(step.primal) else last
        if time.process_time() - began > most:
            break
    return time.process_time() - began, last, solver


def of_sets(names: list[str]) -> None:
    """Times and errors on sets with a label tree."""
    rows, averaging = [], []
    for name in names:
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
                f"{100 * reported['hierarchical_f1']:.1f}",
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


def beside(names: list[str], runs: int) -> None:
    """Times to one gap as multiples of Crammer-Singer's on the same rows."""
    rows = []
    for name, C in CASES:
        if name not in names:
            continue
        problem = made() if name == "made" else sets.load_tree(name)[0]
        for method in BESIDE:
            # as many epochs as compile conjugate gradients, too, which begin with the tenth
            train(method, problem, MOST_SECONDS / 4, C=C, tol=1e-4, max_epochs=12)
        found: dict[str, list[tuple[float, Any]]] = {method: [] for method in BESIDE}
        for _ in range(runs):
            for method in BESIDE:
                if not found[method] or found[method][0][0] < MOST_SECONDS / 4:
                    found[method].append(train(method, problem, MOST_SECONDS, C=C)[:2])
        seconds = {method: statistics.median(run[0] for run in done) for method, done in found.items()}
        for method in BESIDE:
            last = found[method][-1][1]
            ratio = seconds[method] / seconds["crammer_singer"]
            rows.append(
                [name, f"{C:g}", method, last.epoch, f"{seconds[method]:.3g}", f"{last.gap:.4f}", f"{ratio:.2f}"]
            )
            print(rows[-1], flush=True)
    header = ["set", "C", "method", "epochs", "s", "gap", "ratio"]
    n, d, k = MADE
    note = (
        f"To a gap of 1 %, rows of length 1; made: {n:,} dense rows, {d} features, {k} leaves. Medians of {runs} runs "
        f"in turns, one where a run takes more than {MOST_SECONDS / 4:g} s; ended after {MOST_SECONDS:g} s. "
        "The ratio is to crammer_singer."
    )
    write("Machines over a label tree beside Crammer-Singer", header, rows, note)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("sets", nargs="*", default=None)
    arguments.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS)
    arguments.add_argument("--runs", type=int, default=RUNS)
    chosen = arguments.parse_args()
    if "sets" in chosen.parts:
        of_sets(chosen.sets or sets.TREE)
    if "beside" in chosen.parts:
        beside(chosen.sets or [name for name, _ in CASES], chosen.runs)


if __name__ == "__main__":
    main()
