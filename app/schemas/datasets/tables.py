"""Columns of tables: what they are, and how a training makes features of them."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class TableColumns(BaseModel):
    """What the columns of a dataset's file are, beside label, split, weight and id."""

    model_config = ConfigDict(frozen=True)

    texts: tuple[str, ...] = Field(default=(), description="They make one text, one below the other.")
    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    left_out: dict[str, str] = Field(default={}, description="Columns that are not read, and why.")
    missing: bool = Field(default=False, description="Whether numbers and categories may be missing.")
    inferred: bool = Field(default=False, description="Whether columns were told by their values.")


class ColumnRecipe(BaseModel):
    """How numbers and categories become features; fitted on the training part alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scaling: Literal["standard", "robust", "max_abs", "unit_norm", "none"] = Field(
        default="standard",
        description="Of numbers: standard has mean 0 and deviation 1; robust has median 0 and quartiles 1 apart; "
        "max_abs lies between -1 and 1 and keeps zeros; unit_norm makes each row's numbers a vector of length 1.",
    )
    missing: Literal["median", "mean", "zero"] = Field(
        default="median", description="What a missing number becomes; of the training rows that have it."
    )
    mark_missing: bool = Field(
        default=True, description="A feature of its own says of each number whether it was missing, where some are."
    )
    min_level_rows: int = Field(
        default=2,
        ge=1,
        description="Training rows that a level of a category must have; rarer ones, and levels that are new in "
        "predictions, are one level together.",
    )


class ColumnSummary(BaseModel):
    """One column as it was read."""

    name: str
    role: Literal["text", "number", "category", "left out"]
    why: str | None = Field(default=None, description="Of columns that are left out.")
    missing: int = Field(default=0, description="Rows without a value.")
    levels: int | None = Field(default=None, description="Of a category: different values.")
    least: float | None = Field(default=None, description="Of numbers, as most and mean: of the rows that have one.")
    most: float | None = None
    mean: float | None = None
