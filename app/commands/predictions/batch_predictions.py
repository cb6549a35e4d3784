"""``polymargin predict-dataset``: predictions for all rows of a dataset, into one file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from app.client import Polymargin
from app.commands.common.output import Json, console, option, print_json
from app.commands.common.request_fields import tags_of
from app.commands.common.watching import watch
from app.schemas.predictions.batch_predictions import BatchPredictRequest

_FORMATS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl"}


def predict_dataset(
    model: Annotated[str, option(BatchPredictRequest, "model", argument=True)],
    dataset: Annotated[str, option(BatchPredictRequest, "dataset", argument=True)],
    output: Annotated[Path, typer.Argument(help="The file to write: .parquet, .csv or .jsonl.", dir_okay=False)],
    version: Annotated[int | None, option(BatchPredictRequest, "version")] = None,
    alias: Annotated[str | None, option(BatchPredictRequest, "alias")] = None,
    dataset_version: Annotated[int | None, option(BatchPredictRequest, "dataset_version")] = None,
    part: Annotated[str | None, option(BatchPredictRequest, "part", metavar="train|test|validation|all")] = None,
    top_k: Annotated[int, option(BatchPredictRequest, "top_k")] = 1,
    priority: Annotated[str | None, option(BatchPredictRequest, "priority", metavar="low|normal|high")] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A tag of the job.")] = None,
    time_limit_seconds: Annotated[float | None, option(BatchPredictRequest, "time_limit_seconds")] = None,
    json: Json = False,
) -> None:
    """Predict all rows of a dataset with a model, and write the answers to a file."""
    format = _FORMATS.get(output.suffix)
    if format is None:
        raise typer.BadParameter(f"ends with none of {', '.join(_FORMATS)}", param_hint="output")
    if not output.parent.is_dir():  # told before the job is made, not after it
        raise typer.BadParameter(f"there is no folder {output.parent}", param_hint="output")
    given: dict[str, Any] = {"version": version, "alias": alias, "dataset_version": dataset_version, "part": part}
    given |= {"priority": priority, "time_limit_seconds": time_limit_seconds, "tags": tags_of(tag) if tag else None}
    options = {name: value for name, value in given.items() if value is not None}
    with Polymargin() as client:
        job = client.predict_dataset(model, dataset, format=format, top_k=top_k, **options)
        job = watch(job, console(json))
        n_bytes = job.save_predictions(output)
    if json:
        print_json(job)
        return
    n_rows = job.result.n_rows if job.result else None
    console(json).print(f"{n_rows} rows, {n_bytes} bytes: {output}")
