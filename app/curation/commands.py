"""Commands that suggest rows to label, and find wrong labels."""

from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table

from app.command_line.connection import connect
from app.command_line.output import Json, console, number, option, print_result, table
from app.command_line.request_fields import build_request, fields_of, param_of, tags_of
from app.command_line.watching import watch
from app.curation.schemas import SuggestedRow, SuggestRowsRequest, WrongLabel, WrongLabelsRequest
from app.jobs.client import Job
from app.plurals import counted

_AT_ONCE, _LISTED, _LONGEST = 200, 20, 80

_Tags = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A tag of the job.")]


@fields_of(SuggestRowsRequest, arguments=["model", "dataset"], leave=["kind", "tags"])
def suggest_rows(
    output: Annotated[
        Path | None, typer.Option(help="File to write all suggested rows to, as JSON lines.", dir_okay=False)
    ] = None,
    review: Annotated[str | None, typer.Option(help="Name of a review queue to create from the rows.")] = None,
    tag: _Tags = None,
    json: Json = False,
    **given: Any,
) -> None:
    """Choose the rows of a dataset that are most worth labelling."""
    client = connect()
    request = build_request(SuggestRowsRequest, given) | ({"tags": tags_of(tag)} if tag else {})
    job = watch(client.suggest_rows(**request), console(json))
    found = job.suggested_rows(0, _LISTED)
    if output is not None:
        _write(job, output, found.n_rows)
    queue = None if review is None else client.reviews.create(review, job.id)
    rows = [(each.row, each.reason, number(each.margin), _predicted(each), _short(each)) for each in found.rows]
    shown: list[Table | str | None] = [
        table(["row", "reason", "margin", "predicted label", "text or features"], rows),
        f"{counted(found.n_rows, 'row')} of {found.dataset} suggested by job {job.id}",
        None if queue is None else f"Review {queue.name}: {counted(queue.n_rows, 'row')} to decide",
    ]
    print_result(found, shown, json)


@fields_of(WrongLabelsRequest, leave=["kind", "model", "params", "tags"])
def wrong_labels(
    model: Annotated[str | None, option(WrongLabelsRequest, "model", argument=True)] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter of the solver.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="File to write the suggested corrections to, as JSON lines for `datasets correct --file`. Delete the "
            "lines whose label is right.",
            dir_okay=False,
        ),
    ] = None,
    tag: _Tags = None,
    json: Json = False,
    **given: Any,
) -> None:
    """Find labels that are probably wrong, by models that were not trained on the rows that they judge."""
    request = build_request(WrongLabelsRequest, given) | ({"tags": tags_of(tag)} if tag else {})
    request |= {"params": dict(map(param_of, param))} if param else {}
    job = watch(connect().wrong_labels(model, **request), console(json))
    found = job.wrong_labels(0, _LISTED)
    if output is not None:
        _write_corrections(job, output, found.n_rows)
    rows = [
        (at.row, at.label, at.suggested, number(at.probability), number(at.probability_of_label), _short(at))
        for at in found.rows
    ]
    titles = ["row", "label", "suggested", "probability", "of its label", "text or features"]
    counts = (
        f"{counted(found.n_judged, 'label')} of {found.dataset} judged, about {found.n_confident} wrong; job {job.id} "
        f"lists {found.n_rows}"
    )
    print_result(found, [table(titles, rows), counts], json)


def _write_corrections(job: Job, output: Path, n_rows: int) -> None:
    with output.open("wb") as file:
        for offset in range(0, n_rows, _AT_ONCE):
            found = job.wrong_labels(offset, _AT_ONCE)
            for row in (each for each in found.rows if not each.deleted):
                line = {"row": row.row, "version": found.dataset_version, "labels": [row.suggested]}
                file.write(orjson.dumps(line | {"before": [row.label]}) + b"\n")


def _write(job: Job, output: Path, n_rows: int) -> None:
    with output.open("wb") as file:
        for offset in range(0, n_rows, _AT_ONCE):
            for row in job.suggested_rows(offset, _AT_ONCE).rows:
                file.write(orjson.dumps(row.model_dump(mode="json", exclude_none=True)) + b"\n")


def _predicted(row: SuggestedRow) -> str:
    """The predicted label or set."""
    best, in_set = row.alternatives[:1], [each for each in row.alternatives if each.predicted]
    is_set = any(each.predicted is not None for each in row.alternatives)
    return ", ".join(each.label for each in (in_set if is_set else best))


def _short(row: SuggestedRow | WrongLabel) -> str:
    features = " ".join(f"{index}:{value:.3g}" for index, value in row.features or [])
    record = " ".join(f"{name}={value}" for name, value in (row.record or {}).items())
    words = " ".join((row.text or record or features).split())
    return words if len(words) <= _LONGEST else words[: _LONGEST - 3] + "..."
