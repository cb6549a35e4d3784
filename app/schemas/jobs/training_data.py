"""What all jobs that train are told of their data: the rows, their parts and their labels, and who does it how."""

from typing import Literal

from pydantic import Field

from app.schemas.common.job_options import JobOptions
from app.schemas.common.names import Name
from app.schemas.datasets.tables import ColumnRecipe


class TrainingData(JobOptions):
    """The dataset, how its rows are divided, and the model that gets a version."""

    dataset: Name = Field(description="Id or name.")
    dataset_version: int | None = Field(default=None, ge=1, lt=2**31, description="By default the newest.")
    hierarchy: Name | None = Field(
        default=None,
        description="Id or name of the label tree that the labels are nodes of; methods that take none are measured "
        "along it.",
    )
    model: Name = Field(description="The model gets a new version under this name.")
    seed: int = Field(
        default=0, ge=0, lt=2**31, description="Of the split and of the solver; the same seed gives the same model."
    )
    threads: int = Field(default=1, ge=1, le=256, description="Threads of the solver in its worker.")
    test_fraction: float = Field(
        default=0.2,
        ge=0,
        lt=1,
        description="Rows held out for testing, by class, where the dataset has no split of its own.",
    )
    stratify: Literal["labels", "rows"] = Field(
        default="labels",
        description="Rows with sets of labels are held out so that each label has its share (iterative "
        "stratification), or whatever their labels.",
    )
    unseen_labels: Literal["refuse", "count"] = Field(
        default="refuse",
        description="Test rows with a label that no training row has or, along a label tree, that is none of its "
        "nodes: refuse the job, or count them as errors.",
    )
    missing_parents: Literal["add", "refuse"] = Field(
        default="add",
        description="Rows with sets of labels that have a label and not the one above it: add that, and report how "
        "many were added, or refuse the job.",
    )
    columns: ColumnRecipe | None = Field(
        default=None,
        description="How numbers and categories become features. Left out, those of tables are scaled to mean 0 and "
        "deviation 1, and other datasets' numbers are taken as they are.",
    )
