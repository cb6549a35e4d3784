"""Predictions: instances in, labels and scores out."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

_STRICT = ConfigDict(extra="forbid")


class TextInstance(BaseModel):
    model_config = _STRICT
    text: str


class NamedInstance(BaseModel):
    model_config = _STRICT
    features: dict[str, FiniteFloat]


class SparseInstance(BaseModel):
    model_config = _STRICT
    indices: list[Annotated[int, Field(ge=0, lt=2**31)]]
    values: list[FiniteFloat]


Instance = TextInstance | NamedInstance | SparseInstance | list[FiniteFloat]


class PredictRequest(BaseModel):
    """Up to ``max_instances`` instances, all of the kind that the model was trained on."""

    model_config = _STRICT

    instances: list[Instance] = Field(min_length=1)
    top_k: int = Field(default=1, ge=1, le=1000, description="How many labels to return for each instance.")


class ScoredLabel(BaseModel):
    label: str
    score: float = Field(description="Margin of the label: larger is surer; not a probability.")


class Prediction(BaseModel):
    """The answer for one instance."""

    label: str
    score: float
    top: list[ScoredLabel]
    path: list[str] | None = Field(default=None, description="From the root, for models with a hierarchy.")


class PredictResponse(BaseModel):
    """One prediction an instance, in order, and the version that made them."""

    model: str
    version: int
    gap: float | None
    predictions: list[Prediction]
