"""``polymargin datasets``: upload, list, show, delete."""

from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
from pydantic import ValidationError

from app.client import Polymargin
from app.commands.common.option_names import OptionNames
from app.commands.common.output import Json, console, fail, option, options_of, print_json, table
from app.commands.common.output import number as rounded
from app.remote.datasets import name_of
from app.remote.errors import ClientError
from app.schemas.datasets.datasets import (
    Dataset,
    DatasetFormat,
    DatasetRow,
    ImportOptions,
    LabelCorrection,
    NewRows,
)
from app.schemas.datasets.tables import ColumnSummary
from app.schemas.datasets.uploads import FromUpload

datasets = typer.Typer(help="Upload and look after datasets.", no_args_is_help=True)

_FORMAT = f"{', '.join(get_args(DatasetFormat))}; default: by the file's ending, or by its content."
_RESUME = "Go on with the upload of this file that broke off, by the id that was told."

Ref = Annotated[str, typer.Argument(metavar="DATASET", help="Name or id.")]


@datasets.command()
@options_of(ImportOptions)
def upload(
    path: Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="A dataset.")],
    name: Annotated[str | None, typer.Option(help="Default: the file's name without its endings.")] = None,
    format: Annotated[str | None, typer.Option(help=_FORMAT)] = None,
    wait: Annotated[bool, typer.Option(help="Wait until the service has read the file.")] = True,
    resume: Annotated[str | None, typer.Option(help=_RESUME)] = None,
    json: Json = False,
    **options: str | bool | list[str] | None,
) -> None:
    """Upload a file, compressed or not."""
    out = console(json)
    options["resume"] = resume
    with Polymargin() as client, out.status("Uploading"):
        dataset = client.datasets.upload(path, name or name_of(path), cast(DatasetFormat | None, format), **options)
        if wait:
            dataset.wait()
        inferred = client.datasets.statistics(dataset.id).columns if wait and options.get("infer_columns") else None
    _show(dataset, json)
    for column in inferred or []:
        if column.why is not None:
            out.print(f"Note: column {column.name!r} is left out: {column.why}.", markup=False)


@datasets.command()
@options_of(NewRows, without=("part", "format", *FromUpload.model_fields))
def append(
    dataset: Ref,
    path: Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="A file of rows.")],
    part: Annotated[str | None, option(NewRows, "part", metavar="train|test|validation")] = None,
    format: Annotated[str | None, typer.Option(help=_FORMAT)] = None,
    wait: Annotated[bool, typer.Option(help="Wait until the service has appended the rows.")] = True,
    resume: Annotated[str | None, typer.Option(help=_RESUME)] = None,
    json: Json = False,
    **options: str | bool | list[str] | None,
) -> None:
    """Append a file's rows: the dataset gets a new version, and jobs of before keep theirs."""
    out = console(json)
    options["resume"] = resume
    with Polymargin() as client, out.status("Uploading"):
        job = client.datasets.append(dataset, path, cast(Any, part), cast(DatasetFormat | None, format), **options)
        if wait:
            job.wait()
        body = client.datasets.get(dataset)
    _show(body, json)


@datasets.command()
def correct(
    dataset: Ref,
    row: Annotated[int | None, typer.Argument(help="Its number, from 0.", show_default=False)] = None,
    labels: Annotated[list[str] | None, typer.Argument(help="All labels that are right.", show_default=False)] = None,
    file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help='In place of a row: JSON lines as {"row": 7, "labels": ["a"]}.'),
    ] = None,
    wait: Annotated[bool, typer.Option(help="Wait until the service has made the new version.")] = True,
    json: Json = False,
) -> None:
    """Give rows the labels that are right: the dataset gets a new version, and jobs of before keep theirs."""
    if (row is None) == (file is None):
        raise typer.BadParameter("give either a row with its labels or --file", param_hint="--file")
    with Polymargin() as client, console(json).status("Correcting"):
        if file is None:
            job = client.datasets.correct(dataset, {cast(int, row): labels or []})
        else:
            given = _corrections(file)
            before = {each.row: each.before for each in given if each.before is not None}
            job = client.datasets.correct(dataset, {each.row: each.labels for each in given}, before)
        if wait:
            job.wait()
        body = client.datasets.get(dataset)
    _show(body, json)


@datasets.command()
def versions(dataset: Ref, json: Json = False) -> None:
    """The versions of a dataset, newest first."""
    with Polymargin() as client:
        found = client.datasets.versions(dataset)
    if json:
        print_json(found)
        return
    rows = [(each.version, each.n_rows, each.n_train, each.sha256[:16], f"{each.created_at:%F %T}") for each in found]
    console(json).print(table(["version", "rows", "train", "sha256", "made (UTC)"], rows))


@datasets.command()
def example(json: Json = False) -> None:
    """Have the service make an example: docstrings of Python libraries by module, and a hierarchy of the modules."""
    with Polymargin() as client, console(json).status("Making"):
        dataset = client.datasets.example()
        dataset.wait()
    _show(dataset, json)


