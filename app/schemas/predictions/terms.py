"""The features that count most for a class."""

from pydantic import BaseModel, Field


class WeightedTerm(BaseModel):
    """One feature and its weight."""

    feature: str | int = Field(description="Its name or term, or its index where features have no names.")
    weight: float = Field(description="What a unit of the feature adds to the class's score.")


class ClassTerms(BaseModel):
    """What speaks most for a class, and against it."""

    model: str
    version: int
    label: str
    lifting: list[WeightedTerm] = Field(description="The largest weight first.")
    lowering: list[WeightedTerm] = Field(description="The smallest weight first.")
    intercept: float
