"""Schemas of models, versions, aliases and deletions."""

from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, computed_field

from app.display.shown import Shown
from app.jobs.request_schemas import CopyOf
from app.schemas import Name


class RefitReport(BaseModel):
    """The measured model of a version, and what the served one was trained on."""

    n_test: int = Field(description="Rows held out, which the measures are of.")
    n_measured: int = Field(description="Rows that the measured model was trained on.")
    n_served: int = Field(description="Rows that the served model was trained on.")
    reason: str | None = Field(
        default=None, description="Why the measured model is served itself; absent where it was trained on all rows."
    )
    sha256: str | None = Field(
        default=None, description="Of the measured model's manifest; absent where it is served itself."
    )
    arrays_sha256: str | None = Field(
        default=None,
        description="Of the hashes of all its arrays and those of its features: of the same bits the same.",
    )
    epochs: int = Field(description="Of the measured model.")
    converged: bool = Field(description="Whether the measured model reached its tolerance.")
    gap: float | None = Field(description="Relative duality gap of the measured model.")
    seconds: float = Field(description="Training time of the measured model.")

    @computed_field(description="The same in one sentence.")  # type: ignore[prop-decorator]
    @property
    def summary(self) -> str:
        if self.reason is not None:
            return (
                f"Measured on {self.n_test:,} rows, and served as measured, trained on the other "
                f"{self.n_measured:,}: {self.reason}."
            )
        return (
            f"Measured on {self.n_test:,} rows by the same recipe trained on the other {self.n_measured:,}; "
            f"served: trained on all {self.n_served:,}."
        )


class Alias(BaseModel):
    """A moving name for a version; ``revision`` is its ETag."""

    name: str
    version: int
    revision: int


class MovedAlias(Alias):
    """An alias that was pointed at a version."""

    unconverged: str | None = Field(
        default=None,
        description="Why the training of that version ended before its optimum; absent where it reached it.",
    )


class AliasTarget(BaseModel):
    """The version that an alias names from now on."""

    model_config = ConfigDict(extra="forbid")

    version: int = Field(ge=1, lt=2**31)


class Origin(BaseModel):
    """Where an imported version was trained: names and ids of that service."""

    model_config = ConfigDict(extra="forbid")

    model: Name
    version: int = Field(ge=1, lt=2**31)
    job: str = Field(max_length=32)
    created_at: AwareDatetime


class ModelVersion(Shown, BaseModel):
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
    report: dict[str, float] = Field(default={}, description="Figures of the method about its model; see its page.")
    metrics: dict[str, dict[str, float]] = Field(description="part (train, test) -> measure -> value.")
    levels: dict[str, list[dict[str, float]]] = Field(
        default={},
        description="part -> for each level of the label tree, that below the top first, measure -> value; absent "
        "without a hierarchy.",
    )
    unconverged: str | None = Field(
        default=None,
        description="Why the training ended before it reached its optimum; absent where it reached it, and of methods "
        "without a certificate.",
    )
    aliases: list[str]
    origin: Origin | None = Field(default=None, description="Where it was trained, if it was imported from an archive.")
    copy_of: CopyOf | None = Field(
        default=None, description="Of a smaller copy: of which version, how, and what it was measured to lose."
    )
    refit: RefitReport | None = Field(
        default=None,
        description="Where rows were held out by the request alone: the measured model, whose measures, thresholds and "
        "drift reference these are, and the served one, which is trained on all rows.",
    )
    tags: dict[str, str] = Field(default={}, description="Names and values that people have given it.")
    notes: str = Field(default="", description="What people have written about it.")
    revision: int = Field(default=1, description="Of tags and notes: their ETag.")
    created_at: AwareDatetime


FLAT = "Along a tree: trained on the rows' own labels, without the tree."


class SelectionTrial(BaseModel):
    """One setting that was tried, and what it said of the rows held out."""

    solver: str
    params: dict[str, Any]
    flat: bool = Field(default=False, description=FLAT)
    measures: dict[str, float] = Field(
        description="On the rows held out; also seconds, epochs and rows of the training."
    )


