"""How many times a flat machine's time do machines over a label tree take to a certified gap, up to C = 10 n?

Processor seconds of whole trainings in one thread, certificates included; the machines of a set take turns.
"""

import argparse
import statistics

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from benchmarks.bench_transfer import made, train
from benchmarks.results import write
from solvers.core.problem import Problem
from solvers.labels.taxonomy import Taxonomy

BASE = "flat_multiclass"
METHODS = (BASE, "hierarchical_multiclass", "transfer", "orthogonal_transfer")
# values of C, and as multiples of the number of rows
PLAIN, TIMES_N = (1e-2, 1.0, 100.0), (1.0, 10.0)
GAPS = (1e-2, 1e-3)
MOST_SECONDS = 60.0
# rows, features, and nodes of each level of the skewed set
ROWS, FEATURES, LEVELS = 2000, 371, (9, 54, 335)


def skewed(seed: int = 0) -> Problem:
    """Dense rows without negative features, of classes that have rows in proportion to 1 by their rank.

    Clusters lie around those of their parents, as in the made set. Two thirds of each row are noise, a feature is the
    exponential of eight times that, divided by its deviation, and one label in ten is drawn again.
    """
    rng, parents, above = np.random.default_rng(seed), [-1] * LEVELS[0], np.arange(LEVELS[0])
    for width in LEVELS[1:]:
        parents += np.sort(np.concatenate([above, rng.choice(above, width - len(above))])).tolist()
        above = np.arange(len(parents) - width, len(parents))
    tree = Taxonomy.from_parents([str(i) for i in range(len(parents))], np.array(parents))
    centres = rng.standard_normal((tree.n_nodes, FEATURES))
    for node in np.flatnonzero(tree.parent >= 0):
        centres[node] = centres[tree.parent[node]] + centres[node]
    k = LEVELS[-1]
    shares = 1.0 / (1.0 + rng.permutation(k))
    y = np.concatenate([np.arange(k), rng.choice(k, ROWS - k, p=shares / shares.sum())])
    X = normalize(centres[tree.leaves[y]]) + 2.0 * normalize(rng.standard_normal((ROWS, FEATURES)))
    X = np.exp(8.0 * normalize(X))
    noisy = np.flatnonzero(rng.random(ROWS) < 0.1)
    y[noisy[noisy >= k]] = rng.integers(k, size=int((noisy >= k).sum()))
    names = [tree.names[i] for i in tree.leaves.tolist()]
    return Problem.check(sp.csr_matrix(normalize(X / X.std(axis=0))), y, names, taxonomy=tree)


SETS = {"made": made, "skewed": skewed}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    arguments.add_argument("--runs", type=int, default=3)
    chosen = arguments.parse_args()
    rows = []
    for name in chosen.sets:
        problem = SETS[name]()
        for method in METHODS:
            train(method, problem, C=100.0, tol=1e-4, max_epochs=30)  # compiles what later epochs need, too
        n = problem.n_samples
        Cs = [(f"{C:g}", C) for C in PLAIN] + [(f"{times:g} n", times * n) for times in TIMES_N]
        for tol in GAPS:
            for shown, C in Cs:
                rows += _beside(name, problem, shown, C, tol, chosen.runs)
    note = (
        f"Medians of {chosen.runs} runs in turns, ended after {MOST_SECONDS:g} s; made: as in bench_transfer; skewed: "
        f"{ROWS:,} rows, {FEATURES} features without negative values, {sum(LEVELS)} nodes, classes of 1/rank. n is the "
        f"number of rows. Ratios are to {BASE}, of an epoch's time as well."
    )
    header = ["set", "gap asked for", "C", "method", "epochs", "s", "gap", "ratio", "ratio of an epoch"]
    write("Label trees at little regularisation", header, rows, note)


def _beside(name: str, problem: Problem, shown: str, C: float, tol: float, runs: int) -> list[list[object]]:
    seconds: dict[str, list[float]] = {method: [] for method in METHODS}
    last = {}
    for _ in range(runs):
        for method in METHODS:
            took, last[method], _ = train(method, problem, MOST_SECONDS, C=C, tol=tol, max_epochs=100_000)
            seconds[method].append(took)
    median = {method: statistics.median(taken) for method, taken in seconds.items()}
    rows: list[list[object]] = []
    for method in METHODS:
        step, ratio = last[method], median[method] / median[BASE]
        of_epoch = ratio * last[BASE].epoch / step.epoch
        figures = [f"{median[method]:.3g}", f"{step.gap:.5f}", f"{ratio:.2f}", f"{of_epoch:.2f}"]
        rows.append([name, f"{tol:g}", shown, method, step.epoch, *figures])
        print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    main()
