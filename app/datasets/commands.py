"""Commands: datasets and uploads."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Console

from app.command_line.connection import connect
from app.command_line.option_names import OptionNames
from app.command_line.output import Json, console, fail, option, options_of, print_json, print_result, table
from app.command_line.output import number as rounded
from app.datasets.client import name_of
from app.datasets.correction_files import corrections_in
from app.datasets.formats import FORMATS
from app.datasets.label_columns import chosen_label_column, print_columns, proposed_options, shows_columns, with_options
from app.datasets.recipe_schemas import ColumnSummary
from app.datasets.schemas import Dataset, DatasetRow, FromUpload, ImportOptions, NewRows
from app.datasets.statistics_schemas import DatasetStatistics
from app.jobs.client import Job
from app.remote.errors import ClientError
from app.remote.files import is_address

datasets = typer.Typer(help="Upload and manage datasets.", no_args_is_help=True)

_FORMAT = f"{', '.join(FORMATS)}; default: detected from the file's extension or content."
# of messages about files, whichever command shows them
_OPTIONS = OptionNames(ImportOptions.model_fields)
_RESUME = "Resume the interrupted upload of this file; the error message shows the id."

Ref = Annotated[str, typer.Argument(metavar="DATASET", help="Name or id.")]


def _file_or_address(what: str) -> Any:
    def parsed(value: str) -> str:
        if not is_address(value) and not Path(value).is_file():
            raise typer.BadParameter(f"File {value!r} does not exist.")
        return value

    return typer.Argument(metavar="FILE", callback=parsed, help=f"{what}, or address that the service fetches.")


@datasets.command()
@options_of(ImportOptions)
def upload(
    path: Annotated[str, _file_or_address("File to upload")],
    name: Annotated[str | None, typer.Option(help="Default: the file's name without extensions.")] = None,
    format: Annotated[str | None, typer.Option(help=_FORMAT)] = None,
    labels: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="File with the rows' labels, where FILE has features alone."),
    ] = None,
    label_names: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="File with the names of numbered labels.")
    ] = None,
    wait: Annotated[bool, typer.Option(help="Wait until the service has imported the file.")] = True,
    resume: Annotated[str | None, typer.Option(help=_RESUME)] = None,
    json: Json = False,
    **options: Any,
) -> None:
    """Upload a dataset file; it may be compressed."""
    out = console(json)
    if is_address(path):
        with out.status("The service is fetching the file"):
            made = connect().datasets.upload(path, name, format, progress=False, **options)
            _show(made.wait(progress=False) if wait else made, json)
        return
    label_files = {"labels": labels, "label_names": label_names}
    _upload_file(Path(path), name, format, wait, options | {"resume": resume}, label_files, json)


def _upload_file(
    path: Path,
    name: str | None,
    format: str | None,
    wait: bool,
    options: dict[str, Any],
    label_files: Mapping[str, Any],
    json: bool,
) -> None:
    out, has_own_labels = console(json), not any(label_files.values())
    if has_own_labels and not json and shows_columns(path, format, options):
        options |= proposed_options(connect(), path, format, options, out)
    labels = chosen_label_column(path, format, options) if has_own_labels else None
    if labels is not None:
        options["label_column"] = labels
    client = connect()
    with out.status("Uploading"):
        dataset = client.datasets.upload(path, name or name_of(path), format, progress=False, **label_files, **options)
        if wait:
            dataset.wait(progress=False)
        statistics = client.datasets.statistics(dataset.id) if wait else None
    _show(dataset, json)
    if statistics is None:
        return
    _print_warnings(statistics, out)
    for column in (statistics.columns or []) if options.get("infer_columns") else []:
        if column.why is not None:
            out.print(f"Note: column {column.name!r} is left out: {column.why}.", markup=False)


@datasets.command()
@options_of(ImportOptions)
def columns(
    path: Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="File with a table.")],
    format: Annotated[str | None, typer.Option(help=_FORMAT)] = None,
    json: Json = False,
    **options: str | bool | list[str] | None,
) -> None:
    """Propose a role for each column of a table; nothing is uploaded to a dataset."""
    found = connect().datasets.propose_columns(path, format, **options)
    if json:
        print_json(found)
        return
    out = console(json)
    print_columns(found, out)
    if found.doubt is not None:
        out.print(f"{found.doubt} Name the label column with --label-column.", markup=False)
    given = {name: value for name, value in {"format": format, **options}.items() if value is not None}
    command = with_options(["polymargin", "datasets", "upload", str(path)], {**given, **found.options})
    out.print(f"Upload it: {command}", markup=False)


@datasets.command()
@options_of(NewRows, without=("part", "format", *FromUpload.model_fields))
def append(
    dataset: Ref,
    path: Annotated[str, _file_or_address("File of rows to append")],
    part: Annotated[str | None, option(NewRows, "part", metavar="train|test|validation")] = None,
    format: Annotated[str | None, typer.Option(help=_FORMAT)] = None,
    wait: Annotated[bool, typer.Option(help="Wait until the service has appended the rows.")] = True,
    resume: Annotated[str | None, typer.Option(help=_RESUME)] = None,
    json: Json = False,
    **options: str | bool | list[str] | None,
) -> None:
    """Append a file's rows; this makes a new version of the dataset, and earlier jobs keep theirs."""
    out = console(json)
    options["resume"] = resume
    client = connect()
    with out.status("Uploading"):
        job = client.datasets.append(dataset, path, cast(Any, part), format, progress=False, **options)
        if wait:
            job.wait(progress=False)
        body = client.datasets.get(dataset)
        statistics = client.datasets.statistics(body.id) if wait else None
    _print_warning(job, json)
    _show(body, json)
    if statistics is not None:
        _print_warnings(statistics, out)