class LeftOut(BaseModel):
    """A setting that was not tried, or that failed, and why."""

    solver: str
    params: dict[str, Any]
    flat: bool = Field(default=False, description=FLAT)
    reason: str


class Member(BaseModel):
    """One of the machines that a model is pooled from."""

    solver: str
    params: dict[str, Any]
    flat: bool = Field(default=False, description=FLAT)
    coefficient: float = Field(description="What its scores are multiplied by.")
    gap: float | None = Field(description="Relative duality gap of this member, trained on all rows.")


class Selection(BaseModel):
    """How a model was chosen; empty lists of methods that do not choose."""

    trials: list[SelectionTrial] = Field(description="The best first, by the measure that was asked for.")
    members: list[Member]
    left_out: list[LeftOut] = Field(
        default=[], description="Settings that do not fit into the memory of the job, or that failed."
    )
    unknown_labels: dict[str, int] = Field(
        default={},
        description="Labels missing from the hierarchy, dropped or kept, with their numbers of rows.",
    )


class Model(Shown, BaseModel):
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


MAX_TAGS, MAX_NOTES = 100, 20_000


class HeldVersion(BaseModel):
    """A version that stays, and why."""

    version: int
    reason: str


class Deletion(BaseModel):
    """Versions that a request has deleted or, with ``dry_run``, would delete."""

    model: str
    dry_run: bool
    versions: list[int] = Field(description="Newest first.")
    held: list[HeldVersion] = Field(
        description="Versions among them that an alias or a job that is not over holds: while there is one, a request "
        "without `dry_run` is refused."
    )
    evaluations: int = Field(description="Evaluations that go with them.")
    size_bytes: int = Field(description="Of their files.")
    restorable_until: AwareDatetime = Field(description="Until then they can be brought back; then the files go.")


class Restored(BaseModel):
    """Versions that were brought back."""

    model: str
    versions: list[int] = Field(description="Newest first.")


class RetentionRule(BaseModel):
    """Which versions of a model stay; what an alias or a job that is not over holds always does."""

    model_config = ConfigDict(extra="forbid")

    keep_last: int | None = Field(ge=1, lt=2**31, description="Number of newest versions to keep; null keeps all.")


class Retention(BaseModel):
    """A model's rule, and what it does to the versions that are there now."""

    model: str
    keep_last: int | None
    dry_run: bool
    goes: list[int] = Field(description="Versions that a worker's next round deletes, within about ten minutes.")
    held: list[HeldVersion] = Field(description="Versions that would go by their age, and why they stay.")


class VersionPatch(BaseModel):
    """A change of what people say of a version; what is not named stays as it is."""

    model_config = ConfigDict(extra="forbid")

    tags: dict[Name, Annotated[str, StringConstraints(max_length=1000)] | None] | None = Field(
        default=None, max_length=MAX_TAGS, description="Names and values to set; a null takes the tag away."
    )
    notes: str | None = Field(default=None, max_length=MAX_NOTES, description="In place of those that are there.")


class DeletedVersion(BaseModel):
    """A version that can still be brought back."""

    model: str
    version: int
    size_bytes: int
    deleted_at: AwareDatetime
    restorable_until: AwareDatetime


class OrphanedFile(BaseModel):
    """A file or folder that no row names, as a crash or a deletion leaves it."""

    path: str = Field(description="Below the data folder's `files`.")
    size_bytes: int


class Storage(BaseModel):
    """What the next collection removes, or what this one has removed."""

    collected: bool = Field(description="False: nothing was removed yet.")
    versions: list[DeletedVersion] = Field(description="Deleted versions whose time is over.")
    restorable: list[DeletedVersion] = Field(description="Deleted versions that stay until their time is over.")
    orphans: list[OrphanedFile]
    size_bytes: int = Field(description="Of the versions and files that go.")
    free_bytes: int = Field(description="On the disk of the data folder.")
