"""Archives: a version of a model with all its files, as it is taken from one service to another."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, StringConstraints

from app.jobs.request_schemas import CopyOf, EditionOf
from app.models.schemas import MAX_NOTES, ModelAbout, Origin, RefitReport
from app.schemas import Name

ARCHIVE_FORMAT = 1
MEDIA_TYPE = "application/zip"
BYTES_TYPE = "application/octet-stream"

ExportFormat = Literal["archive", "onnx", "skops"]
Sha256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
_Text = Annotated[str, StringConstraints(max_length=1000)]
_Count = Annotated[int, Field(ge=0, lt=2**63)]
_MetricName = Annotated[str, StringConstraints(pattern="^[A-Za-z0-9_@.+-]{1,64}$")]
_PartName = Annotated[str, StringConstraints(pattern="^[a-z_]{1,16}$")]


class ArchivedFile(BaseModel):
    """One file of an archive."""

    model_config = ConfigDict(extra="forbid")

    sha256: Sha256
    size_bytes: _Count


class ArchivedVersion(BaseModel):
    """What is known of the version of an archive; as :class:`app.models.schemas.ModelVersion` has it."""

    model_config = ConfigDict(extra="forbid")

    origin: Origin
    dataset_sha256: Sha256
    hierarchy_sha256: Sha256 | None
    solver: str = Field(max_length=64)
    params: dict[str, Any]
    seed: _Count
    request: dict[str, Any]
    code_version: str = Field(max_length=32)
    n_classes: _Count
    n_features: _Count
    n_train: _Count
    epochs: int = Field(ge=0, lt=2**31)
    converged: bool
    primal: FiniteFloat | None
    dual: FiniteFloat | None
    gap: FiniteFloat | None
    violation: FiniteFloat | None
    seconds: FiniteFloat
    copy_of: CopyOf | None = None
    edition_of: EditionOf | None = None
    about: ModelAbout = ModelAbout()
    refit: RefitReport | None = None
    report: dict[_Text, FiniteFloat]
    metrics: dict[_PartName, dict[_MetricName, FiniteFloat]]
    tags: dict[Name, _Text]
    notes: str = Field(max_length=MAX_NOTES)
    sha256: Sha256 = Field(description="Of model/manifest.json, which names the hash of every array of the model.")
    features_sha256: Sha256 = Field(description="Of features/manifest.json.")


class ArchiveContents(BaseModel):
    """archive.json: the first member of an archive, which names all others."""

    model_config = ConfigDict(extra="forbid")

    format: Literal[1]
    version: ArchivedVersion
    files: dict[str, ArchivedFile] = Field(description="Path of every other member.", max_length=10_000)
