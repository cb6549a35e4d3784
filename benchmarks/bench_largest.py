"""The largest collection: from a file of rows to answers, in the shape of LSHTC-2011 or a part of it.

Rows are synthetic text with planted classes, the last tenth held out. The file is svmlight's, and a machine is trained
on it to a gap of 5 %. ``process`` does so phase by phase in one process, without the service; ``service`` uploads the
file to a service of its own, whose worker trains, and asks it for answers; ``shards`` is the same in two class shards.
``peers`` has Omikuji and PECOS train on the same rows, by a Python that has them. Times are without compilation: small
files go through all phases first.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file

from app.formats.parsing import parse
from benchmarks import largest_peers, largest_service
from benchmarks.largest_peers import HELD_OUT, ROWS, SHAPE
from benchmarks.processes import apart, peak_bytes
from benchmarks.results import write
from benchmarks.synthetic import LSHTC_2011, Shape, text
from solvers.core.problem import Problem
from solvers.registry import SOLVERS, parse_params

SHARE_HELD_OUT = 0.1
SMALL, SHARDS = Shape(3000, 3000, 50, 20), 2
# weights in lists are compiled for themselves
MANY_CLASSES, MANY_IN_SHARDS = Shape(12_000, 3000, 8400, 10), Shape(20_000, 3000, 16_800, 10)
GB = 1e9
Row = list[object]


def generate(shape: Shape, folder: str) -> Row:
    """Write a file with the training rows and one with those held out, and how many there are of what."""
    began = time.process_time(), time.perf_counter()
    X, y = text(shape)
    n = int((1 - SHARE_HELD_OUT) * shape.n)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, rows in ((ROWS, slice(n)), (HELD_OUT, slice(n, None))):
        with Path(folder, name).open("wb") as file:
            dump_svmlight_file(X[rows].astype(np.float32), y[rows], file, zero_based=False)
    Path(folder, SHAPE).write_text(json.dumps([n, shape.d, shape.k]))
    return _row("generate", began, f"{Path(folder, ROWS).stat().st_size / GB:.3g} GB, {X.nnz:,} entries")


def work(machine: str, folder: str, small: list[str], tol: float) -> list[Row]:
    """Import, train and predict; memory is the peak so far."""
    for one in small:
        phases(machine, one, tol)
    return phases(machine, folder, tol)


def phases(machine: str, folder: str, tol: float) -> list[Row]:
    """The phases of the files of one folder."""
    began = time.process_time(), time.perf_counter()
    parsed, held_out = (parse(Path(folder, name), "svmlight") for name in (ROWS, HELD_OUT))
    assert parsed.X is not None
    assert held_out.X is not None
    rows = [_row("import", began, f"{parsed.X.shape[0]:,} rows, {len(parsed.labels):,} labels")]

    X, test = parsed.X, held_out.X
    test.resize(test.shape[0], X.shape[1])
    began = time.process_time(), time.perf_counter()
    solver = SOLVERS[machine](parse_params(machine, {"tol": tol, "memory_mb": 20_000}))
    problem = Problem.check(X, np.asarray(parsed.y, np.int32))
    *_, last = solver.steps(problem)
    rows.append(_row("train", began, f"{machine}: {last.epoch} epochs, gap {last.gap:.3f}"))

    began = time.process_time(), time.perf_counter()
    model = solver.model(problem, last.state)
    rows.append(_row("model", began, f"{model.nbytes / GB:.2f} GB"))

    began = time.process_time(), time.perf_counter()
    named, true = np.array(parsed.labels)[model.predict(test)], np.array(held_out.labels)[held_out.y]
    rows.append(_row("predict", began, f"{test.shape[0]:,} rows, P@1 {100 * float((named == true).mean()):.1f} %"))
    return rows


def _row(phase: str, began: tuple[float, float], what: str) -> Row:
    processor, wall = time.process_time() - began[0], time.perf_counter() - began[1]
    return [phase, f"{wall:.1f}", f"{processor:.1f}", f"{peak_bytes() / GB:.2f}", what]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--scale", type=float, default=0.1, help="share of examples, features and classes")
    arguments.add_argument("--machine", default="one_vs_rest")
    arguments.add_argument("--tol", type=float, default=0.05)
    arguments.add_argument(
        "--memory-mb", type=int, help="what the job of a service, or each shard, may use for weights"
    )
    parts = ["process", "service", "shards", "peers"]
    arguments.add_argument("--parts", nargs="*", default=parts[:3], choices=parts)
    arguments.add_argument("--peer", help="a Python that has omikuji and libpecos")
    programs = list(largest_peers.TITLES)
    arguments.add_argument("--programs", nargs="*", default=programs, choices=programs)
    arguments.add_argument("--folder", help="where the files of this scale are kept, or are from an earlier run")
    chosen = arguments.parse_args()
    n, d, k, per_row = LSHTC_2011
    shape = Shape(*(int(chosen.scale * size) for size in (n, d, k)), per_row)
    with tempfile.TemporaryDirectory() as temporary:
        folder, small = chosen.folder or f"{temporary}/rows", []
        others = [MANY_IN_SHARDS] if "shards" in chosen.parts else [MANY_CLASSES]
        for number, its in enumerate([SMALL, *others]):
            if its is SMALL or shape.k >= its.k or chosen.memory_mb is not None:
                small.append(f"{temporary}/small-{number}")
                apart(generate, its, small[-1])
        there = Path(folder, SHAPE).exists()
        _report(chosen, shape, [] if there else [apart(generate, shape, folder)], Path(folder), small)


def _report(chosen: argparse.Namespace, shape: Shape, generated: list[Row], folder: Path, small: list[str]) -> None:
    part = f"{chosen.scale:g} of LSHTC-2011's shape"
    about = f"n {shape.n:,}, d {shape.d:,}, k {shape.k:,}, the last tenth of the rows held out; one thread"
    if "process" in chosen.parts:
        rows = [*generated, *apart(work, chosen.machine, str(folder), small, chosen.tol)]
        note = f"{about}; GB are peaks of the process so far, of which generating has its own. Without the service."
        write(f"From a file to answers, {part}: {chosen.machine}", largest_service.HEADER, rows, note)
    for name, shards in (("service", 0), ("shards", SHARDS)):
        if name not in chosen.parts:
            continue
        params = {"tol": chosen.tol} | ({} if chosen.memory_mb is None else {"memory_mb": chosen.memory_mb})
        rows = largest_service.measured(folder, list(map(Path, small)), chosen.machine, params, shards)
        note = (
            f"{about} a job. Processor seconds are of all processes of the service, GB their own pages together at "
            "most in that phase, without those of mapped files."
        )
        where = "in one worker" if not shards else f"in {shards} shards"
        if chosen.memory_mb is not None:
            where += f", memory_mb {chosen.memory_mb:,}"
        title = f"From an upload to answers, {part}: {chosen.machine} {where}"
        write(title, largest_service.HEADER, rows, note)
    if "peers" in chosen.parts:
        rows = [largest_peers.measured(name, chosen.peer, folder) for name in chosen.programs]
        note = f"{about}. Omikuji's training reads its file, PECOS's does not; GB are peaks of training."
        write(f"Programs for many labels, {part}", largest_peers.HEADER, rows, note)


if __name__ == "__main__":
    main()
