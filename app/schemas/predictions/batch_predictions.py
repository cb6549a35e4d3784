"""Predictions for whole datasets: what may be asked for."""

from typing import Literal

from pydantic import ConfigDict, Field

from app.schemas.common.job_options import JobOptions
from app.schemas.common.names import Name
from app.schemas.evaluations import Part

PredictionFormat = Literal["parquet", "csv", "jsonl"]
MEDIA_TYPES: dict[PredictionFormat, str] = {
    "parquet": "application/vnd.apache.parquet",
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl",
}


class BatchPredictRequest(JobOptions):
    """Let a version answer to the rows of a dataset, into one file."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["predict"] = "predict"
    model: Name = Field(description="Id or name.")
    version: int | None = Field(default=None, ge=1, lt=2**31, description="Default: the latest.")
    alias: Name | None = Field(default=None, description="In place of a version.")
    dataset: Name = Field(description="Id or name.")
    dataset_version: int | None = Field(default=None, ge=1, lt=2**31, description="By default the newest.")
    part: Part = Field(default="all", description="All rows, or those of one part of the dataset's own split.")
    format: PredictionFormat = Field(
        default="parquet",
        description="Of the file: a row for each row of the dataset, by `row`, its number from 0, with `label`, "
        "`score` and, of models with probabilities, `probability`; of models that name sets `labels`.",
    )
    top_k: int = Field(
        default=1, ge=1, le=100, description="More than one adds `label_2`, `score_2` and so on, the best first."
    )
