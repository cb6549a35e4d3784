"""How long do other exact solvers of Weston-Watkins take to the objectives that we certify?

Walrus is the block solver of Wang and Scott ("An exact solver for the Weston-Watkins SVM subproblem", ICML 2021), a
fork of LIBLINEAR; ``--walrus`` names its ``train``, built with TRACE_OPTIM_TRAJ and a STOPPING_CRITERION of 0 and
without MEASURE_HEAP_SATURATION, so that it reports seconds and objective after each pass and does not stop by itself.
The other are the steps of Alber et al. 2017 on one variable at a time, exactly as published for one shard of one
thread, on the same feature-major weights.

One thread each, no bias, processor seconds, in turns. Ours are those of a whole training to a certified gap. A peer's
last until the end of its first pass that is no worse than our objective, without reading the file and without the
reading of its objectives. Empty rows, which Walrus cannot take, are left out for all.
"""

import argparse
import itertools
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from sklearn.datasets import dump_svmlight_file
from sklearn.preprocessing import normalize

from benchmarks import sets
from benchmarks.objectives import primal
from benchmarks.results import write
from solvers.core.problem import Problem
from solvers.registry import SOLVERS, parse_params

SETS, UNIT = ("debian-section", "naics", "letter", "letter-unit"), "-unit"
GAPS = (1e-2, 1e-3)
MOST_PASSES, TIMES, ENOUGH, LOOK = 10**6, 10.0, 5.0, 1.1
# of Alber et al.: a gradient within which a variable stays; of Walrus, the part of its first gap at which it stops
EPS, STOP = 1e-3, 9e-4


class Pass(NamedTuple):
    """What a peer has after a pass; its gap is absolute, and nan where it reports none."""

    number: int
    seconds: float
    objective: float
    gap: float


class Ours(NamedTuple):
    seconds: float
    epochs: int
    objective: float


def problem_of(name: str) -> Problem:
    X, y = sets.load(name.removesuffix(UNIT))
    filled = np.diff(X.indptr) > 0
    return Problem.check(normalize(X[filled]) if name.endswith(UNIT) else X[filled], y[filled])


def ours(task: Problem, C: float, tol: float) -> Ours:
    solver = SOLVERS["weston_watkins"](parse_params("weston_watkins", {"C": C, "tol": tol}))
    began = time.process_time()
    *_, last = solver.steps(task)
    return Ours(time.process_time() - began, last.epoch, last.primal)


