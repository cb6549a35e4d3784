"""The options of commands whose requests have costs, and files of costs with the columns label, answer and cost."""

import csv
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TextIO

import typer

from app.datasets.formats.delimited import DELIMITERS, cells_of
from app.remote.errors import ClientError

COLUMNS = ("label", "answer", "cost")


class CostFile(NamedTuple):
    """A table of costs.

    Attributes
    ----------
    table : dict of dict of float
        By the right label, then by the answer.
    lines : dict of str to int
        The first line that names each label.
    """

    table: dict[str, dict[str, float]]
    lines: dict[str, int]

    def place(self, detail: str) -> str:
        """A fault of the table with the line of the first label that it names, where it names one."""
        named = [line for label, line in self.lines.items() if f"{label!r:.80}" in detail]
        return f"line {min(named)}: {detail}" if named else detail


def read_costs(path: Path) -> CostFile:
    """Read a file of costs; raises ValueError, with the line, where it is none."""
    table: dict[str, dict[str, float]] = {}
    lines: dict[str, int] = {}
    # utf-8-sig: spreadsheets begin files with a byte order mark
    with path.open(newline="", encoding="utf-8-sig") as file:
        for line, label, answer, cost in _rows(file):
            if answer in table.get(label, {}):
                raise ValueError(f"line {line}: the cost of {answer!r:.80} for {label!r:.80} is given twice")
            if label == answer and cost > 0:
                raise ValueError(f"line {line}: the right answer {label!r:.80} costs nothing; remove the line")
            table.setdefault(label, {})[answer] = cost
            for each in (label, answer):
                lines.setdefault(each, line)
    if not table:
        raise ValueError("the file has no costs; expected lines of label,answer,cost below the header")
    return CostFile(table, lines)


def _rows(file: TextIO) -> Iterator[tuple[int, str, str, float]]:
    """Line, right label, answer and cost."""
    first = file.readline()
    # as of datasets: the delimiter with which the header has the columns
    delimiter = next((mark for mark in DELIMITERS.values() if _has_columns(cells_of(first, mark))), ",")
    reader = csv.reader(chain([first], file), delimiter=delimiter)
    header = [cell.strip().lower() for cell in next(reader, [])]
    if not _has_columns(header):
        raise ValueError(f"line 1: expected the header label,answer,cost; got {','.join(header)!r:.80}")
    label, answer, cost = (header.index(name) for name in COLUMNS)
    for cells in reader:
        if not cells:
            continue
        if len(cells) != len(COLUMNS):
            raise ValueError(f"line {reader.line_num}: expected 3 cells, got {len(cells)}")
        # where commas delimit no cells, they are decimal
        number = cells[cost] if delimiter == "," else cells[cost].replace(",", ".")
        yield reader.line_num, cells[label], cells[answer], _number(number, reader.line_num)


def _has_columns(header: Iterable[str]) -> bool:
    return sorted(cell.strip().lower() for cell in header) == sorted(COLUMNS)


def _number(text: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ValueError(f"line {line}: expected a number of at least 0, got {text!r:.80}")
    return value


CostsOption = Annotated[
    str | None,
    typer.Option(
        "--costs",
        metavar="FILE|tree",
        help="What wrong answers cost: a CSV file with the columns label, answer and cost, separated by commas, "
        "semicolons or tabs, or tree for distances in the label tree.",
    ),
]
OtherCost = Annotated[
    float | None, typer.Option("--other-cost", help="Cost of a wrong answer that the file leaves out. Default: 1.")
]


def costs_request(costs: str | None, other_cost: float | None) -> tuple[dict[str, Any], CostFile | None]:
    """What the options add to a request, and the file of costs, if there is one.

    Raises typer.BadParameter, with the line, where the file is faulty.
    """
    table = None
    if costs not in (None, "tree"):
        try:
            table = read_costs(Path(str(costs)))
        except (OSError, ValueError) as error:
            raise typer.BadParameter(f"{costs}: {error}", param_hint="--costs") from None
    given = {"costs": costs if table is None else table.table, "other_cost": other_cost}
    return {name: value for name, value in given.items() if value is not None}, table


@contextmanager
def naming_lines(table: CostFile | None) -> Iterator[None]:
    """Give faults of a table of costs their lines in the file."""
    try:
        yield
    except ClientError as error:
        for fault in error.errors:
            if table is not None and (fault.pointer or "").removeprefix("/params").startswith("/costs"):
                fault.detail = table.place(fault.detail)
        raise
