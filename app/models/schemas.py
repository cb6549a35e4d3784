"""Schemas of models, versions, aliases and deletions."""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, computed_field

from app.display.shown import Shown
from app.jobs.request_schemas import CopyOf, EditionOf
from app.schemas import Name


class RefitReport(BaseModel):
    """The measured model of a version, and the training rows of the served one."""

    n_test: int = Field(description="Number of held-out rows, on which the measures are computed.")
    n_measured: int = Field(description="Number of training rows of the measured model.")
    n_served: int = Field(description="Number of training rows of the served model.")
    reason: str | None = Field(
        default=None,
        description="Reason why the measured model itself is served; absent if the served model was trained on all "
        "rows.",
    )
    sha256: str | None = Field(
        default=None, description="SHA-256 of the measured model's manifest; absent if that model itself is served."
    )
    arrays_sha256: str | None = Field(
        default=None,
        description="Of the hashes of all its arrays and those of its features: of the same bits the same.",
    )
    epochs: int = Field(description="Of the measured model.")
    converged: bool = Field(description="Whether the measured model reached its tolerance.")
    gap: float | None = Field(description="Relative duality gap of the measured model.")
    seconds: float = Field(description="Training time of the measured model, in seconds.")

    @computed_field(description="Summary in one sentence.")  # type: ignore[prop-decorator]
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
    """An alias that was moved to a version."""

    unconverged: str | None = Field(
        default=None,
        description="Reason why the training of that version ended before the optimum; absent if it reached the "
        "optimum.",
    )


class AliasTarget(BaseModel):
    """The version that an alias should name."""

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
    """A trained model with its lineage and its measures."""

    id: str
    model: str
    version: int
    job: str
    point: int = Field(default=0, description="Position of its C in the job's path, from 0.")
    dataset: str | None = Field(description="Id of the dataset; absent if it was deleted.")
    dataset_sha256: str
    hierarchy: str | None = Field(
        default=None, description="Id of the hierarchy; absent if there was none or it was deleted."
    )
    hierarchy_sha256: str | None = Field(
        default=None, description="SHA-256 of the label tree's nodes; absent without a tree."
    )
    solver: str
    params: dict[str, Any] = Field(description="All parameters, including defaults.")
    seed: int
    request: dict[str, Any] = Field(description="The job's request, unchanged.")
    code_version: str
    n_classes: int
    n_features: int
    n_train: int
    epochs: int
    converged: bool
    primal: float | None
    dual: float | None
    gap: float | None = Field(description="Relative duality gap of this model.")
    violation: float | None
    seconds: float = Field(description="Training time without loading and testing; in a path, for this C only.")
    sha256: str = Field(description="SHA-256 of the artefact's manifest, which has the hash of every array.")
    size_bytes: int
    report: dict[str, float] = Field(
        default={}, description="Figures that the method reports about its model; see the method's page."
    )
    metrics: dict[str, dict[str, float]] = Field(description="part (train, test) -> measure -> value.")
    levels: dict[str, list[dict[str, float]]] = Field(
        default={},
        description="part -> for each level of the label tree, starting just below the top, measure -> value; "
        "absent without a hierarchy.",
    )
    unconverged: str | None = Field(
        default=None,
        description="Reason why the training ended before the optimum; absent if it reached the optimum, and for "
        "methods without a certificate.",
    )
    warning: str | None = Field(
        default=None,
        description="That the model learnt nothing from the features, and what to check; absent if it did.",
    )
    aliases: list[str]
    origin: Origin | None = Field(
        default=None, description="Where the version was trained, if it was imported from an archive."
    )
    copy_of: CopyOf | None = Field(
        default=None, description="For a smaller copy: its source version, how it was made, and its measured loss."
    )
    edition_of: EditionOf | None = Field(
        default=None,
        description="For a version that adopted an edition of its vocabulary without training: its source version, the "
        "concepts that changed, and how the answers compare.",
    )
    refit: RefitReport | None = Field(
        default=None,
        description="If only the request held rows out: the measured model, to which these measures, thresholds and "
        "drift reference belong, and the served model, which is trained on all rows.",
    )
    tags: dict[str, str] = Field(default={}, description="Tags set by users, by name.")
    notes: str = Field(default="", description="Notes written by users.")
    revision: int = Field(default=1, description="ETag of the tags and notes.")
    created_at: AwareDatetime


