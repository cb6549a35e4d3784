"""What does an evaluation cost beside scoring: places of labels, measures and intervals of 1,000 resamples?

Random scores and labels, one thread; the memory is the process's most, blocks of scores included.
"""

import time

import numpy as np

from benchmarks.processes import apart, peak_bytes
from benchmarks.results import write
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.comparison import paired_bootstrap
from solvers.metrics.evaluation import Evaluation, Labels, Truth
from solvers.metrics.outcomes import Outcomes
from solvers.metrics.ranking import Ranking

BLOCK_BYTES, RESAMPLES = 64 << 20, 1000
# rows, classes, nodes of a label tree (0: none)
CASES = [(10_000, 100, 0), (100_000, 1_000, 0), (20_000, 30_000, 0), (100_000, 0, 2_000)]


def labels_of(n_classes: int, n_nodes: int) -> Labels:
    """Classes, or the leaves of a tree of four levels."""
    if not n_nodes:
        return Labels(tuple(map(str, range(n_classes))), n_classes, np.arange(n_classes))
    parent = [(node - 10) // 8 if node >= 10 else -1 for node in range(n_nodes)]
    tree = Taxonomy.from_parents([f"n{node}" for node in range(n_nodes)], parent)
    return Labels(tree.names, tree.n_nodes, tree.leaves.astype(np.int64), tree)


def measure(n_rows: int, n_classes: int, n_nodes: int) -> list[str]:
    """Seconds of each stage, the number of measures, and megabytes."""
    rng, labels = np.random.default_rng(0), labels_of(n_classes, n_nodes)
    width = len(labels.class_labels)
    y = rng.integers(0, labels.n, n_rows)
    evaluation, step, placing = Evaluation(labels, Truth(labels.close(y), y), False), BLOCK_BYTES // (8 * width), 0.0
    while evaluation.done < n_rows:
        scores = rng.random((min(step, n_rows - evaluation.done), width))
        began = time.process_time()
        evaluation.add(Ranking(scores))
        placing += time.process_time() - began
    began = time.process_time()
    outcomes = Outcomes(evaluation)
    points = outcomes.measures(0)
    measured = time.process_time()
    outcomes.measures(RESAMPLES)
    resampled = time.process_time()
    ranks = outcomes.by_row()["mrr"].astype(np.float64)
    paired_bootstrap(ranks, rng.permutation(ranks))
    compared = time.process_time()
    seconds = (placing, measured - began, resampled - measured, compared - resampled)
    return [*(f"{value:.2f}" for value in seconds), str(len(points)), str(peak_bytes() >> 20)]


def main() -> None:
    rows = []
    for case in CASES:
        found = apart(measure, *case)
        n_rows, n_classes, n_nodes = case
        shape = f"{n_nodes:,} nodes" if n_nodes else f"{n_classes:,} classes"
        rows.append([f"{n_rows:,}", shape, *found])
        print(rows[-1], flush=True)
    header = [
        "rows",
        "labels",
        "places, s",
        "measures, s",
        "1,000 resamples, s",
        "paired bootstrap, s",
        "measures",
        "MB",
    ]
    write("Evaluations", header, rows, "Processor time; the paired bootstrap is that of mrr, 10,000 resamples.")


if __name__ == "__main__":
    main()
