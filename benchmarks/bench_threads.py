"""What do two threads gain, in wall-clock time, on the way to LIBLINEAR's objective at its default stop?

C = 1, no bias, after compiling; both cores should be free for the figures to mean much.
"""

import argparse
import os
import statistics
import time

import numpy as np

from benchmarks import sets
from benchmarks.bench_peers import ours
from benchmarks.objectives import primal
from benchmarks.peers import LIBLINEAR, liblinear
from benchmarks.results import write
from solvers.core.problem import Problem

METHODS = ["one_vs_rest"]
SETS = ["debian-maintainer", "naics", "debian-section"]
THREADS = (1, 2)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sets", nargs="*", default=[name for name in SETS if name in sets.available()])
    arguments.add_argument("--methods", nargs="*", default=METHODS)
    arguments.add_argument("--runs", type=int, default=5)
    chosen = arguments.parse_args()
    rows = []
    for name in chosen.sets or ["docstrings"]:
        X, y = sets.load(name)
        task = Problem.check(X, y)
        for method in chosen.methods:
            peer, W = liblinear(X, y, LIBLINEAR[method])
            target = primal(method, W, X, y)
            for threads in THREADS:
                ours(method, task, np.inf, threads=threads)
            # in turn, so that whatever else loads the machine weighs on all alike
            runs = [
                [ours(method, task, target, threads=threads, clock=time.perf_counter)[0] for threads in THREADS]
                for _ in range(chosen.runs)
            ]
            walls = [statistics.median(column) for column in zip(*runs, strict=True)]
            ratio = statistics.median(two / one for one, two in runs)
            load = f"{os.getloadavg()[0]:.1f}"
            rows.append([name, method, task.n_classes, f"{peer:.3g}", *(f"{wall:.3g}" for wall in walls),
                         f"{ratio:.2f}", load])  # fmt: skip
            print(rows[-1], flush=True)
    header = ["set", "method", "k", "LIBLINEAR, cpu s", *(f"wall s, threads={t}" for t in THREADS), "ratio", "load"]
    write("Threads, to LIBLINEAR's objective", header, rows, f"Medians of {chosen.runs} runs.")


if __name__ == "__main__":
    main()
