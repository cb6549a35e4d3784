"""How long do maximum-margin Markov trees take to a certified gap, and how does an epoch grow with nodes and entries?

One thread, C = 1, the symmetric loss over closed sets unless noted otherwise; processor seconds of the whole training,
certificates included.
"""

import statistics
import sys
import time
from typing import Any

import numpy as np

from benchmarks import sets
from benchmarks.results import write
from solvers.core.base import Step
from solvers.core.problem import Problem
from solvers.labels.taxonomy import Taxonomy
from solvers.registry import SOLVERS, parse_params

VARIANTS: list[dict[str, Any]] = [{}, {"labelings": "all"}, {"loss": "hierarchical", "scaling": "subtree"}]
CASES: dict[str, list[dict[str, Any]]] = {
    "enron": VARIANTS,
    "imclef07a": VARIANTS[:1],
    # of mean 0, so that only a constant can express how rare a label is
    "cellcycle_fun": [{}, {"bias": 1.0}, {"C": 10.0}, {"C": 100.0}],
    "seq_fun": [{}, {"bias": 1.0}],
    "naics-188": VARIANTS,
    "naics": VARIANTS[:1],
    "debian-tags": VARIANTS[:1],
}
# whose trainings take minutes: one each, to the first gap
LARGE = ("naics", "debian-tags")
TOLERANCES = (1e-2, 1e-3)
RUNS = 3
# of the paper's WIPO-alpha, section D
DOCUMENTS, NODES = 1372, 188
EPOCHS = 5


def load(name: str) -> Problem:
    """A set by its name; of naics also the part that has the size of the paper's larger set."""
    if name in sets.TREE + sets.MULTILABEL:
        return sets.load_sets(name)[0]
    problem = sets.load_sets("naics")[0]
    assert problem.taxonomy is not None
    labels = problem.label_sets()
    return part(problem, within(problem.taxonomy, NODES), np.flatnonzero(labels.getnnz(axis=1) > 0), DOCUMENTS)


def within(tree: Taxonomy, n_nodes: int) -> np.ndarray[Any, Any]:
    """The nodes of the first subtrees below the root that together have at most so many."""
    tops, taken = np.array([int(tree.path(j)[0]) for j in range(tree.n_nodes)]), np.zeros(tree.n_nodes, bool)
    for top in tree.children(-1):
        if taken.sum() + (tops == top).sum() <= n_nodes:
            taken |= tops == top
    return np.flatnonzero(taken)


def part(problem: Problem, nodes: np.ndarray[Any, Any], rows: np.ndarray[Any, Any], n_rows: int) -> Problem:
    """The first so many of these rows that have one of the nodes, and nothing of the rest of the tree."""
    tree, labels = problem.taxonomy, problem.label_sets()[:, nodes]
    assert tree is not None
    rows = rows[labels[rows].getnnz(axis=1) > 0][:n_rows]
    number = np.full(tree.n_nodes + 1, -1)
    number[nodes] = np.arange(len(nodes))
    less = Taxonomy(tuple(tree.names[j] for j in nodes), number[tree.parent[nodes]].astype(np.int32))
    return Problem.check_sets(problem.X[rows], labels[rows], less)


def train(problem: Problem, **params: Any) -> tuple[float, Step]:
    """Processor seconds and the last step."""
    solver = SOLVERS["hm3"](parse_params("hm3", params))
    began = time.process_time()
    *_, last = solver.steps(problem)
    return time.process_time() - began, last


def main() -> None:
    for name in sys.argv[1:] or [*CASES, "growth"]:
        if name == "growth":
            growth()
        else:
            times(name)


def times(name: str) -> None:
    """Seconds to the gaps asked for."""
    rows, problem = [], load(name)
    assert problem.taxonomy is not None
    for params in CASES[name]:
        train(problem, max_epochs=1, **params)
        for tol in TOLERANCES if not params and name not in LARGE else TOLERANCES[:1]:
            runs = [train(problem, tol=tol, **params) for _ in range(1 if name in LARGE else RUNS)]
            seconds, last = statistics.median(run[0] for run in runs), runs[0][1]
            said = {"bias": "with a constant feature", "C": f"C = {params.get('C', 1.0):g}"}
            variant = ", ".join(said.get(key, value) for key, value in params.items()) or "symmetric, consistent"
            rows.append([variant, tol, last.epoch, f"{seconds:.2f}", f"{last.gap:.5f}"])
            print(rows[-1], flush=True)
    header = ["variant", "gap asked for", "epochs", "s", "gap"]
    size = f"n {problem.n_samples}, {problem.X.nnz} entries, {problem.taxonomy.n_nodes} nodes"
    note = f"{size}; rows of length 1; {'one run' if name in LARGE else f'medians of {RUNS} runs'}."
    write(f"Maximum-margin Markov trees: {name}", header, rows, note)


def growth() -> None:
    """Seconds of an epoch as nodes, and as rows, double."""
    rows, problem = [], sets.load_sets("debian-tags")[0]
    tree, every = problem.taxonomy, np.arange(problem.n_samples)
    assert tree is not None
    for n_nodes in (80, 160, 320, 640):
        rows.append(of_an_epoch(part(problem, within(tree, n_nodes), every, 10_000)))
    for n_rows in (5_000, 10_000, 20_000, 40_000):
        rows.append(of_an_epoch(part(problem, np.arange(tree.n_nodes), every, n_rows)))
    header = ["n", "entries", "nodes", "s an epoch", "ns for each node and entry", "ns for each node and row"]
    write("Maximum-margin Markov trees as data grow", header, rows, f"debian-tags; the mean of {EPOCHS} epochs.")


def of_an_epoch(problem: Problem) -> list[Any]:
    """Seconds of an epoch, in all and for each of what they are in proportion to."""
    train(problem, max_epochs=1)
    seconds = train(problem, max_epochs=EPOCHS, tol=1e-9)[0] / EPOCHS
    each = 1e9 * seconds / problem.n_classes
    row = [problem.n_samples, problem.X.nnz, problem.n_classes, f"{seconds:.2f}"]
    print(row, flush=True)
    return [*row, f"{each / problem.X.nnz:.2f}", f"{each / problem.n_samples:.1f}"]


if __name__ == "__main__":
    main()