FLAT = "Along a tree: trained on the rows' own labels, without the tree."
SKETCH = (
    "Trained on some of the rows or labels only, to choose what is tried on all; other trials do not compare with it."
)


MAX_TAGS, MAX_NOTES = 100, 20_000


class SelectionTrial(BaseModel):
    """One setting that was tried, with its measures on the held-out rows."""

    solver: str
    params: dict[str, Any]
    flat: bool = Field(default=False, description=FLAT)
    sketch: Literal["rows", "labels"] | None = Field(default=None, description=SKETCH)
    measures: dict[str, float] = Field(
        description="Measures on the held-out rows; also seconds, epochs and rows of the training."
    )


class LeftOut(BaseModel):
    """A setting that was not tried or failed, with the reason."""

    solver: str
    params: dict[str, Any]
    flat: bool = Field(default=False, description=FLAT)
    sketch: Literal["rows", "labels"] | None = Field(default=None, description=SKETCH)
    reason: str


class Member(BaseModel):
    """One of the machines that a model is pooled from."""

    solver: str
    params: dict[str, Any]
    flat: bool = Field(default=False, description=FLAT)
    coefficient: float = Field(description="Factor of its scores.")
    gap: float | None = Field(description="Relative duality gap of this member, trained on all rows.")


class PathModel(BaseModel):
    """A solution along a path over all C."""

    C: float
    primal: float = Field(description="Objective.")
    dual: float = Field(description="Lower bound of the optimum.")
    loss: float = Field(description="Mean loss of the rows that the path was trained on.")
    epochs: int


class ChosenC(BaseModel):
    """The C of a path with the fewest errors on the held-out rows, the smallest of them."""

    C: float
    errors: int


class PathOverC(BaseModel):
    """All values of C of a range: few solutions, what is certified between them, and errors on held-out rows."""

    eps: float = Field(description="The requested relative duality gap.")
    largest_gap: float = Field(description="The largest certified gap of the mixtures of two solutions, at any C.")
    models: list[PathModel] = Field(description="The solutions, ascending in C.")
    gaps: list[float] = Field(description="The largest certified gap between each two solutions.")
    edges: list[float] = Field(description="Edges of the cells of C, ascending.")
    errors: list[int] = Field(description="Errors on the held-out rows of the model at each edge.")
    least_errors: list[int] = Field(description="Errors that the exact optimum of every C of a cell makes at least.")
    most_errors: list[int] = Field(description="Errors that the exact optimum of every C of a cell makes at most.")
    n_held_out: int = Field(description="Number of held-out rows.")
    bound: int = Field(description="No C of the range has an optimum with fewer errors on the held-out rows.")
    excluded: float = Field(
        description="Share of the range of log C whose optima have no fewer errors than the chosen model."
    )
    chosen: ChosenC


class Selection(BaseModel):
    """How a model was selected; the lists are empty for methods that do not select."""

    trials: list[SelectionTrial] = Field(description="Tried settings, the best first by the requested measure.")
    members: list[Member]
    left_out: list[LeftOut] = Field(default=[], description="Settings that exceed the job's memory or failed.")
    path: PathOverC | None = Field(default=None, description="The path of a training with `every_c`.")
    unknown_labels: dict[str, int] = Field(
        default={},
        description="Labels missing from the hierarchy, dropped or kept, with their numbers of rows.",
    )


