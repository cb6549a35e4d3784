"""Options and output of commands: tables for people, one JSON document with ``--json``."""

import csv
import inspect
import os
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Annotated, Any, TypeVar

import orjson
import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from app.command_line.option_names import OptionNames
from app.remote.errors import ClientError, fault_line

C = TypeVar("C", bound=Callable[..., None])

# wider than any line
_UNBROKEN = 1_000_000

NO_OPTIONS = OptionNames(())
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document, on the last line of stdout.")]


def option(schema: type[BaseModel], field: str, *, argument: bool = False, **settings: Any) -> Any:
    """The option (or argument) of a command for a field of a schema, with its description as help."""
    kind = typer.Argument if argument else typer.Option
    return kind(help=schema.model_fields[field].description, **settings)


def options_of(schema: type[BaseModel], without: Collection[str] = ()) -> Callable[[C], C]:
    """Give a command that takes ``**options`` an option for each field of a schema but some, by default None."""

    added = [
        inspect.Parameter(
            field,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[_kind(info), _option(schema, field)],
        )
        for field, info in schema.model_fields.items()
        if field not in without
    ]
    return with_parameters([], added)


def with_parameters(first: Sequence[inspect.Parameter], added: Sequence[inspect.Parameter]) -> Callable[[C], C]:
    """Give a command that takes ``**options`` other parameters in their place, before and behind its own."""

    def decorate(command: C) -> C:
        own = inspect.signature(command, eval_str=True)
        kept = [each for each in own.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
        parameters = [*first, *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in kept), *added]
        command.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        return command

    return decorate


def _option(schema: type[BaseModel], field: str) -> Any:
    if not isinstance(schema.model_fields[field].default, tuple):
        return option(schema, field)
    return option(schema, field, metavar="A,B,...", callback=_listed)


def _listed(values: list[str] | None) -> list[str] | None:
    """All given names, separated as in CSV: a name with a comma is put in double quotes."""
    try:
        cells = [cell.strip() for row in csv.reader(values or (), strict=True, skipinitialspace=True) for cell in row]
    except csv.Error:
        raise typer.BadParameter('expected comma-separated names, such as a,b or a,"b, or c"') from None
    return [cell for cell in cells if cell] if values else None


def _kind(info: FieldInfo) -> Any:
    # the service is the one judge of values, so a choice is a string here
    if info.annotation is bool:
        return bool | None
    if info.annotation == float | None:
        return info.annotation
    return list[str] | None if isinstance(info.default, tuple) else str | None


def console(json: bool) -> Console:
    """Where people read: stdout, or stderr where stdout belongs to a program; no line of a pipe or file is broken."""
    out = Console(stderr=json, highlight=False, soft_wrap=True)
    if not out.is_terminal and "COLUMNS" not in os.environ:
        out.width = _UNBROKEN
    return out


def print_json(document: BaseModel | dict[str, Any] | Sequence[BaseModel]) -> None:
    """One line of JSON on stdout."""
    sys.stdout.write(orjson.dumps(document, default=_dump).decode() + "\n")


def print_result(
    document: BaseModel | dict[str, Any] | Sequence[BaseModel],
    shown: Table | str | Iterable[Table | str | None],
    json: bool,
) -> None:
    """Print the result of a command: the document for programs, or tables and sentences of it for people."""
    if json:
        print_json(document)
        return
    for each in [shown] if isinstance(shown, Table | str) else shown:
        if each is not None:
            console(json).print(each, markup=False)


class _Unpadded(Table):
    """A table without the blanks that would fill its lines to the width of the longest."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in Segment.split_lines(super().__rich_console__(console, options)):  # type: ignore[arg-type]
            while line and not line[-1].text.rstrip():
                line.pop()
            if line:
                line[-1] = Segment(line[-1].text.rstrip(), line[-1].style, line[-1].control)
            yield from line
            yield Segment.line()


def table(titles: Sequence[str], rows: Iterable[Sequence[object]], whole: Collection[str] = ()) -> Table:
    """Return a table with dashes for absent values; ids and the columns in ``whole`` are never wrapped."""
    drawn = _Unpadded(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        drawn.add_column(title, overflow="fold", no_wrap=title == "id" or title in whole)
    for row in rows:
        drawn.add_row(*(Text("-" if value is None else str(value)) for value in row))
    return drawn


def number(value: float | None) -> str | None:
    return None if value is None else f"{value:.6g}"


def fail(message: str, json: bool, error: ClientError | None = None, names: OptionNames = NO_OPTIONS) -> int:
    """Print an error on stderr, with one line per fault; with ``json`` also on stdout.

    Parameters
    ----------
    names : OptionNames
        What people read has these in the place of the service's fields, and programs the fields.

    Returns
    -------
    int
        The exit status.
    """
    out = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    out.print(f"Error: {names.said(message)}")
    faults = error.errors if error else []
    lines = []
    for fault in faults:
        pointer, detail = fault.pointer and names.place(fault.pointer), names.said(fault.detail)
        lines.append(f"  {fault_line(fault.model_copy(update={'pointer': pointer, 'detail': detail}))}")
    # several places in a request may be of one option
    for line in dict.fromkeys(lines):
        out.print(line)
    if json:
        code = error.code if error else "error"
        request_id = error.request_id if error else None
        document = {"code": code, "detail": message, "request_id": request_id, "errors": faults}
        print_json({"error": document})
    return 1


def _dump(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(type(value).__name__)
