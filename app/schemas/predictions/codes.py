"""The output code of a model version."""

from typing import Literal

from pydantic import BaseModel, Field


class OutputCode(BaseModel):
    """A code matrix, one row a class and one column a binary machine, or a window of it."""

    model: str
    version: int
    n_classes: int
    n_columns: int
    discrete: bool = Field(description="All entries are -1, 0 and +1.")
    decoding: Literal["inner_product", "votes", "hamming", "loss", "kernel"] = Field(
        description="How the columns' margins become scores; kernel: by a machine of its own, and the code shown is "
        "that of the columns which the machines were trained for."
    )
    first_class: int
    first_column: int
    classes: list[str] = Field(description="Labels of the rows shown.")
    matrix: list[list[float]] = Field(description="The rows shown, in the columns shown.")
    distance: Literal["hamming", "euclidean"] = Field(
        description="hamming counts a zero one half; euclidean is for codes that are not discrete."
    )
    row_distances: list[list[float]] = Field(description="Between the rows shown, over all columns.")
    column_distances: list[list[float]] = Field(
        description="Between the columns shown, over all classes; a column and its complement are the same."
    )
