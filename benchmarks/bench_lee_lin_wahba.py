"""Lee-Lin-Wahba: our block ascent beside the alternation of Alber et al. 2017, and what a large C costs.

One thread, processor seconds. The reference is their Algorithms 1 and 2 exactly as published, in float64: every
class goes over its examples one variable at a time while the mean of the classes is held, which is renewed after each
tenth of an epoch. It moves no variable whose gradient is within EPS, and, where it shrinks, leaves out those that three
epochs in a row have not moved until all others are within EPS, as their section on convergence has it.
"""

import argparse
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks import pictures, sets
from benchmarks.objectives import primal
from benchmarks.results import write
from solvers.core.base import Solver, Step, relative_gap
from solvers.core.problem import Problem
from solvers.registry import SOLVERS, parse_params

GAPS = (1e-1, 1e-2)
SETS = ["vowel", "20news", "debian-section"]
EPS, SHRINK_AFTER, PARTS = 1e-3, 3, 10
MOST_EPOCHS, MOST_SECONDS, LOOK = 1500, 30.0, 1.05
LARGE = {"vowel": [1.0, 1e2, 1e4, 1e6, 1e8], "satimage": [1.0, 1e2, 1e4, 1e6, 1e8], "letter": [1e4]}
TEXT_C, TEXT_GAP, TEXT_EPOCHS, TEXT_SECONDS = 1e4, 1e-2, 5_000, 60.0


class Point(NamedTuple):
    epoch: int
    seconds: float
    gap: float


def reference(task: Problem, *, shrink: bool) -> Iterator[Point]:
    """Points of the alternation, later ones a twentieth of the epochs apart; certificates cost it nothing."""
    X, y, n, k = task.X, task.y, task.n_samples, task.n_classes
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    W, alpha, still = np.zeros((k, task.n_features)), np.zeros((n, k)), np.zeros((n, k), np.uint8)
    rows, rng, seconds = (X.indptr, X.indices, X.data, squares), np.random.default_rng(0), 0.0
    alpha[squares == 0] = 1.0
    alpha[np.arange(n), y] = 0.0
    filled, looked = np.flatnonzero(squares), 0
    for epoch in range(1, MOST_EPOCHS + 1):
        began = time.process_time()
        worst = 0.0
        for part in np.array_split(rng.permutation(filled), PARTS):
            worst = max(worst, _alternate(*rows, y, part, 1.0, EPS, shrink, W, alpha, still))
        if worst <= EPS:
            still[:] = 0
        seconds += time.process_time() - began
        if 20 < epoch < LOOK * looked and seconds <= MOST_SECONDS:
            continue
        looked = epoch
        value = primal("lee_lin_wahba", W.T, X, y)
        yield Point(epoch, seconds, relative_gap(value, float(alpha.sum() - 0.5 * (W**2).sum())))
        if seconds > MOST_SECONDS:
            return


def ours(task: Problem) -> Iterator[Point]:
    """The same of block ascent, whose own certificates are in its time; the gap is measured as the reference's is."""
    params = {"algorithm": "ascent", "tol": 0.5 * GAPS[-1], "max_epochs": MOST_EPOCHS}
    solver = SOLVERS["lee_lin_wahba"](parse_params("lee_lin_wahba", params))
    filled = np.diff(task.X.indptr) > 0
    constant = float((~filled).sum() * (task.n_classes - 1))
    seconds, steps = 0.0, solver.steps(task)
    while True:
        began = time.process_time()
        step = next(steps, None)
        seconds += time.process_time() - began
        if step is None or seconds > MOST_SECONDS:
            return
        # W itself, as the reference's: the model's is a multiple
        W = _weights(solver, task, step).astype(np.float64)
        dual = constant + step.state["dual_values"][filled].sum(dtype=np.float64) - 0.5 * (W**2).sum()
        yield Point(step.epoch, seconds, relative_gap(primal("lee_lin_wahba", W, task.X, task.y), float(dual)))


@njit(cache=True, nogil=True)
def _alternate(indptr, indices, data, squares, y, part, C, eps, shrink, W, alpha, still):  # type: ignore[no-untyped-def]
    """One part of an epoch for all classes, W = mean - u in place, then the new mean; returns the worst gradient."""
    worst = 0.0
    for c in range(len(W)):
        w = W[c]
        for i in part:
            if y[i] == c or (shrink and still[i, c] >= SHRINK_AFTER):
                continue
            score = 0.0
            for at in range(indptr[i], indptr[i + 1]):
                score += w[indices[at]] * data[at]
            g, old = -1.0 - score, alpha[i, c]
            if (g < -eps and old < C) or (g > eps and old > 0.0):
                worst = max(worst, abs(g))
                new = min(max(old - g / squares[i], 0.0), C)
                for at in range(indptr[i], indptr[i + 1]):
                    w[indices[at]] -= (new - old) * data[at]
                alpha[i, c] = new
                still[i, c] = 0
            else:
                still[i, c] = min(still[i, c] + 1, 254)
    for j in range(W.shape[1]):
        mean = 0.0
        for c in range(len(W)):
            mean += W[c, j]
        mean /= len(W)
        for c in range(len(W)):
            W[c, j] -= mean
    return worst


def until(points: Iterator[Point], gap: float) -> list[Point]:
    """The points up to the first within the gap."""
    found = []
    for point in points:
        found.append(point)
        if point.gap <= gap:
            break
    return found