@datasets.command()
def correct(
    dataset: Ref,
    row: Annotated[
        str | None,
        typer.Argument(
            help="Row number, from 0, id or text as --by says, or a file as for --file.", show_default=False
        ),
    ] = None,
    labels: Annotated[list[str] | None, typer.Argument(help="All correct labels.", show_default=False)] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help='JSON lines such as {"row": 7, "labels": ["a"]} or {"row": 8, "delete": true}, with "id" or "text" '
            'instead of "row"; or CSV with a column label or delete, and a column id, text or row.',
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="id|text|row",
            help="What ROW is, or the column of the CSV file that names the rows. Default: a row number, or the first "
            "of the columns id, text and row.",
        ),
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the row, instead of other labels.")] = False,
    label_separator: Annotated[
        str | None, typer.Option(help="Separator of several labels in one cell of the CSV file.")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of the CSV file. Default: UTF-8.")] = None,
    wait: Annotated[bool, typer.Option(help="Wait until the service has made the new version.")] = True,
    json: Json = False,
) -> None:
    """Correct the labels of rows, or delete rows, in a new version of the dataset; earlier jobs keep theirs."""
    name: str | int | None = row
    if row is not None and not labels and not delete and file is None and not row.isdecimal() and Path(row).is_file():
        name, file = None, Path(row)
    elif row is not None and by not in ("id", "text"):
        if not row.isdecimal():
            wrong = f"{row!r} is neither a row number nor a file; for an id or a text, give --by"
            raise typer.BadParameter(wrong, param_hint="ROW")
        name = int(row)
    if (name is None) == (file is None):
        raise typer.BadParameter("give either a row with its labels or --file", param_hint="--file")
    if delete and (file is not None or labels):
        raise typer.BadParameter("give it with one row and no labels", param_hint="--delete")
    if file is not None:
        given = corrections_in(file, by, label_separator, encoding)
    else:
        given = [
            {by if by in ("id", "text") else "row": name, **({"delete": True} if delete else {"labels": labels or []})}
        ]
    client = connect()
    with console(json).status("Correcting"):
        job = client.datasets.correct_rows(dataset, given)
        if wait:
            job.wait(progress=False)
        body = client.datasets.get(dataset)
    _print_warning(job, json)
    _show(body, json)


def _print_warning(job: Job, json: bool) -> None:
    if job.result is not None and job.result.warning is not None:
        console(json).print(f"Warning: {_OPTIONS.said(job.result.warning)}", markup=False)


@datasets.command()
def versions(dataset: Ref, json: Json = False) -> None:
    """List the versions of a dataset, newest first."""
    found = connect().datasets.versions(dataset)
    rows = [
        (each.version, each.n_rows, each.n_train, each.n_deleted, each.sha256[:16], f"{each.created_at:%F %T}")
        for each in found
    ]
    print_result(found, table(["version", "rows", "train", "deleted", "sha256", "made (UTC)"], rows), json)


@datasets.command()
def example(json: Json = False) -> None:
    """Create an example dataset: docstrings of Python libraries by module, with a hierarchy of the modules."""
    with console(json).status("Making"):
        dataset = connect().datasets.example()
        dataset.wait(progress=False)
    _show(dataset, json)


