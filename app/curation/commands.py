"""Commands that suggest rows to label, and find wrong labels."""

from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from app.command_line.connection import connect
from app.command_line.output import Json, console, number, option, print_json, table
from app.command_line.request_fields import param_of, tags_of
from app.command_line.watching import watch
from app.curation.schemas import SuggestedRow, SuggestRowsRequest, WrongLabel, WrongLabelsRequest
from app.jobs.client import Job
from app.plurals import counted

_AT_ONCE, _LISTED, _LONGEST = 200, 20, 80

_TimeLimit = Annotated[float | None, option(SuggestRowsRequest, "time_limit_seconds")]
_Priority = Annotated[str | None, option(SuggestRowsRequest, "priority", metavar="low|normal|high")]
_Tags = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A tag of the job.")]


def suggest_rows(
    model: Annotated[str, option(SuggestRowsRequest, "model", argument=True)],
    dataset: Annotated[str, option(SuggestRowsRequest, "dataset", argument=True)],
    budget: Annotated[int, option(SuggestRowsRequest, "budget")] = 200,
    diversity: Annotated[str | None, option(SuggestRowsRequest, "diversity", metavar="clusters|k_center|none")] = None,
    few_rows_share: Annotated[float | None, option(SuggestRowsRequest, "few_rows_share")] = None,
    few_rows: Annotated[int | None, option(SuggestRowsRequest, "few_rows")] = None,
    skip_decided: Annotated[bool, option(SuggestRowsRequest, "skip_decided")] = True,
    version: Annotated[int | None, option(SuggestRowsRequest, "version")] = None,
    alias: Annotated[str | None, option(SuggestRowsRequest, "alias")] = None,
    dataset_version: Annotated[int | None, option(SuggestRowsRequest, "dataset_version")] = None,
    part: Annotated[str | None, option(SuggestRowsRequest, "part", metavar="train|test|validation|all")] = None,
    top_k: Annotated[int | None, option(SuggestRowsRequest, "top_k")] = None,
    seed: Annotated[int | None, option(SuggestRowsRequest, "seed")] = None,
    output: Annotated[
        Path | None, typer.Option(help="File to write all suggested rows to, as JSON lines.", dir_okay=False)
    ] = None,
    review: Annotated[str | None, typer.Option(help="Name of a review queue to create from the rows.")] = None,
    time_limit_seconds: _TimeLimit = None,
    priority: _Priority = None,
    tag: _Tags = None,
    json: Json = False,
) -> None:
    """Choose the rows of a dataset that are most worth labelling."""
    request: dict[str, Any] = {"diversity": diversity, "few_rows_share": few_rows_share, "few_rows": few_rows}
    request |= {"skip_decided": None if skip_decided else False, "version": version, "alias": alias, "part": part}
    request |= {"dataset_version": dataset_version, "top_k": top_k, "seed": seed, "priority": priority}
    request |= {"time_limit_seconds": time_limit_seconds, "tags": tags_of(tag) if tag else None}
    client = connect()
    given = {name: value for name, value in request.items() if value is not None}
    job = watch(client.suggest_rows(model, dataset, budget, **given), console(json))
    found = job.suggested_rows(0, _LISTED)
    if output is not None:
        _write(job, output, found.n_rows)
    queue = None if review is None else client.reviews.create(review, job.id)
    if json:
        print_json(found)
        return
    out = console(json)
    rows = [(each.row, each.reason, number(each.margin), _predicted(each), _short(each)) for each in found.rows]
    out.print(table(["row", "reason", "margin", "predicted label", "text or features"], rows))
    out.print(f"{counted(found.n_rows, 'row')} of {found.dataset} suggested by job {job.id}")
    if queue is not None:
        out.print(f"Review {queue.name}: {counted(queue.n_rows, 'row')} to decide")


def wrong_labels(
    model: Annotated[str | None, option(WrongLabelsRequest, "model", argument=True)] = None,
    version: Annotated[int | None, option(WrongLabelsRequest, "version")] = None,
    alias: Annotated[str | None, option(WrongLabelsRequest, "alias")] = None,
    dataset: Annotated[str | None, option(WrongLabelsRequest, "dataset")] = None,
    dataset_version: Annotated[int | None, option(WrongLabelsRequest, "dataset_version")] = None,
    hierarchy: Annotated[str | None, option(WrongLabelsRequest, "hierarchy")] = None,
    solver: Annotated[str | None, option(WrongLabelsRequest, "solver")] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter of the solver.")
    ] = None,
    folds: Annotated[int, option(WrongLabelsRequest, "folds")] = 5,
    limit: Annotated[int | None, option(WrongLabelsRequest, "limit")] = None,
    seed: Annotated[int | None, option(WrongLabelsRequest, "seed")] = None,
    threads: Annotated[int | None, option(WrongLabelsRequest, "threads")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="File to write the suggested corrections to, as JSON lines for `datasets correct --file`. Delete the "
            "lines whose label is right.",
            dir_okay=False,
        ),
    ] = None,
    time_limit_seconds: _TimeLimit = None,
    priority: _Priority = None,
    tag: _Tags = None,
    json: Json = False,
) -> None:
    """Find labels that are probably wrong, by models that were not trained on the rows that they judge."""
    request: dict[str, Any] = {"version": version, "alias": alias, "dataset": dataset, "hierarchy": hierarchy}
    request |= {"dataset_version": dataset_version, "solver": solver, "folds": folds, "limit": limit, "seed": seed}
    request |= {"params": dict(map(param_of, param)) if param else None, "threads": threads, "priority": priority}
    request |= {"time_limit_seconds": time_limit_seconds, "tags": tags_of(tag) if tag else None}
    given = {name: value for name, value in request.items() if value is not None}
    job = watch(connect().wrong_labels(model, **given), console(json))
    found = job.wrong_labels(0, _LISTED)
    if output is not None:
        _write_corrections(job, output, found.n_rows)
    if json:
        print_json(found)
        return
    out = console(json)
    rows = [
        (
            each.row,
            each.label,
            each.suggested,
            number(each.probability),
            number(each.probability_of_label),
            _short(each),
        )
        for each in found.rows
    ]
    titles = ["row", "label", "suggested", "probability", "of its label", "text or features"]
    out.print(table(titles, rows))
    out.print(
        f"{counted(found.n_judged, 'label')} of {found.dataset} judged, about {found.n_confident} wrong; job {job.id} "
        f"lists {found.n_rows}"
    )


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
