"""Who answers best? Polymargin's ``auto`` and single machines beside other programs, all tuned on the same rows.

A fifth of the training rows is held out class by class; every program's settings are compared on it by accuracy, and
the best is trained on all training rows and measured on the test rows. ``auto`` is given the training rows alone, holds
out by itself, and its search counts as training. Each program runs in a process of its own, in one thread, and has its
processor time counted.
"""

import argparse
import csv
import importlib.util
import math
import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks import sets
from benchmarks.processes import within
from benchmarks.quality_grid import PROGRAMS
from benchmarks.quality_programs import Fitted, Program, Scores, Setting
from benchmarks.results import FOLDER, write
from benchmarks.sets import Rows
from solvers.metrics.calibration import expected_calibration_error, log_losses
from solvers.metrics.flat import flat
from solvers.metrics.ranking import places
from solvers.selection.splits import stratified

SETS = ["naics", "20news", "debian-section", "satimage", "docstrings", "debian-maintainer", "letter", "imclef07a"]
HELD_OUT, SEED, CAP = 0.2, 0, 300.0
# what another setting, and the training on all rows, may take beside the longest so far
RESERVE = 2.5
WARM_ROWS, WARM_SHARE = 300, 0.1
CSV = FOLDER / "data" / "quality.csv"
MODULES = {"Omikuji": "omikuji", "fastText": "fasttext", "LightGBM": "lightgbm", "HiClass": "hiclass"}
MEASURES = ["p1", "top5", "macro_f1", "log_loss", "ece"]
COSTS = ["seconds", "fit_seconds", "predict_us", "model_mb"]
COLUMNS = ["set", "program", "chosen", "tried", *MEASURES, *COSTS, "remark"]
Row = dict[str, str]


class Tuned(NamedTuple):
    """The setting that was best on the rows held out, of the first of the grid; seconds of all trials."""

    setting: Setting
    tried: int
    seconds: float


def tune(program: Program, train: Rows, n_classes: int, cap: float) -> Tuned:
    """Choose a setting; none is tried any more where the cap comes near."""
    if len(program.grid) == 1:
        return Tuned(program.grid[0], 1, 0.0)
    out = stratified(train.y, HELD_OUT, SEED)
    known, held = train.chosen(~out), train.chosen(out)
    best, most, longest, spent, tried = program.grid[0], -1.0, 0.0, 0.0, 0
    for setting in program.grid:
        if spent + RESERVE * longest > cap:
            break
        fitted = program.fit(setting, known, n_classes)
        began = time.process_time()
        accuracy = float((fitted.scores(held).argmax(axis=1) == held.y).mean())
        took = fitted.seconds + time.process_time() - began
        spent, longest, tried = spent + took, max(longest, took), tried + 1
        if accuracy > most:
            best, most = setting, accuracy
    return Tuned(best, tried, spent)


def measure(program: Program, train: Rows, test: Rows, n_classes: int, cap: float) -> Row:
    """Tune, train on all training rows, and measure on the test rows."""
    threadpool_limits(1)
    tuned = tune(program, train, n_classes, cap)
    fitted = program.fit(tuned.setting, train, n_classes)
    fitted.scores(test.chosen(np.arange(len(test.y)) < 64))
    began = time.process_time()
    scores = fitted.scores(test)
    took = time.process_time() - began
    return {
        "program": program.name,
        "chosen": fitted.said or described(program, tuned.setting),
        "tried": f"{tuned.tried} of {len(program.grid)}" if len(program.grid) > 1 else "",
        **measures(fitted, scores, test.y, n_classes),
        "seconds": f"{tuned.seconds + fitted.seconds:.3g}",
        "fit_seconds": f"{fitted.seconds:.3g}",
        "predict_us": f"{1e6 * took / len(test.y):.3g}",
        "model_mb": f"{fitted.n_bytes() / 1e6:.3g}",
    }


def described(program: Program, setting: Setting) -> str:
    """What of a setting is not the same in the whole grid."""
    varied = {name: value for name, value in setting.items() if any(value != each[name] for each in program.grid)}
    return ", ".join(f"{name} {value if isinstance(value, str) else f'{value:g}'}" for name, value in varied.items())


