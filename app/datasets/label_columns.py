"""The columns of a table at a terminal: what they seem to be, and the label column asked for where it is unclear."""

import csv
import io
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer
from rich.console import Console

from app.client import Client
from app.command_line.output import table
from app.datasets.client import format_of, plain_name
from app.datasets.column_names import labels_by_name
from app.datasets.formats import EXTENSIONS, FORMATS
from app.datasets.formats.delimited import DELIMITERS
from app.datasets.schemas import (
    MOST_SAMPLE_BYTES,
    ImportOptions,
    ProposedColumns,
)
from app.remote.errors import InvalidInputError

Options = Mapping[str, str | bool | list[str] | None]

_MOST_BYTES = 1 << 20
_ENDINGS = (".csv", ".tsv")
_SHOWN = 8
# a person who gives one of these knows the columns
_KNOWING = (
    "label_column", "label_columns", "unlabelled", "resume", "weight_column", "text_columns", "text_fields",
    "label_fields", "ignore_columns", "number_columns", "category_columns", "column_types", "id_column",
    "other_columns", "infer_columns",
)  # fmt: skip
_SHOWN_COLUMNS, _CHARACTERS = 50, 60
# an answer to the question for the label column: each of these columns is one label
_INDICATORS = "each column of 0 and 1"


def shows_columns(path: Path, format: str | None, options: Options) -> bool:
    """Whether a person at a terminal is shown the columns: of a table of which no option names one."""
    if not at_terminal() or any(options.get(name) for name in _KNOWING):
        return False
    ending = Path(plain_name(path)).suffix.lower().removeprefix(".")
    known = FORMATS.get(format or (str(format_of(path)) if ending in EXTENSIONS else "csv"))
    if known is None or known.columns is None:
        return False
    return known.is_text or path.stat().st_size <= MOST_SAMPLE_BYTES


def proposed_options(
    client: Client, path: Path, format: str | None, options: Options, out: Console
) -> dict[str, str | bool | list[str]]:
    """Options for the columns of a table, which are shown; the label column is asked for where it is unclear.

    Options that are given win. There are none where the service finds no columns: the import then says what is wrong
    with the file.
    """
    try:
        found = client.datasets.propose_columns(path, format, **options)
        print_columns(found, out)
        if found.doubt is not None:
            typer.echo(f"{found.doubt} (--unlabelled reads rows without labels)", err=True)
            indicators = [column.name for column in found.columns if column.role == "indicator"]
            label = _asked([column.name for column in found.columns], found.label_column, indicators)
            chosen = {"label_columns": indicators} if label == _INDICATORS else {"label_column": label}
            found = client.datasets.propose_columns(path, format, **{**options, **chosen})
    except InvalidInputError:
        return {}
    added = {name: value for name, value in found.options.items() if options.get(name) is None}
    if added:
        typer.echo(f"Next time: {with_options(['polymargin', *sys.argv[1:]], added)}", err=True)
    return added


def print_columns(found: ProposedColumns, out: Console) -> None:
    """A table of the columns, with the proposed roles and the first values."""
    rows = [
        (column.name, column.role, column.reason, _shortened(" | ".join(column.values)))
        for column in found.columns[:_SHOWN_COLUMNS]
    ]
    out.print(table(["column", "role", "why", "first values"], rows))
    if found.n_columns > len(rows):
        out.print(f"and {found.n_columns - len(rows)} more columns")


def with_options(command: Sequence[str], options: Mapping[str, str | bool | list[str]]) -> str:
    """A command with more options, to be typed."""
    added: list[str] = []
    for name, value in options.items():
        added.append(f"--{'no-' if value is False else ''}{name.replace('_', '-')}")
        if not isinstance(value, bool):
            added.append(value if isinstance(value, str) else _listed(value))
    return shlex.join([*command, *added])


def chosen_label_column(path: Path, format: str | None, options: Options) -> str | None:
    """The label column if a table has no column `label` and no option names it; None to keep the default.

    Raises
    ------
    BadParameter
        Standard input is not a terminal, or the file is a vocabulary of URIs and names.
    """
    default = ImportOptions().label_column
    if any(options.get(name) for name in ("label_column", "label_columns", "unlabelled", "resume")):
        return None
    # the content may say that a file is no table, as of Annif's corpora
    if path.suffix.lower() not in _ENDINGS or (format or format_of(path)) not in ("csv", "tsv"):
        return None
    names = _header(path, options)
    # a header that is no text is refused with its reason by the service
    if not all(map(str.isprintable, names)):
        return None
    if len(names) < 2 or default in names:
        return None
    if names[0].startswith("<") and names[0].endswith(">"):
        detail = f"the file begins with {names[0]} and a name: polymargin hierarchies upload takes vocabularies"
        raise typer.BadParameter(detail, param_hint="FILE")
    proposed = next(iter(labels_by_name(names)), names[-1])
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    if not sys.stdin.isatty():
        detail = (
            f"the table has no column {default!r}; its columns are {shown}. Did you mean --label-column "
            f"{shlex.quote(proposed)}?"
        )
        ways = "--unlabelled reads rows without labels; if the first line is a row, write the columns' names before it"
        raise typer.BadParameter(f"{detail} ({ways})", param_hint="--label-column")
    typer.echo(f"The table has no column {default!r}. Its columns are {shown}.", err=True)
    answer = _asked(names, proposed)
    typer.echo(f"Next time: {with_options(['polymargin', *sys.argv[1:]], {'label_column': answer})}", err=True)
    return answer


def at_terminal() -> bool:
    """Whether a person reads the output and can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _asked(names: Sequence[str], proposed: str | None, indicators: Sequence[str] = ()) -> str:
    """A column's name, or ``_INDICATORS``, which is proposed where there are such columns."""
    offered, answer = [*names, *([_INDICATORS] if indicators else [])], ""
    while answer not in offered:
        default = _INDICATORS if indicators else proposed
        answer = str(typer.prompt("Which column has the labels?", default=default, err=True)).strip()
    return answer


def _listed(names: Sequence[str]) -> str:
    """Names as an option takes them: with commas between, and in double quotes where they have one."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _CHARACTERS else line[: _CHARACTERS - 3] + "..."


def _header(path: Path, options: Options) -> Sequence[str]:
    """The columns of a table; empty if they are ambiguous."""
    given = "tab" if path.suffix.lower() == ".tsv" else options.get("delimiter")
    try:
        with path.open("rb") as file:
            line = file.readline(_MOST_BYTES).decode(str(options.get("encoding") or "utf-8-sig"))
        marks = [DELIMITERS[str(given)]] if given in DELIMITERS else list(DELIMITERS.values())
        found = [next(csv.reader([line], delimiter=mark, strict=True), []) for mark in marks]
    except (csv.Error, UnicodeError, LookupError):
        return []
    if line.startswith("sep="):
        return []
    return [name.strip().removeprefix("\ufeff") for name in max(found, key=len)]