@datasets.command()
def errors(
    dataset: Ref,
    output: Annotated[Path | None, typer.Option(dir_okay=False, help="A file to write; default: stdout.")] = None,
) -> None:
    """All faulty rows of a file that could not be imported, as CSV: line, column, fault."""
    with Polymargin() as client:
        report = client.datasets.error_report(dataset)
    if output is None:
        typer.echo(report, nl=False)
    else:
        output.write_bytes(report)


@datasets.command("list")
def list_(json: Json = False) -> None:
    """The newest datasets."""
    with Polymargin() as client:
        page = client.datasets.list()
    if json:
        print_json(page)
        return
    rows = [(item.name, item.state, item.kind, item.n_rows, item.n_classes, item.size_bytes) for item in page.items]
    console(json).print(table(["name", "state", "kind", "rows", "classes", "bytes"], rows))


@datasets.command()
def show(dataset: Ref, json: Json = False) -> None:
    """One dataset and, once it is ready, its largest classes, and what should be known of its rows."""
    with Polymargin() as client:
        body = client.datasets.get(dataset)
        statistics = client.datasets.statistics(dataset) if body.state == "ready" else None
    _show(body, json)
    if statistics is not None:
        if statistics.labels_per_row is not None:
            sizes = statistics.labels_per_row
            console(json).print(f"{sizes.least} to {sizes.most} labels a row, {sizes.mean:.2f} on average")
        if statistics.languages is not None:
            shares = ", ".join(f"{each.language} {each.share:.0%}" for each in statistics.languages.shares)
            console(json).print(f"Languages of {statistics.languages.n_rows} texts: {shares}", markup=False)
        rows = [(count.label, count.train, count.test, count.validation) for count in statistics.classes[:10]]
        titles = ["label", "train", "test", "validation"]
        shown = len(titles) if statistics.n_validation else 3
        console(json).print(table(titles[:shown], [row[:shown] for row in rows]))
        if statistics.columns is not None:
            reported = ["column", "is", "missing", "levels", "least", "most", "mean"]
            console(json).print(table(reported, map(_column, statistics.columns)))
        for warning in statistics.warnings:
            console(json).print(f"Note: {warning.detail}.", markup=False)


@datasets.command()
def rows(
    dataset: Ref,
    offset: Annotated[int, typer.Option(help="The first row to show, from 0.")] = 0,
    limit: Annotated[int, typer.Option(help="How many to show.")] = 20,
    whole: Annotated[
        bool, typer.Option("--whole", help="Shorten nothing; 20 rows at the most are given then.")
    ] = False,
    json: Json = False,
) -> None:
    """Rows of a dataset as the service has read them, shortened."""
    with Polymargin() as client:
        found = client.datasets.rows(dataset, offset, limit, whole)
    if json:
        print_json(found)
        return
    shown = [
        (each.row, each.label if each.labels is None else ", ".join(each.labels), each.split,
         _content(each))
        for each in found.rows
    ]  # fmt: skip
    console(json).print(table(["row", "label", "part", "content"], shown))


@datasets.command()
def delete(
    dataset: Ref,
    force: Annotated[bool, typer.Option("--force", help="Even if models were trained on it.")] = False,
    json: Json = False,
) -> None:
    """Delete a dataset and its files."""
    with Polymargin() as client:
        client.datasets.delete(dataset, force)
    if json:
        print_json({"deleted": dataset})
    else:
        console(json).print(f"Deleted {dataset}", markup=False)


def _column(column: ColumnSummary) -> tuple[object, ...]:
    role = column.role if column.why is None else f"{column.role}: {column.why}"
    return (column.name, role, column.missing, column.levels, *map(rounded, (column.least, column.most, column.mean)))


def _content(row: DatasetRow) -> str:
    if row.record is not None:
        return ", ".join(f"{name}={'-' if value is None else value}" for name, value in row.record.items())
    return row.text or " ".join(f"{index}:{value:g}" for index, value in row.features or [])


def _show(dataset: Dataset, json: bool) -> None:
    if json:
        print_json(dataset)
        return
    values = dataset.model_dump(mode="json", exclude={"error"}, exclude_none=True)
    console(json).print(table(["dataset", dataset.name], values.items()))
    if dataset.error is not None:
        error = ClientError("", dataset.error.errors)
        fail(f"the import has failed: {dataset.error.detail}", json, error, OptionNames(ImportOptions.model_fields))


def _corrections(file: Path) -> list[LabelCorrection]:
    """What the JSON lines of a file say, each row once."""
    corrections: list[LabelCorrection] = []
    lines: dict[int, int] = {}
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        try:
            each = LabelCorrection.model_validate_json(line, strict=True)
        except ValidationError as error:
            wrong = f'line {number} of the file is not as {{"row": 7, "labels": ["a"]}}: {_first_fault(error)}'
            raise typer.BadParameter(wrong, param_hint="--file") from None
        if lines.setdefault(each.row, number) != number:
            twice = f"lines {lines[each.row]} and {number} of the file are both of row {each.row}"
            raise typer.BadParameter(twice, param_hint="--file")
        corrections.append(each)
    return corrections


def _first_fault(error: ValidationError) -> str:
    fault = error.errors()[0]
    return ": ".join([*map(str, fault["loc"]), fault["msg"]])