def measures(fitted: Fitted, scores: Scores, y: NDArray[np.int32], n_classes: int) -> Row:
    """Accuracy, top-5 accuracy, macro F1, and of probabilities log loss and expected calibration error."""
    # a class of probability 0 is not listed
    shown = np.where(scores > 0, scores, -np.inf) if fitted.probabilities and not fitted.logarithms else scores
    listed = places(shown, np.arange(len(y) + 1), y)
    predicted = scores.argmax(axis=1)
    reported = flat(y, predicted, n_classes)
    found = {
        "p1": f"{100 * reported['micro_f1']:.2f}",
        "top5": f"{100 * ((listed > 0) & (listed <= 5)).mean():.2f}",
        "macro_f1": f"{100 * reported['macro_f1']:.2f}",
    }
    if fitted.probabilities:
        p = np.exp(scores.astype(np.float64)) if fitted.logarithms else np.asarray(scores, np.float64)
        p, at = np.clip(p, 0.0, 1.0), np.arange(len(y))
        found["log_loss"] = f"{log_losses(p[at, y]).mean():.3f}"
        found["ece"] = f"{expected_calibration_error(p[at, predicted], predicted == y)[0]:.3f}"
    return found


def warm(program: Program, train: Rows, n_classes: int) -> bool:
    """Compile what the program needs, on few rows."""
    few = max(WARM_ROWS, int(WARM_SHARE * len(train.y)))
    chosen = np.zeros(len(train.y), bool)
    chosen[np.random.default_rng(SEED).permutation(len(train.y))[:few]] = True
    rows = train.chosen(chosen)
    setting = program.grid[0] | ({"folds": 1} if program.name.startswith("auto") else {"max_epochs": 5})
    program.fit(setting, rows, n_classes).scores(rows)
    return True


def row_of(program: Program, train: Rows, test: Rows, n_classes: int, cap: float) -> Row:
    """The program's row, or why it has none."""
    module = MODULES.get(program.name.split(",")[0])
    refused = program.refused(train, n_classes)
    if not refused and module is not None and importlib.util.find_spec(module) is None:
        refused = "not installed"
    if refused:
        return {"program": program.name, "remark": f"left out: {refused}"}
    if program.ours:
        within(math.inf, warm, program, train, n_classes)
    try:
        found = within(cap, measure, program, train, test, n_classes, cap)
    except EOFError:
        return {"program": program.name, "remark": "failed"}
    return found or {"program": program.name, "remark": f"more than {cap:g} s"}


def merged(name: str, rows: list[Row]) -> list[Row]:
    """The rows of a set in the file, these in place of older ones, in the programs' order."""
    old: list[Row] = []
    if CSV.exists():
        with CSV.open(newline="") as file:
            old = list(csv.DictReader(file))
    new = {(name, row["program"]): row | {"set": name} for row in rows}
    by_key = {(row["set"], row["program"]): row for row in old} | new
    order = {program.name: place for place, program in enumerate(PROGRAMS)}
    names = [*SETS, *sorted({each for each, _ in by_key} - set(SETS))]
    everything = sorted(by_key.values(), key=lambda row: (names.index(row["set"]), order.get(row["program"], 99)))
    with CSV.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(everything)
    return [row for row in everything if row["set"] == name]


def record(name: str, rows: list[Row], train: Rows, test: Rows, n_classes: int) -> None:
    header = ["program", "chosen", "tried", "P@1", "top-5", "macro F1", "log loss", "ECE"]
    header += ["s, tuned and trained", "s, training", "us a row", "MB", "remark"]
    n, d = train.X.shape
    note = (
        f"{n:,} training and {len(test.y):,} test rows, {d:,} features, {n_classes:,} classes. P@1, top-5 and macro F1 "
        "in percent; log loss and expected calibration error (15 bins) where there are probabilities. Processor "
        "seconds of one thread. Settings are compared on a fifth of the training rows; a program that takes longer "
        "than the remark says is ended. Features are the same, of words, for all but fastText and the programs that "
        "read texts, and then take what the service makes of them. Omikuji lists ten classes a row, and draws its "
        "trees again in each run, which moves its P@1 by some tenths. `auto` searches by "
        "itself, which is in its time; the column says whom it took. Rows of programs that the command does not name "
        "are of earlier runs."
    )
    cells = [[row.get(column) or "-" for column in COLUMNS[1:]] for row in rows]
    write(f"Who answers best: {name}", header, cells, note)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--sets", nargs="*", default=[name for name in SETS if sets.folder() or name in sets.available()]
    )
    arguments.add_argument("--programs", nargs="*", help="names of programs; all when left out", default=None)
    arguments.add_argument("--seconds", type=float, default=CAP, help="processor seconds that a program may take")
    chosen = arguments.parse_args()
    for name in chosen.sets:
        train, test = sets.load_rows(name)
        n_classes = int(max(train.y.max(), test.y.max())) + 1
        rows = []
        for program in PROGRAMS:
            if chosen.programs is None or program.name in chosen.programs:
                rows.append(row_of(program, train, test, n_classes, chosen.seconds))
                print(name, rows[-1], flush=True)
        record(name, merged(name, rows), train, test, n_classes)


if __name__ == "__main__":
    main()
