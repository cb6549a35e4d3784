"""Smaller copies of versions: what may be asked for, and what a copy tells of itself."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from app.schemas.common.job_options import JobOptions
from app.schemas.common.names import Name
from app.schemas.evaluations import McNemar, Part

_Share = Annotated[FiniteFloat, Field(ge=0, le=1)]
_Count = Annotated[int, Field(ge=0, lt=2**63)]


class CompressRequest(JobOptions):
    """Make a smaller copy of a version, and measure what that costs on rows of a dataset."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["compress"]
    model: Name = Field(description="Id or name.")
    version: int | None = Field(
        default=None, ge=1, lt=2**31, description="By default the latest that is no copy itself."
    )
    alias: Name | None = Field(default=None, description="In place of a version: the one that it names now.")
    float16: bool = Field(default=False, description="Keep weights in half precision: 2 bytes each in place of 4.")
    prune_share: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        allow_inf_nan=False,
        description="Set so large a share of the weights that are not zero to zero, those of the least magnitude; of "
        "each array of weights by itself: a member of a pool, a shard.",
    )
    prune_below: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="Set weights of a lesser magnitude to zero."
    )
    dataset: Name | None = Field(
        default=None, description="Id or name: where the loss is measured. By default the dataset that it came from."
    )
    dataset_version: int | None = Field(
        default=None, ge=1, lt=2**31, description="By default the one that it was trained on, of another the newest."
    )
    part: Part | None = Field(
        default=None, description="Which rows; by default those held out from training, where there are such."
    )

    @model_validator(mode="after")
    def _one_way(self) -> "CompressRequest":
        if self.version is not None and self.alias is not None:
            raise ValueError("give a version or an alias, not both")
        if self.prune_share is not None and self.prune_below is not None:
            raise ValueError("give prune_share or prune_below, not both")
        if not self.float16 and self.prune_share is None and self.prune_below is None:
            raise ValueError("say how it shall be smaller: float16, prune_share or prune_below")
        return self


class CopyOf(BaseModel):
    """The version that a smaller copy was made of, how, and what the copy was measured to lose.

    Numbers and hashes are those of the service that made the copy.
    """

    model_config = ConfigDict(extra="forbid")

    version: int = Field(ge=1, lt=2**31)
    version_sha256: str = Field(pattern="^[0-9a-f]{64}$")
    float16: bool
    prune_share: _Share | None
    prune_below: FiniteFloat | None
    weights: _Count = Field(description="Weights of the source that are not zero.")
    pruned: _Count = Field(description="How many of them are zero in the copy.")
    gap: FiniteFloat | None = Field(
        description="Relative duality gap of the source: it certifies the source, and nothing of the copy."
    )
    size_bytes: _Count = Field(description="Files of the source.")
    memory_bytes_source: _Count = Field(description="Arrays of the source's model in memory.")
    memory_bytes: _Count = Field(description="Arrays of the copy's model in memory.")
    dataset_sha256: str = Field(pattern="^[0-9a-f]{64}$", description="Where the loss was measured.")
    part: Part
    n_rows: _Count
    agreement: _Share = Field(description="Share of the rows to which both answer first with the same label.")
    error_source: FiniteFloat = Field(description="Share of the rows that the source has wrong.")
    error: FiniteFloat = Field(description="Share of the rows that the copy has wrong.")
    loss_low: FiniteFloat = Field(
        description="Ends of the 95 % interval of error less error_source, by paired resampling."
    )
    loss_high: FiniteFloat
    mcnemar: McNemar = Field(description="McNemar's test; a is the source, b the copy.")
