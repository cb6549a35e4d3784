"""What came of training a version again."""

from pydantic import BaseModel, Field


class Reproduction(BaseModel):
    """Whether training from a version's lineage has made the same bits."""

    model: str
    version: int
    same: bool = Field(description="Every array of model and features has the same SHA-256.")
    arrays: int = Field(description="How many were compared.")
    differing: list[str] = Field(description="Arrays that differ, or that only one of both has.")
    code_version: str = Field(description="Of the program that trained the version.")
    code_version_now: str = Field(description="Of the program that trained it again; another one may differ in bits.")
    job: str
    reproduced_model: str | None = Field(description="Where the new version was kept, if it was.")
    reproduced_version: int | None
