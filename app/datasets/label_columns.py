"""The label column of a table: proposed from the header and asked for at a terminal."""

import csv
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from app.datasets.schemas import ImportOptions

_MOST_BYTES = 1 << 20
_ENDINGS = (".csv", ".tsv")
_DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
# what others call it, the surest first
_USUAL = ("labels", "class", "category", "target", "code", "subject", "subjects", "topic", "y")
_ANNIF = {"text", "subject_uris"}
_SHOWN = 8


def chosen_label_column(
    path: Path, format: str | None, options: Mapping[str, str | bool | list[str] | None]
) -> str | None:
    """The label column if a table has no column `label` and no option names it; None to keep the default.

    Raises
    ------
    BadParameter
        Standard input is not a terminal.
    """
    default = ImportOptions().label_column
    if any(options.get(name) for name in ("label_column", "label_columns", "unlabelled", "resume")) or format not in (
        None,
        "csv",
        "tsv",
    ):
        return None
    names = _header(path, options) if path.suffix.lower() in _ENDINGS else []
    if len(names) < 2 or default in names or set(names) >= _ANNIF:
        return None
    by_name = {name.casefold(): name for name in reversed(names)}
    proposed = next((by_name[usual] for usual in (default, *_USUAL) if usual in by_name), names[-1])
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    if not sys.stdin.isatty():
        detail = (
            f"the table has no column {default!r}; its columns are {shown}. Did you mean --label-column {proposed}?"
        )
        raise typer.BadParameter(f"{detail} (--unlabelled reads rows without labels)", param_hint="--label-column")
    typer.echo(f"The table has no column {default!r}. Its columns are {shown}.", err=True)
    answer = ""
    while answer not in names:
        answer = typer.prompt("Which column has the labels?", default=proposed, err=True).strip()
    again = shlex.join(["polymargin", *sys.argv[1:], "--label-column", answer])
    typer.echo(f"Next time: {again}", err=True)
    return str(answer)


def _header(path: Path, options: Mapping[str, str | bool | list[str] | None]) -> Sequence[str]:
    """The columns of a table; empty if they are ambiguous."""
    given = "tab" if path.suffix.lower() == ".tsv" else options.get("delimiter")
    try:
        with path.open("rb") as file:
            line = file.readline(_MOST_BYTES).decode(str(options.get("encoding") or "utf-8-sig"))
        marks = [_DELIMITERS[str(given)]] if given in _DELIMITERS else list(_DELIMITERS.values())
        found = [next(csv.reader([line], delimiter=mark, strict=True), []) for mark in marks]
    except (csv.Error, UnicodeError, LookupError):
        return []
    if line.startswith("sep="):
        return []
    return [name.strip().removeprefix("\ufeff") for name in max(found, key=len)]
