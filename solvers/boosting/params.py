"""The parameters that all boosting methods share."""

from typing import Annotated, Any, Literal

from pydantic import Field

from solvers.core.base import Params


class BoostingParams(Params):
    """What all boosting methods have in common."""

    max_epochs: int = Field(default=500, ge=1, le=10**6, description="Maximum number of rounds.")
    bins: Literal["exact"] | Annotated[int, Field(ge=2, le=65536)] = Field(
        default=255,
        description="Maximum number of bins per feature; exact allows a cut between any two distinct values.",
    )
    depth: int = Field(
        default=1,
        ge=1,
        le=6,
        description="Depth of a weak learner: 1 for stumps; larger values grow trees greedily.",
    )
    weak_learner: str = Field(
        default="tree",
        max_length=100,
        description="Weak learner: tree for stumps and trees, or the name of another method, which then trains "
        "binary machines.",
    )
    weak_params: dict[str, Any] = Field(default={}, description="Parameters of the method named by weak_learner.")
    bag: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Share of the rows in which each round looks for weak learners, drawn again every round. "
        "All rows determine the weights of the learners found.",
    )
    validation: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Share of each class's rows that is held out, by the seed, to measure the error; 0 holds out none.",
    )
    patience: int = Field(
        default=50,
        ge=1,
        description="Stop when the error on held-out rows has not fallen for this many rounds; the model is "
        "then that of the best round.",
    )
    memory_mb: int | None = Field(
        default=None,
        ge=1,
        description="Refuse problems that need more than this many megabytes; the default is the machine's memory.",
    )