def alternation(names: list[str]) -> None:
    """The table and the picture of both."""
    rows: list[list[object]] = []
    lines: list[pictures.Curve] = []
    for name in names:
        task = Problem.check(*sets.load(name))
        # up to a certificate, so that all is compiled
        until(ours(task), GAPS[0])
        next(reference(task, shrink=True))
        curves = {"block ascent": until(ours(task), GAPS[-1])} | {
            way: until(reference(task, shrink=shrink), GAPS[-1])
            for way, shrink in (("alternation, shrinking", True), ("alternation", False))
        }
        for way, points in curves.items():
            lines.append(pictures.Curve(name, "relative duality gap", way, [(p.epoch, p.gap) for p in points]))
            rows.append([name, way, *(cell for gap in GAPS for cell in _reached(points, gap)), *_end(points)])
            print(rows[-1], flush=True)
    header = ["set", "way", *(f"{what} to {gap:g}" for gap in GAPS for what in ("epochs", "s")), "ends at", "gap there"]
    note = (
        f"C = 1. Both are stopped after {MOST_EPOCHS} epochs or {MOST_SECONDS:g} s; a dash: not reached by then. The "
        f"reference's time has no certificates in it; it moves variables whose gradient is beyond {EPS:g}."
    )
    write("Lee-Lin-Wahba: block ascent and the alternation of Alber et al.", header, rows, note)
    pictures.write("lee_lin_wahba", lines)


def _reached(points: list[Point], gap: float) -> tuple[str, str]:
    first = next((point for point in points if point.gap <= gap), None)
    return ("-", "-") if first is None else (str(first.epoch), f"{first.seconds:.3g}")


def _end(points: list[Point]) -> tuple[str, str]:
    return f"{points[-1].epoch} epochs, {points[-1].seconds:.3g} s", f"{points[-1].gap:.2g}"


def large(names: list[str]) -> None:
    """Interior point at every C."""
    rows: list[list[object]] = []
    for name in names:
        task = Problem.check(*sets.load(name))
        for C in LARGE[name]:
            params = {"C": C, "tol": 1e-6, "algorithm": "interior"}
            began = time.process_time()
            *_, step = SOLVERS["lee_lin_wahba"](parse_params("lee_lin_wahba", params)).steps(task)
            seconds = time.process_time() - began
            rows.append([name, f"{C:g}", step.epoch, f"{seconds:.3g}", f"{step.gap:.1e}", f"{step.primal:.8g}"])
            print(rows[-1], flush=True)
    header = ["set", "C", "iterations", "s", "gap", "objective"]
    write("Lee-Lin-Wahba at large C by interior point, to a gap of 1e-6", header, rows)


def text() -> None:
    """Block ascent at large C on text, by its certificate, of the best multiple of W, and by that of W itself."""
    task = Problem.check(*sets.load("20news"))
    rows: list[list[object]] = []
    for dtype in ("float32", "float64"):
        params = {"C": TEXT_C, "tol": TEXT_GAP, "algorithm": "ascent", "max_epochs": TEXT_EPOCHS, "dtype": dtype}
        solver = SOLVERS["lee_lin_wahba"](parse_params("lee_lin_wahba", params))
        points: dict[str, list[Point]] = {"W": [], "best multiple of W": []}
        seconds, steps = 0.0, solver.steps(task)
        while seconds < TEXT_SECONDS:
            began = time.process_time()
            step = next(steps, None)
            seconds += time.process_time() - began
            if step is None:
                break
            if not np.isnan(step.gap):
                points["best multiple of W"].append(Point(step.epoch, seconds, step.gap))
                value = primal("lee_lin_wahba", _weights(solver, task, step), task.X, task.y, C=TEXT_C)
                points["W"].append(Point(step.epoch, seconds, relative_gap(value, step.dual)))
        for what, curve in points.items():
            first = _reached(curve, TEXT_GAP)
            rows.append([dtype, what, *first, *_end(curve)])
            print(rows[-1], flush=True)
    note = (
        f"20news, C = {TEXT_C:g}; at most {TEXT_EPOCHS:,} epochs or {TEXT_SECONDS:g} s. Seconds are of training with "
        "its own certificates; a dash: not reached."
    )
    gap = f"{TEXT_GAP:g}"
    header = ["precision", "primal point", f"epochs to {gap}", f"s to {gap}", "end", "gap"]
    write("Lee-Lin-Wahba at large C on text, by block ascent", header, rows, note)


def _weights(solver: Solver[Any], task: Problem, step: Step) -> NDArray[np.floating]:
    """W (n_features, n_classes) of block ascent, not the multiple of it that is certified."""
    model = solver.model(task, dict(step.state) | {"scale": np.ones(1)})
    return np.asarray(model.coef.T)  # type: ignore[attr-defined]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--parts", nargs="*", default=["alternation", "large", "text"])
    arguments.add_argument("--sets", nargs="*", default=None)
    chosen = arguments.parse_args()
    known = chosen.sets or sets.available()
    if "alternation" in chosen.parts:
        alternation([name for name in SETS if name in known] or ["digits"])
    if "large" in chosen.parts:
        large([name for name in LARGE if name in known])
    if "text" in chosen.parts and "20news" in known:
        text()


if __name__ == "__main__":
    main()
