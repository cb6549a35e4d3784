"""Versions of models that go, come back, or stay: previews, retention, and what takes room on the disk."""

from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from app.schemas.common.names import Name

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

    keep_last: int | None = Field(ge=1, lt=2**31, description="So many of the newest; null: all of them.")


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
