"""The methods that jobs may name."""

from typing import Any

from pydantic import BaseModel, Field


class Handles(BaseModel):
    """What a method takes."""

    flat: bool
    tree: bool
    multilabel: bool
    shards: bool
    kernels: bool
    certified: bool


class SolverInfo(BaseModel):
    """One method."""

    name: str
    title: str
    summary: str = Field(description="The objective, in plain text.")
    formula: str | None = Field(
        default=None, description="What is minimised, in TeX; absent of a method that chooses among others."
    )
    mathml: str | None = Field(default=None, description="The same as a MathML element, which browsers draw.")
    paper: str
    handles: Handles
    params_schema: dict[str, Any] = Field(description="JSON schema of ``params``.")


class SolverList(BaseModel):
    items: list[SolverInfo]
