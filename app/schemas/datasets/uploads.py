"""Files that come in pieces."""

from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

Sha256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class NewUpload(BaseModel):
    """A file that is to be sent in pieces."""

    model_config = ConfigDict(extra="forbid")

    size_bytes: int = Field(gt=0, lt=2**50, description="Of the whole file.")


class PartialUpload(BaseModel):
    """A file of which some bytes have come."""

    id: str
    size_bytes: int = Field(description="Of the whole file.")
    offset: int = Field(description="Bytes that have come; the next piece begins there.")
    max_piece_bytes: int = Field(description="The largest piece that is taken.")
    expires_at: AwareDatetime = Field(description="When it is forgotten, unless more comes.")


class FromUpload(BaseModel):
    """In place of a body."""

    upload: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{32}$",
        description="The file came in pieces, as POST /uploads began it; the request then has no body.",
    )
    sha256: Sha256 | None = Field(
        default=None, description="Of the file, which is refused where it is another: what came is not what was sent."
    )
