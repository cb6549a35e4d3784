"""Routes that take versions of models from one service to another."""

from contextlib import nullcontext
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from starlette.responses import StreamingResponse

from app.access.authentication import ADMIN, VIEWER
from app.datasets import upload_routes as uploads
from app.datasets.upload_routes import Received, Replay
from app.exports import archive_imports, archives
from app.exports.flat_machines import skops_model
from app.exports.onnx_models import onnx_model
from app.exports.schemas import BYTES_TYPE, MEDIA_TYPE, ExportFormat
from app.http.parameters import ARCHIVES, INSTALLATION, V1, Db, Number, Once, Ref, point_to
from app.http.problems import responses
from app.models import service as models
from app.models.schemas import ModelVersion
from app.predictions.model_cache import load_version
from app.schemas import NAME_PATTERN
from app.store import tables
from app.store.idempotency import fingerprint, idempotent

router = APIRouter(tags=["models"])

_BINARY = {"schema": {"type": "string", "format": "binary"}}


def _name(
    name: Annotated[
        str | None, Query(pattern=NAME_PATTERN, description="Name of the model. Default: the name in the archive.")
    ] = None,
) -> str | None:
    return name


@router.get(
    f"{V1}/models/{{ref}}/versions/{{number}}/export",
    dependencies=[VIEWER],
    response_class=StreamingResponse,
    responses={
        200: {"content": dict.fromkeys((MEDIA_TYPE, BYTES_TYPE), _BINARY)},
    },
)
def export_version(
    session: Db,
    ref: Ref,
    number: Number,
    format: Annotated[
        ExportFormat,
        Query(
            description="archive: the whole version, for import elsewhere. onnx and skops: a linear machine on given "
            "features; skops gives a scikit-learn estimator."
        ),
    ] = "archive",
) -> Response:
    """Export a version: a zip of arrays that numpy reads, a model card, and the SHA-256 of each member."""
    if format != "archive":
        loaded = load_version(session, models.version(session, ref, number))
        headers = {"Content-Disposition": f'attachment; filename="{loaded.version.model}-{number}.{format}"'}
        if format == "onnx":
            content = onnx_model(loaded.version, loaded.model, loaded.features)
        else:
            content = skops_model(loaded.model, loaded.features)
        return Response(content, media_type=BYTES_TYPE, headers=headers)
    archive = archives.make(session, ref, number)
    headers = {"Content-Disposition": f'attachment; filename="{archive.name}"'}
    return StreamingResponse(archive.blocks(), media_type=MEDIA_TYPE, headers=headers)


@router.post(
    ARCHIVES,
    status_code=201,
    dependencies=[ADMIN, INSTALLATION],
    openapi_extra=uploads.SCHEMA,
    responses=responses(409, 413, 415),
)
def import_version(
    session: Db,
    response: Response,
    token: Once,
    replay: Replay,
    name: Annotated[str | None, Depends(_name)],
    file: Annotated[Received, uploads.received_after(_name)],
) -> ModelVersion:
    """Import a version from an archive; every hash is checked, and predictions are bit-identical.

    The arrays are passed to compiled loops in the process that serves all workspaces. This therefore requires an
    administrator of the workspace `default`.
    """
    print_ = fingerprint("models", name or "", file.upload.sha256)
    # unpacked before the transaction, which keeps other writers waiting
    unpacked = nullcontext() if replay else archive_imports.unpacked(session, file.upload, file.require_client)
    with unpacked as archive, idempotent(session, token, print_, tables.ModelVersion) as before:
        if before or archive is None:
            found = archive_imports.get(session, before or "")
        else:
            found = archive_imports.register(session, archive, name)
    point_to(response, f"{V1}/models/{found.model}/versions/{found.version}", before)
    return found