class ModelAbout(BaseModel):
    """What people say about a model, for its page and its model cards."""

    model_config = ConfigDict(extra="forbid")

    license: Annotated[str, Field(max_length=100)] | None = Field(
        default=None, description="SPDX identifier such as CC-BY-4.0, or a name."
    )
    languages: list[Annotated[str, Field(pattern="^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$", max_length=35)]] | None = Field(
        default=None, max_length=50, description="Language tags such as fi and sv-FI."
    )
    intended_use: Annotated[str, Field(max_length=MAX_NOTES)] | None = Field(
        default=None, description="Who should use the model, and for what."
    )
    limitations: Annotated[str, Field(max_length=MAX_NOTES)] | None = Field(
        default=None, description="What the model should not be used for, and where it is known to be wrong."
    )
    contact: Annotated[str, Field(max_length=300)] | None = Field(default=None, description="Whom to ask.")

    @property
    def stored(self) -> dict[str, Any] | None:
        """The fields that say something; None if none does."""
        return {name: value for name, value in self.model_dump(mode="json").items() if value} or None


class Model(Shown, BaseModel):
    """A name and its versions."""

    id: str
    name: str
    owner: str | None = Field(
        default=None, description="Name of the key that created it; only that key and administrators may delete it."
    )
    about: ModelAbout = Field(default=ModelAbout(), description="What people say about it.")
    versions: list[int] = Field(description="Newest first.")
    aliases: list[Alias]
    created_at: AwareDatetime
    latest: ModelVersion | None = Field(
        description="The newest version that is not a smaller copy. It is used if a request names neither a version "
        "nor an alias."
    )


class HeldVersion(BaseModel):
    """A version that is kept, with the reason."""

    version: int
    reason: str


class Deletion(BaseModel):
    """Versions that a request has deleted or, with ``dry_run``, would delete."""

    model: str
    dry_run: bool
    versions: list[int] = Field(description="Newest first.")
    held: list[HeldVersion] = Field(
        description="Versions among them that are in use by an alias or an unfinished job. If there are any, a "
        "request without `dry_run` is rejected."
    )
    evaluations: int = Field(description="Evaluations that are deleted with them.")
    size_bytes: int = Field(description="Size of their files.")
    restorable_until: AwareDatetime = Field(
        description="Time until which they can be restored; after that, the files are deleted."
    )


class Restored(BaseModel):
    """Versions that were restored."""

    model: str
    versions: list[int] = Field(description="Newest first.")


class RetentionRule(BaseModel):
    """Which versions of a model to keep; versions in use by an alias or an unfinished job are always kept."""

    model_config = ConfigDict(extra="forbid")

    keep_last: int | None = Field(ge=1, lt=2**31, description="Number of newest versions to keep; null keeps all.")


class Retention(BaseModel):
    """A model's retention rule, and its effect on the current versions."""

    model: str
    keep_last: int | None
    dry_run: bool
    goes: list[int] = Field(description="Versions that a worker deletes in its next round, within about ten minutes.")
    held: list[HeldVersion] = Field(
        description="Versions that are old enough to be deleted but are kept, with the reason."
    )


class VersionPatch(BaseModel):
    """A change of a version's tags or notes; omitted fields are unchanged."""

    model_config = ConfigDict(extra="forbid")

    tags: dict[Name, Annotated[str, StringConstraints(max_length=1000)] | None] | None = Field(
        default=None, max_length=MAX_TAGS, description="Names and values to set; null removes the tag."
    )
    notes: str | None = Field(
        default=None, max_length=MAX_NOTES, description="New notes, which replace the existing ones."
    )


class DeletedVersion(BaseModel):
    """A version that can still be restored."""

    model: str
    version: int
    size_bytes: int
    deleted_at: AwareDatetime
    restorable_until: AwareDatetime


class OrphanedFile(BaseModel):
    """A file or folder that no row in the database refers to, for example after a crash or a deletion."""

    path: str = Field(description="Path below `files` in the data folder.")
    size_bytes: int


class Storage(BaseModel):
    """What the next collection would remove, or what this one removed."""

    collected: bool = Field(description="Whether the files were removed; false for a preview.")
    versions: list[DeletedVersion] = Field(description="Deleted versions whose restore period has ended.")
    restorable: list[DeletedVersion] = Field(description="Deleted versions that can still be restored.")
    orphans: list[OrphanedFile]
    size_bytes: int = Field(description="Size of the versions and files to remove.")
    free_bytes: int = Field(description="Free bytes on the disk of the data folder.")
