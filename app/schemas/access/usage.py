"""What a workspace has, and may have."""

from pydantic import BaseModel, Field


class Usage(BaseModel):
    workspace: str
    jobs: int = Field(description="Jobs that are not over.")
    max_jobs: int | None = Field(description="Null: any number.")
    stored_bytes: int = Field(description="Of uploaded files, and of versions of models.")
    max_stored_bytes: int | None
    requests_per_second: float | None = Field(description="Of one key, in the mean, in each API process.")
