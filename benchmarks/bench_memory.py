"""What do training and the model cost, in time and in memory, where dense weights would not fit?

Synthetic text of the shape of LSHTC-2011, or of a part of it; C = 1, one thread, each machine in a process of its own.
"""

import argparse
import time

from benchmarks.processes import apart, peak_bytes
from benchmarks.results import write
from benchmarks.synthetic import LSHTC_2011, Shape, text
from solvers.core.problem import Problem
from solvers.registry import SOLVERS, parse_params

MACHINES = ["weston_watkins", "crammer_singer"]
COMPILE = Shape(12_000, 3000, 8400, 10)
GB = 1e9


def train(machine: str, shape: Shape, epochs: int) -> list[object]:
    """Sizes, processor seconds and peaks of memory of one training."""
    solver = SOLVERS[machine](parse_params(machine, {"tol": 1e-3, "max_epochs": epochs}))
    small = Problem.check(*text(COMPILE))
    *_, last = SOLVERS[machine](parse_params(machine, {"max_epochs": 2})).steps(small)
    solver.model(small, last.state)
    X, y = text(shape)
    problem = Problem.check(X, y)
    data = peak_bytes()
    began = before = time.process_time()
    longest = 0.0
    for last in solver.steps(problem):  # noqa: B007
        now = time.process_time()
        final, longest, before = now - before, max(longest, now - before), now
    seconds, training = before - began, peak_bytes()
    model = solver.model(problem, last.state)
    n_weights = model.report["nonzero_weights"] * problem.n_features * problem.n_classes
    dense = 4.0 * problem.n_features * problem.n_classes
    row = [machine, *X.shape, problem.n_classes, X.nnz, f"{dense / GB:.3g}", last.state["W"].shape[0]]
    row += [f"{seconds / last.epoch:.0f}", f"{final:.0f}", f"{data / GB:.2f}", f"{training / GB:.2f}"]
    return [*row, f"{n_weights / 1e6:.1f}", f"{model.nbytes / GB:.2f}", f"{peak_bytes() / GB:.2f}", f"{last.gap:.4f}"]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--machines", nargs="*", default=MACHINES)
    arguments.add_argument("--part", type=float, default=20.0, help="divide examples, features and classes by this")
    arguments.add_argument("--epochs", type=int, default=1)
    chosen = arguments.parse_args()
    n, d, k, per_row = LSHTC_2011
    shape = Shape(int(n / chosen.part), int(d / chosen.part), int(k / chosen.part), per_row)
    rows = []
    for machine in chosen.machines:
        rows.append(apart(train, machine, shape, chosen.epochs))
        print(rows[-1], flush=True)
    header = ["machine", "n", "d", "k", "entries", "dense W, GB", "dense rows", "s an epoch", "last step, s", "data GB",
              "training, GB", "weights, millions", "model, GB", "with model, GB", "gap"]  # fmt: skip
    note = f"{chosen.epochs} epoch(s); GB are peaks of the whole process so far; the last step holds the certificate."
    write(f"Memory, a part of 1/{chosen.part:g} of LSHTC-2011's shape", header, rows, note)


if __name__ == "__main__":
    main()
