"""How do time and memory of an epoch grow with the data and with the classes?

Synthetic text, C = 1, one thread, each training in a process of its own. The exponent is that of the power of the
varied size that fits the seconds best; 1 is linear growth.
"""

import argparse
import time

import numpy as np

from benchmarks.processes import apart, peak_bytes
from benchmarks.results import write
from benchmarks.synthetic import Shape, text
from solvers.core.problem import Problem
from solvers.registry import SOLVERS, parse_params

MACHINES = ["weston_watkins", "crammer_singer"]
EPOCHS = 3
DATA = [Shape(n, 40_000, 1000, 60) for n in (5_000, 10_000, 20_000, 40_000, 80_000)]
CLASSES = [Shape(20_000, 40_000, k, 60) for k in (500, 1000, 2000, 4000, 8000, 16_000)]


def train(machine: str, shape: Shape) -> tuple[int, float, int, int]:
    """Entries of X, processor seconds an epoch, the process's peak of memory, and that before training."""
    warm = Problem.check(*text(Shape(max(4500, shape.k), 2000, shape.k, 10)))
    list(SOLVERS[machine](parse_params(machine, {"max_epochs": 1})).steps(warm))
    X, y = text(shape)
    problem, before = Problem.check(X, y), peak_bytes()
    began = time.process_time()
    *_, last = SOLVERS[machine](parse_params(machine, {"tol": 1e-4, "max_epochs": EPOCHS})).steps(problem)
    return X.nnz, (time.process_time() - began) / last.epoch, peak_bytes(), before


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--machines", nargs="*", default=MACHINES)
    arguments.add_argument("--runs", type=int, default=3)
    chosen = arguments.parse_args()
    rows = []
    for machine in chosen.machines:
        for varied, shapes in (("entries", DATA), ("classes", CLASSES)):
            found = []
            for shape in shapes:
                runs = [apart(train, machine, shape) for _ in range(chosen.runs)]
                nnz, seconds, peak, before = runs[int(np.argsort([run[1] for run in runs])[len(runs) // 2])]
                found.append((nnz if varied == "entries" else shape.k, seconds))
                figures = [f"{seconds:.3g}", f"{before / 1e6:.0f}", f"{peak / 1e6:.0f}"]
                rows.append([machine, varied, shape.n, nnz, shape.k, *figures, ""])
                print(rows[-1], flush=True)
            sizes, seconds = np.log(np.array(found)).T
            rows[-1][-1] = f"{np.polyfit(sizes, seconds, 1)[0]:.2f}"
    header = ["machine", "varied", "n", "entries", "k", "s an epoch", "MB before", "MB at most", "exponent"]
    write("Growth", header, rows, f"{EPOCHS} epochs with their certificates; medians of {chosen.runs} runs.")


if __name__ == "__main__":
    main()