def walrus(program: Path, file: Path, C: float) -> Iterator[Pass]:
    """The passes of its ``train`` on a svmlight file."""
    command = [program, "-s", "30", "-c", repr(C), "-t", str(MOST_PASSES), file]
    # a line at a time, though it writes to a pipe
    with subprocess.Popen(["stdbuf", "-oL", *map(str, command)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for number, line in enumerate(process.stdout, 1):
                milliseconds, alpha, norm, loss, _ = map(float, line.split(","))
                yield Pass(number, milliseconds / 1e3, norm + loss, 2 * norm + loss - alpha)
        finally:
            process.kill()


def coordinates(task: Problem, C: float) -> Iterator[Pass]:
    """The passes of steps on one variable at a time; read where a tenth more time has passed than at the last."""
    X, y, n, k = task.X, task.y, task.n_samples, task.n_classes
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    W, alpha, seconds, read = np.zeros((task.n_features, k)), np.zeros((n, k)), 0.0, 0.0
    rng = np.random.default_rng(0)
    for number in itertools.count(1):
        began = time.process_time()
        _coordinates(X.indptr, X.indices, X.data, squares, y, rng.permutation(n), C, W, alpha)
        seconds += time.process_time() - began
        if seconds >= LOOK * read:
            read = seconds
            yield Pass(number, seconds, primal("weston_watkins", W, X, y, C), np.nan)


@njit(cache=True, nogil=True)
def _coordinates(indptr, indices, data, squares, y, order, C, W, alpha):  # type: ignore[no-untyped-def]
    """One pass in ``order``; W and alpha are changed in place."""
    k = W.shape[1]
    scores, moved, steps = np.empty(k), np.empty(k, np.int64), np.empty(k)
    for i in order:
        scores[:] = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            row = W[indices[at]]
            for c in range(k):
                scores[c] += data[at] * row[c]
        own, total, n_moved = y[i], 0.0, 0
        for c in range(k):
            gradient, a = 1.0 - scores[own] - total * squares[i] + scores[c], alpha[i, c]
            if c == own or not ((gradient > EPS and a < C) or (gradient < -EPS and a > 0.0)):
                continue
            alpha[i, c] = min(max(a + 0.5 * gradient / squares[i], 0.0), C)
            moved[n_moved], steps[n_moved] = c, alpha[i, c] - a
            total += steps[n_moved]
            n_moved += 1
        if n_moved == 0:
            continue
        for at in range(indptr[i], indptr[i + 1]):
            row = W[indices[at]]
            row[own] += data[at] * total
            for m in range(n_moved):
                row[moved[m]] -= data[at] * steps[m]


def until(passes: Iterator[Pass], target: float, most: float, *, to_its_stop: bool) -> list[Pass]:
    """The passes up to the one at the target, and at the peer's own stop; as far as ``most`` seconds reach."""
    found: list[Pass] = []
    for one in passes:
        found.append(one)
        stopped = not to_its_stop or one.gap <= STOP * found[0].gap
        if (one.objective <= target and stopped) or one.seconds > most:
            break
    passes.close()  # type: ignore[attr-defined]
    return found


def first(passes: list[Pass], target: float) -> Pass | None:
    """The first that is no worse."""
    return next((one for one in passes if one.objective <= target), None)


def at_its_stop(passes: list[Pass]) -> Pass | None:
    """The first at which Walrus would stop by itself."""
    return next((one for one in passes if one.gap <= STOP * passes[0].gap), None)


def measure(name: str, C: float, program: Path | None, runs: int) -> Iterator[list[Any]]:
    """The rows of one set and C."""
    task = problem_of(name)
    targets = {tol: ours(task, C, tol).objective for tol in GAPS}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rows.svm")
        dump_svmlight_file(task.X, task.y + 1, str(file), zero_based=False)
        peers: dict[str, Callable[[], Iterator[Pass]]] = {"coordinate steps": lambda: coordinates(task, C)}
        if program is not None:
            peers["Walrus"] = lambda: walrus(program, file, C)
        mine: dict[float, list[Ours]] = {tol: [] for tol in GAPS}
        theirs: dict[str, list[list[Pass]]] = {peer: [] for peer in peers}
        for _ in range(runs):
            for tol in GAPS:
                mine[tol].append(ours(task, C, tol))
            most = TIMES * mine[GAPS[-1]][-1].seconds
            for peer, run in peers.items():
                if not theirs[peer] or theirs[peer][0][-1].seconds < ENOUGH:
                    theirs[peer].append(until(run(), min(targets.values()), most, to_its_stop=peer == "Walrus"))
    for tol in GAPS:
        seconds = [run.seconds for run in mine[tol]]
        row = [name, f"{C:g}", f"our gap {tol:g}", f"{targets[tol]:.7g}", mine[tol][0].epochs, _median(seconds)]
        yield [
            *row,
            *(cell for peer in ("Walrus", "coordinate steps") for cell in _beside(peer, theirs, seconds, targets[tol])),
        ]
    if program is not None:
        yield from _its_stop(name, C, task, theirs["Walrus"])


def _median(values: list[float]) -> str:
    return f"{statistics.median(values):.3g}"


def _beside(peer: str, theirs: dict[str, list[list[Pass]]], seconds: list[float], target: float) -> list[Any]:
    """A peer's passes and seconds to the target, and ours as a share of them."""
    runs = theirs.get(peer)
    if runs is None:
        return ["-"] * 3
    found = [one for passes in runs if (one := first(passes, target)) is not None]
    if len(found) < len(runs):
        last = runs[0][-1]
        return [f"> {last.number}", f"> {last.seconds:.3g}", f"< {statistics.median(seconds) / last.seconds:.3f}"]
    return [found[0].number, *_times(found, seconds)]


def _its_stop(name: str, C: float, task: Problem, runs: list[list[Pass]]) -> Iterator[list[Any]]:
    """Walrus's own stop, and ours to the relative gap that it has there."""
    found = [one for passes in runs if (one := at_its_stop(passes)) is not None]
    if len(found) < len(runs):
        return
    gap = found[0].gap / found[0].objective
    mine = [ours(task, C, gap) for _ in runs]
    seconds = [run.seconds for run in mine]
    row = [name, f"{C:g}", f"its stop, gap {gap:.2g}", f"{found[0].objective:.7g}", mine[0].epochs, _median(seconds)]
    yield [*row, found[0].number, *_times(found, seconds), *["-"] * 3]


def _times(found: list[Pass], seconds: list[float]) -> list[str]:
    """Their seconds, and ours as a share of them run by run."""
    ratios = [mine / one.seconds for mine, one in zip(seconds, found, strict=False)]
    return [_median([one.seconds for one in found]), f"{statistics.median(ratios):.3f}"]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--walrus", type=Path, help="its train; left out where none is given")
    arguments.add_argument("--sets", nargs="*", default=SETS)
    arguments.add_argument("--C", nargs="*", type=float, default=(0.1, 1.0, 10.0))
    arguments.add_argument("--runs", type=int, default=3)
    chosen = arguments.parse_args()
    rows: list[list[Any]] = []
    for name in chosen.sets:
        for C in chosen.C:
            for row in measure(name, C, chosen.walrus, chosen.runs):
                rows.append(row)
                print(row, flush=True)
    header = ["set", "C", "to", "objective", "our epochs", "ours s", "Walrus passes", "Walrus s", "ratio"]
    header += ["coordinate passes", "coordinate s", "ratio to it"]
    note = (
        f"Medians of {chosen.runs} runs, of one where a peer took more than {ENOUGH:g} s; the ratio is ours by the "
        f"peer's. A peer is ended after {TIMES:g} times our time to {GAPS[-1]:g}. Ours is in float32 and certified, "
        f"the peers are in float64. Walrus stops at {STOP:g} of the gap after its first pass; there ours lasts until "
        f"the relative gap is certified that it has then. Rows of {UNIT[1:]} sets have length 1, those of letter 12.5. "
        "Coordinate steps: of Alber et al., reimplemented, as their program needs Python 2."
    )
    write("Weston-Watkins beside Walrus and coordinate steps", header, rows, note)


if __name__ == "__main__":
    main()