@datasets.command()
def errors(
    dataset: Ref,
    output: Annotated[Path | None, typer.Option(dir_okay=False, help="Output file; default: stdout.")] = None,
) -> None:
    """Show all faulty rows of a failed import as CSV: line, column, fault."""
    report = connect().datasets.error_report(dataset)
    if output is None:
        typer.echo(report, nl=False)
    else:
        output.write_bytes(report)


@datasets.command("list")
def list_(
    old_failures: Annotated[
        bool, typer.Option("--old-failures", help="Include imports that failed more than a day ago.")
    ] = False,
    json: Json = False,
) -> None:
    """List the newest datasets."""
    page = connect().datasets.list(old_failures=old_failures)
    rows = [(item.name, item.state, item.kind, item.n_rows, item.n_classes, item.size_bytes) for item in page.items]
    print_result(page, table(["name", "state", "kind", "rows", "classes", "bytes"], rows), json)


@datasets.command()
def show(dataset: Ref, json: Json = False) -> None:
    """Show one dataset with its largest classes and warnings."""
    client = connect()
    body = client.datasets.get(dataset)
    statistics = client.datasets.statistics(dataset) if body.state == "ready" else None
    _show(body, json)
    if statistics is not None:
        if statistics.labels_per_row is not None:
            sizes = statistics.labels_per_row
            console(json).print(f"{sizes.least} to {sizes.most} labels per row, {sizes.mean:.2f} on average")
        if statistics.languages is not None and statistics.languages.shares:
            shares = ", ".join(f"{each.language} {each.share:.0%}" for each in statistics.languages.shares)
            console(json).print(f"Languages of {statistics.languages.n_rows} texts: {shares}", markup=False)
        rows = [(count.label, count.train, count.test, count.validation) for count in statistics.classes[:10]]
        titles = ["label", "train", "test", "validation"]
        shown = len(titles) if statistics.n_validation else 3
        console(json).print(table(titles[:shown], [row[:shown] for row in rows]))
        if len(rows) < statistics.n_classes:
            console(json).print(f"These are the largest {len(rows)} of {statistics.n_classes:,} labels")
        if statistics.columns is not None:
            reported = ["column", "is", "missing", "levels", "least", "most", "mean"]
            console(json).print(table(reported, map(_column, statistics.columns)))
        _print_warnings(statistics, console(json))


@datasets.command()
def rows(
    dataset: Ref,
    offset: Annotated[int, typer.Option(help="First row to show, from 0.")] = 0,
    limit: Annotated[int, typer.Option(help="Number of rows to show.")] = 20,
    whole: Annotated[bool, typer.Option("--whole", help="Show whole rows, at most 20.")] = False,
    json: Json = False,
) -> None:
    """Show rows of a dataset, shortened."""
    found = connect().datasets.rows(dataset, offset, limit, whole)
    shown = [
        (each.row, each.label if each.labels is None else ", ".join(each.labels), each.split,
         _content(each))
        for each in found.rows
    ]  # fmt: skip
    print_result(found, table(["row", "label", "part", "content"], shown), json)


@datasets.command()
def delete(
    dataset: Ref,
    force: Annotated[bool, typer.Option("--force", help="Delete even if models were trained on it.")] = False,
    json: Json = False,
) -> None:
    """Delete a dataset and its files."""
    connect().datasets.delete(dataset, force)
    print_result({"deleted": dataset}, f"Deleted {dataset}", json)


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
        fail(f"the import failed: {dataset.error.detail}", json, error, OptionNames(ImportOptions.model_fields))


def _print_warnings(statistics: DatasetStatistics, out: Console) -> None:
    for warning in statistics.warnings:
        out.print(f"Note: {_OPTIONS.said(warning.detail)}.", markup=False)


uploads = typer.Typer(help="Manage interrupted uploads.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="UPLOAD", help="Id from the error message of the interrupted upload.")]


@uploads.command("show")
def uploads_show(upload: Id, json: Json = False) -> None:
    """Show how much of an upload has arrived and when it expires."""
    found = connect().uploads.get(upload)
    rows = [(found.offset, found.size_bytes, f"{found.expires_at:%F %T}")]
    print_result(found, table(["bytes", "of", "kept until"], rows), json)


@uploads.command()
def discard(upload: Id, json: Json = False) -> None:
    """Discard an upload and its received bytes."""
    connect().uploads.discard(upload)
    print_result({"discarded": upload}, f"Discarded {upload}", json)
