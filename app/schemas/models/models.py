"""Models, their versions and aliases."""

from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from app.schemas.common.names import Name
from app.schemas.jobs.compression import CopyOf


class Alias(BaseModel):
    """A moving name for a version; ``revision`` is its ETag."""

    name: str
    version: int
    revision: int


class AliasTarget(BaseModel):
    """The version that an alias shall name."""

    model_config = ConfigDict(extra="forbid")

    version: int = Field(ge=1, lt=2**31)


class Origin(BaseModel):
    """Where an imported version was trained: names and ids of that service."""

    model_config = ConfigDict(extra="forbid")

    model: Name
    version: int = Field(ge=1, lt=2**31)
    job: str = Field(max_length=32)
    created_at: AwareDatetime


class ModelVersion(BaseModel):
    """A trained model, and all that its numbers can be traced to."""

    id: str
    model: str
    version: int
    job: str
    point: int = Field(default=0, description="Place of its C in the job's path, from 0.")
    dataset: str | None = Field(description="Id; absent once the dataset was deleted.")
    dataset_sha256: str
    hierarchy: str | None = Field(
        default=None, description="Id; absent where there was none, and once the hierarchy was deleted."
    )
    hierarchy_sha256: str | None = Field(default=None, description="Of the label tree's nodes; absent without one.")
    solver: str
    params: dict[str, Any] = Field(description="All parameters, the defaults included.")
    seed: int
    request: dict[str, Any] = Field(description="The job's request as it was given.")
    code_version: str
    n_classes: int
    n_features: int
    n_train: int
    epochs: int
    converged: bool
    primal: float | None
    dual: float | None
    gap: float | None = Field(description="Relative duality gap of this very model.")
    violation: float | None
    seconds: float = Field(description="Training time without loading and testing; in a path, of this C alone.")
    sha256: str = Field(description="Of the artefact's manifest, which names the hash of every array.")
    size_bytes: int
    report: dict[str, float] = Field(default={}, description="What the method tells of its model; see its page.")
    metrics: dict[str, dict[str, float]] = Field(description="part (train, test) -> measure -> value.")
    levels: dict[str, list[dict[str, float]]] = Field(
        default={},
        description="part -> for each level of the label tree, that below the top first, measure -> value; absent "
        "without a hierarchy.",
    )
    aliases: list[str]
    origin: Origin | None = Field(default=None, description="Where it was trained, if it was imported from an archive.")
    copy_of: CopyOf | None = Field(
        default=None, description="Of a smaller copy: of which version, how, and what it was measured to lose."
    )
    tags: dict[str, str] = Field(default={}, description="Names and values that people have given it.")
    notes: str = Field(default="", description="What people have written about it.")
    revision: int = Field(default=1, description="Of tags and notes: their ETag.")
    created_at: AwareDatetime


class SelectionTrial(BaseModel):
    """One setting that was tried, and what it said of the rows held out."""

    solver: str
    params: dict[str, Any]
    measures: dict[str, float] = Field(
        description="On the rows held out; also seconds, epochs and rows of the training."
    )


class Member(BaseModel):
    """One of the machines that a model is pooled from."""

    solver: str
    params: dict[str, Any]
    coefficient: float = Field(description="What its scores are multiplied by.")
    gap: float | None = Field(description="Relative duality gap of this member, trained on all rows.")


class Selection(BaseModel):
    """How a model was chosen; empty lists of methods that do not choose."""

    trials: list[SelectionTrial] = Field(description="The best first, by the measure that was asked for.")
    members: list[Member]


class Model(BaseModel):
    """A name and its versions."""

    id: str
    name: str
    owner: str | None = Field(
        default=None, description="Name of the key that made it; it and administrators may delete it."
    )
    versions: list[int] = Field(description="Newest first.")
    aliases: list[Alias]
    created_at: AwareDatetime
    latest: ModelVersion | None = Field(
        description="The newest that is no smaller copy; it answers where neither version nor alias is named."
    )
