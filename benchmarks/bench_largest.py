"""The largest collection: from a file of rows to answers, phase by phase, in the shape of LSHTC-2011 or a part of it.

Rows are synthetic text with planted classes, one in ten held out. The file is svmlight's, read as the service reads an
upload, and a machine is trained on it to a gap of 5 %; the requests and jobs around that are left out. Times are
without compilation: a small file goes through all phases first.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file

from app.formats.registry import parse
from benchmarks.processes import apart, peak_bytes
from benchmarks.results import write
from benchmarks.synthetic import LSHTC_2011, Shape, text
from solvers.core.problem import Problem
from solvers.registry import SOLVERS, parse_params

HELD_OUT = 0.1
SMALL = Shape(3000, 3000, 50, 20)
GB = 1e9
Row = list[object]


def generate(shape: Shape, path: str) -> Row:
    """Write a file with the training rows, and with those held out at its end."""
    began = time.process_time(), time.perf_counter()
    X, y = text(shape)
    with Path(path).open("wb") as file:
        dump_svmlight_file(X.astype(np.float32), y, file, zero_based=False)
    return _row("generate", began, f"{Path(path).stat().st_size / GB:.3g} GB, {X.nnz:,} entries")


def work(machine: str, path: str, small: str, tol: float) -> list[Row]:
    """Import, train and predict; memory is the peak so far."""
    phases(machine, small, tol)
    return phases(machine, path, tol)


def phases(machine: str, path: str, tol: float) -> list[Row]:
    """The phases of one file."""
    began = time.process_time(), time.perf_counter()
    parsed = parse(Path(path), "svmlight")
    assert parsed.X is not None
    rows = [_row("import", began, f"{parsed.X.shape[0]:,} rows, {len(parsed.labels):,} labels")]

    n = int((1 - HELD_OUT) * parsed.X.shape[0])
    X, test = parsed.X[:n], parsed.X[n:]
    classes, y = np.unique(parsed.y[:n], return_inverse=True)
    began = time.process_time(), time.perf_counter()
    solver = SOLVERS[machine](parse_params(machine, {"tol": tol, "memory_mb": 20_000}))
    problem = Problem.check(X, y.astype(np.int32))
    *_, last = solver.steps(problem)
    rows.append(_row("train", began, f"{machine}: {last.epoch} epochs, gap {last.gap:.3f}"))

    began = time.process_time(), time.perf_counter()
    model = solver.model(problem, last.state)
    rows.append(_row("model", began, f"{model.nbytes / GB:.2f} GB"))

    began = time.process_time(), time.perf_counter()
    right = float((classes[model.predict(test)] == parsed.y[n:]).mean())
    rows.append(_row("predict", began, f"{test.shape[0]:,} rows, P@1 {100 * right:.1f} %"))
    return rows


def _row(phase: str, began: tuple[float, float], what: str) -> Row:
    processor, wall = time.process_time() - began[0], time.perf_counter() - began[1]
    return [phase, f"{wall:.1f}", f"{processor:.1f}", f"{peak_bytes() / GB:.2f}", what]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--scale", type=float, default=0.1, help="share of examples, features and classes")
    arguments.add_argument("--machine", default="one_vs_rest")
    arguments.add_argument("--tol", type=float, default=0.05)
    chosen = arguments.parse_args()
    n, d, k, per_row = LSHTC_2011
    shape = Shape(*(int(chosen.scale * size) for size in (n, d, k)), per_row)
    with tempfile.TemporaryDirectory() as folder:
        path, small = (f"{folder}/{name}.svm" for name in ("rows", "small"))
        apart(generate, SMALL, small)
        rows = [apart(generate, shape, path), *apart(work, chosen.machine, path, small, chosen.tol)]
    note = (
        f"n {shape.n:,}, d {shape.d:,}, k {shape.k:,}, one row in ten held out; one thread; GB are peaks of the "
        "process so far, of which generating has its own. The service's requests and jobs are left out."
    )
    title = f"From a file to answers, {chosen.scale:g} of LSHTC-2011's shape: {chosen.machine}"
    write(title, ["phase", "s", "processor s", "GB at most", "what"], rows, note)


if __name__ == "__main__":
    main()
