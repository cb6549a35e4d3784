"""What single runs of the papers' protocols have found: partial results, which a later call goes on from, and means.

A run is named by the part of the paper that it is for, the data set, the method, a setting, and which repetition it
is; what it has found is one JSON line. What is there is not run again.
"""

import csv
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

Number = float | int
# a number, or the points (x, y) of a curve
Found = Mapping[str, Number | str | list[tuple[float, float]]]
HEADER = ["part", "set", "method", "setting", "measure", "x", "value", "deviation", "repetitions"]
MOST_POINTS = 40


class OutOfTimeError(Exception):
    """The time that was given is over; a later call goes on."""


class Run(NamedTuple):
    """The name of a run."""

    part: str
    set: str
    method: str
    setting: str = ""
    repetition: int = 0


class Store:
    """Runs and what they have found.

    Parameters
    ----------
    path : Path, optional
        File of partial results; left out, nothing is kept.
    minutes : float
        After so many no further run is begun.
    """

    def __init__(self, path: Path | None, minutes: float = float("inf")) -> None:
        self._path = path
        self._until = time.monotonic() + 60 * minutes
        self.found: dict[Run, Found] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf8").splitlines():
                row = json.loads(line)
                self.found[Run(*row["run"])] = row["found"]

    def run(self, run: Run, compute: Callable[[], Found]) -> Found:
        """What the run has found, now or before.

        Raises
        ------
        OutOfTimeError
            It has not been run, and the time is over.
        """
        if run not in self.found:
            if time.monotonic() > self._until:
                raise OutOfTimeError(f"no time is left for {' '.join(map(str, run))}")
            began = time.monotonic()
            self.found[run] = compute()
            print(*run, f"{time.monotonic() - began:.1f} s", flush=True)
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with self._path.open("a", encoding="utf8") as file:
                    file.write(json.dumps({"run": run, "found": self.found[run]}) + "\n")
        return self.found[run]

    def note(self, part: str, name: str, **values: Number | str) -> None:
        """Keep what takes no time to find, of a data set or of the whole."""
        self.found[Run(part, name, "")] = values

    def means(self) -> "Results":
        """Over repetitions: means, deviations (of single runs, n - 1) and numbers."""
        gathered: dict[tuple[str, str, str, str, str], list[Number | str | list[tuple[float, float]]]] = {}
        for run, found in self.found.items():
            for measure, value in found.items():
                gathered.setdefault((*run[:4], measure), []).append(value)
        return Results([cell for key, values in gathered.items() for cell in _cells(key, values)])


class Cell(NamedTuple):
    """A row of the table of results; texts are unchanged in ``value``."""

    part: str
    set: str
    method: str
    setting: str
    measure: str
    x: str
    value: str
    deviation: str
    repetitions: int


def _cells(key: tuple[str, str, str, str, str], values: list[Number | str | list[tuple[float, float]]]) -> list[Cell]:
    if isinstance(values[0], str):
        return [Cell(*key, "", values[0], "", 1)]
    if not isinstance(values[0], list):
        return [Cell(*key, "", *_mean([float(value) for value in values]), len(values))]  # type: ignore[arg-type]
    # repetitions of a curve have the same x; where one ended early the others go on
    curves = [[tuple(point) for point in value] for value in values]  # type: ignore[union-attr]
    xs = sorted({point[0] for curve in curves for point in curve})
    if len(xs) > MOST_POINTS:
        xs = [xs[at] for at in np.unique(np.linspace(0, len(xs) - 1, MOST_POINTS).round().astype(int))]
    of_x = {x: [dict(curve)[x] for curve in curves if x in dict(curve)] for x in xs}
    return [Cell(*key, f"{x:.6g}", *_mean(ys), len(ys)) for x, ys in of_x.items()]


def _mean(values: list[float]) -> tuple[str, str]:
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return f"{np.mean(values):.6g}", f"{deviation:.3g}" if len(values) > 1 else ""


class Results:
    """The table of results of one paper."""

    def __init__(self, cells: list[Cell]) -> None:
        self.cells = cells
        self._at: dict[tuple[str, ...], list[Cell]] = {}
        for cell in cells:
            self._at.setdefault(cell[:5], []).append(cell)

    @classmethod
    def read(cls, path: Path) -> "Results":
        with path.open(newline="", encoding="utf8") as file:
            return cls([Cell(*row[:8], int(row[8])) for row in list(csv.reader(file))[1:]])

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf8") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(HEADER)
            table.writerows(self.cells)

    def has(self, part: str, name: str = "", method: str = "", setting: str = "", measure: str = "") -> bool:
        return (part, name, method, setting, measure) in self._at

    def text(self, part: str, name: str, measure: str, method: str = "", setting: str = "") -> str:
        """A text or number unchanged; empty where there is none."""
        found = self._at.get((part, name, method, setting, measure))
        return found[0].value if found else ""

    def value(self, part: str, name: str, method: str, setting: str, measure: str) -> float:
        """A mean; nan where there is none."""
        return float(self.text(part, name, measure, method, setting) or "nan")

    def cell(
        self, part: str, name: str, method: str, setting: str, measure: str, form: str = ".2f", scale: float = 1.0
    ) -> str:
        """A mean with its deviation, for a table; empty where there is none."""
        found = self._at.get((part, name, method, setting, measure))
        if not found:
            return ""
        value = format(scale * float(found[0].value), form)
        return f"{value} ± {format(scale * float(found[0].deviation), form)}" if found[0].deviation else value

    def curve(self, part: str, name: str, method: str, setting: str, measure: str) -> list[tuple[float, float]]:
        """The points of a curve."""
        found = self._at.get((part, name, method, setting, measure), [])
        return [(float(cell.x), float(cell.value)) for cell in found]

    def repetitions(self, part: str) -> int:
        """The largest number of repetitions of a part."""
        return max((cell.repetitions for cell in self.cells if cell.part == part), default=0)

    def draws(self, part: str, name: str, method: str, setting: str, measure: str) -> int:
        """The number of repetitions that a mean is of; 0 where there is none."""
        found = self._at.get((part, name, method, setting, measure))
        return found[0].repetitions if found else 0

    def names(self, part: str, column: str) -> list[str]:
        """The different sets, methods or settings of a part, in the order of the runs."""
        return list(dict.fromkeys(getattr(cell, column) for cell in self.cells if cell.part == part))
