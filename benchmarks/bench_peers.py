"""How long do we take to LIBLINEAR's own objective at its own stop, as a share of its time?

One thread each, C = 1, no bias, processor seconds; the order of the two alternates. Our time runs until the first
step whose objective is no worse than LIBLINEAR's, everything included but compiling and the reading of that objective.
"""

import argparse
import statistics
import time

import numpy as np
from liblinear.liblinearutil import parameter, problem, train

from benchmarks import sets
from benchmarks.objectives import primal
from benchmarks.results import write
from solvers.problem import Problem
from solvers.registry import SOLVERS, parse_params

PEERS = {"crammer_singer": 4, "one_vs_rest": 3, "one_vs_rest squared": 1}


def liblinear(X, y, number: int, eps: float | None):
    task = problem(y.astype(float), X)
    options = parameter(f"-s {number} -c 1 -B -1 -q" + (f" -e {eps}" if eps else ""))
    began = time.process_time()
    model = train(task, options)
    seconds = time.process_time() - began
    k = model.get_nr_class()
    W = np.ctypeslib.as_array(model.w, shape=(model.get_nr_feature(), k)) if k > 2 or number == 4 else None
    assert W is not None
    return seconds, W[:, np.argsort(model.get_labels())]


def ours(machine: str, task: Problem, target: float) -> tuple[float, int, float]:
    name, _, squared = machine.partition(" ")
    params = {"tol": 1e-9, "dtype": "float32", "max_epochs": 20_000} | ({"loss": "squared_hinge"} if squared else {})
    solver = SOLVERS[name](parse_params(name, params))
    seconds, steps = 0.0, solver.steps(task)
    while True:
        began = time.process_time()
        step = next(steps, None)
        seconds += time.process_time() - began
        if step is None:
            return np.nan, 20_000, np.nan
        model = solver.model(task, step.state)
        W = np.zeros((task.n_features, task.n_classes), model.W.dtype)
        W[model.features] = model.W
        value = primal(machine.replace(" ", "_"), W, task.X, task.y)
        if value <= target:
            return seconds, step.epoch, value


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sets", nargs="*", default=sets.available())
    arguments.add_argument("--machines", nargs="*", default=list(PEERS))
    arguments.add_argument("--eps", type=float, default=None, help="LIBLINEAR's tolerance; its default when left out")
    arguments.add_argument("--runs", type=int, default=3)
    chosen = arguments.parse_args()
    rows = []
    for name in chosen.sets:
        X, y = sets.load(name)
        task = Problem.check(X, y)
        for machine in chosen.machines:
            ours(machine, task, np.inf)
            ratios, ours_seconds, peer_seconds = [], [], []
            for _ in range(chosen.runs):
                peer, W = liblinear(X, y, PEERS[machine], chosen.eps)
                target = primal(machine.replace(" ", "_"), W, X, y)
                mine, epochs, value = ours(machine, task, target)
                ratios.append(mine / peer)
                ours_seconds.append(mine)
                peer_seconds.append(peer)
            times = [f"{statistics.median(values):.3g}" for values in (peer_seconds, ours_seconds, ratios)]
            rows.append([name, machine, *X.shape, task.n_classes, *times, f"{target:.6g}", f"{value:.6g}", epochs])
            print(rows[-1], flush=True)
    header = ["set", "machine", "n", "d", "k", "LIBLINEAR s", "ours s", "ratio", "its objective", "ours", "epochs"]
    title = "Time to LIBLINEAR's objective" + (f" at eps {chosen.eps}" if chosen.eps else " at its default stop")
    write(title, header, rows, f"Medians of {chosen.runs} runs; ratio is the median of the runs' ratios.")


if __name__ == "__main__":
    main()
