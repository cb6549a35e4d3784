"""The parameters that all boosting methods share."""

from typing import Annotated, Any, Literal

from pydantic import Field

from solvers.core.base import Params


class BoostingParams(Params):
    """What all boosting methods have in common."""

    max_epochs: int = Field(default=500, ge=1, le=10**6, description="Rounds at most.")
    bins: Literal["exact"] | Annotated[int, Field(ge=2, le=65536)] = Field(
        default=255,
        description="Bins that the values of a feature are cut into, at most; exact cuts between any two of them.",
    )
    depth: int = Field(
        default=1,
        ge=1,
        le=6,
        description="Questions that a weak learner asks one after the other: 1 are stumps, more are trees, grown "
        "greedily.",
    )
    weak_learner: str = Field(
        default="tree",
        max_length=100,
        description="tree: stumps or trees; or another method, whose binary machines are then the weak learners.",
    )
    weak_params: dict[str, Any] = Field(default={}, description="Parameters of that other method.")
    bag: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Share of the rows, drawn anew every round, among which weak learners are sought; the weights of "
        "what is found always follow from all rows.",
    )
    validation: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Share of each class's rows that is held out, by the seed, to watch the error; 0: none.",
    )
    patience: int = Field(
        default=50,
        ge=1,
        description="Stop when the error on the held out rows has not fallen for so many rounds; the model is then "
        "that of the best round.",
    )
    memory_mb: int | None = Field(
        default=None,
        ge=1,
        description="Refuse problems that need more megabytes; by default, more than the machine has.",
    )
