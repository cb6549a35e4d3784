"""Files of corrections, as the command line reads them: JSON lines, and CSV as spreadsheets write it."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from pydantic import ValidationError

from app.datasets.schemas import LabelCorrection

_NAMES = ("id", "text", "row")
# in the column delete
_YES, _NO = ("yes", "true", "1", "x"), ("", "no", "false", "0")


def corrections_in(
    file: Path, by: str | None = None, separator: str | None = None, encoding: str | None = None
) -> list[dict[str, Any]]:
    """The corrections in a file, at most one per row, id or text; raises BadParameter and names the line.

    Parameters
    ----------
    file : Path
        CSV if its name ends with .csv, .tsv or .txt; else JSON lines.
    by : str, optional
        Column of a CSV file that names the rows; by default the first of id, text and row that it has.
    separator : str, optional
        Separator of several labels in a cell; by default a cell is one label.
    encoding : str, optional
        Encoding of a CSV file, by a name of Python; by default UTF-8.
    """
    is_table = file.suffix.lower() in (".csv", ".tsv", ".txt")
    read = _csv(file, by, separator, encoding or "utf-8") if is_table else _json_lines(file)
    corrections: list[dict[str, Any]] = []
    lines: dict[tuple[str, Any], int] = {}
    for number, given in read:
        [name] = [(field, given[field]) for field in _NAMES if field in given]
        if lines.setdefault(name, number) != number:
            twice = f"lines {lines[name]} and {number} of the file both correct {name[0]} {name[1]}"
            raise typer.BadParameter(twice[:300], param_hint="--file")
        corrections.append(given)
    if not corrections:
        raise typer.BadParameter("the file has no corrections", param_hint="--file")
    return corrections


def _json_lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        try:
            each = LabelCorrection.model_validate_json(line, strict=True)
        except ValidationError as error:
            wrong = f'line {number} of the file is not of the form {{"row": 7, "labels": ["a"]}}: {_first_fault(error)}'
            raise typer.BadParameter(wrong, param_hint="--file") from None
        yield number, each.model_dump(exclude_none=True, exclude_unset=True)


def _csv(file: Path, by: str | None, separator: str | None, encoding: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a CSV file that have a label or are to be deleted; the header says what separates its columns."""
    try:
        text = file.read_bytes().decode(encoding).removeprefix("\ufeff")
    except LookupError:
        raise typer.BadParameter(f"unknown encoding {encoding[:40]!r}", param_hint="--encoding") from None
    except UnicodeDecodeError:
        way = "give its --encoding, or save it as CSV UTF-8"
        raise typer.BadParameter(f"the file is not {encoding.upper()}; {way}", param_hint="--file") from None
    header = text.partition("\n")[0]
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=header.count), strict=True)
    columns = reader.fieldnames or []
    name = by or next((each for each in _NAMES if each in columns), None)
    if name not in _NAMES or name not in columns or not {"label", "delete"} & {*columns}:
        needed = f"label or delete, and {by or 'one of id, text and row'}"
        wrong = f"the file has the columns {', '.join(columns)}; it needs {needed}"
        raise typer.BadParameter(wrong[:300], param_hint="--file")
    try:
        for row in reader:
            label = (row.get("label") or "").strip()
            deletes = _deletes(row.get("delete"), label, reader.line_num)
            if not label and not deletes:  # a row that nobody corrected
                continue
            value: Any = row[name] or ""
            if name == "row":
                if not value.strip().isdecimal():
                    wrong = f"line {reader.line_num} of the file has no row number in the column row"
                    raise typer.BadParameter(wrong, param_hint="--file")
                value = int(value)
            given = {name: value, **({"delete": True} if deletes else {"labels": _labels(label, separator)})}
            if (row.get("before") or "").strip():
                given["before"] = _labels(row["before"], separator)
            yield reader.line_num, given
    except csv.Error as error:
        raise typer.BadParameter(f"line {reader.line_num} of the file: {error}", param_hint="--file") from None


def _deletes(cell: str | None, label: str, line: int) -> bool:
    """Whether a line deletes its row; raises BadParameter where it also has a label, or where that is unclear."""
    word = (cell or "").strip().lower()
    if word not in _YES + _NO:
        wrong = f"line {line} of the file has {word[:40]!r} in the column delete; write yes, or leave the cell empty"
        raise typer.BadParameter(wrong, param_hint="--file")
    if word in _YES and label:
        wrong = f"line {line} of the file has a label, and is to be deleted: empty one of the two cells"
        raise typer.BadParameter(wrong, param_hint="--file")
    return word in _YES


def _labels(cell: str, separator: str | None) -> list[str]:
    found = [cell] if not separator else cell.split(separator)
    return [label.strip() for label in found if label.strip()]


def _first_fault(error: ValidationError) -> str:
    fault = error.errors()[0]
    return ": ".join([*map(str, fault["loc"]), fault["msg"]])
