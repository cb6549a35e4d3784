"""What changed between two editions of a vocabulary."""

from typing import Literal

from pydantic import BaseModel, Field

Change = Literal["appeared", "went", "moved", "renamed", "deprecated"]


class LabelChange(BaseModel):
    """One thing that is different for one label."""

    change: Change
    label: str = Field(description="As the later edition calls it; of a label that went, as the earlier one did.")
    names: dict[str, str] = Field(default={}, description="The preferred name by language, in the edition of `label`.")
    names_before: dict[str, str] | None = Field(default=None, description="Of a label that was renamed.")
    parent: str | None = Field(
        default=None,
        description="Where it appeared, or moved to; absent below the top.",
    )
    parent_before: str | None = Field(
        default=None, description="Where it was, of a label that moved or went; absent below the top."
    )
    replaced_by: list[str] = Field(
        default=[], description="Of a label that went or was deprecated: what the later edition names in its place."
    )


class Changes(BaseModel):
    """The changes from ``offset`` on, by kind: appeared, went, moved, renamed, deprecated."""

    counts: dict[Change, int] = Field(description="Changes of each kind, whichever were asked for.")
    n_same: int = Field(description="Labels of both editions that are in no change.")
    changes: list[LabelChange]
