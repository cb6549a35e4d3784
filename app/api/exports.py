"""Routes that take versions of models from one service to another."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy.orm import Session
from starlette.responses import StreamingResponse

from app.api.access.auth import ADMIN, VIEWER
from app.api.common.parameters import INSTALLATION, Db, Number, Once, Ref, point_to
from app.api.common.paths import ARCHIVES, V1
from app.api.common.problems import responses
from app.api.datasets import uploads
from app.api.datasets.uploads import Check
from app.schemas.common.names import NAME_PATTERN
from app.schemas.exports import BYTES_TYPE, MEDIA_TYPE, ExportFormat
from app.schemas.models.models import ModelVersion
from app.services.common.idempotency import answered_before, fingerprint, once
from app.services.exports import archive_imports, archives
from app.services.exports.onnx_models import onnx_model
from app.services.exports.skops_models import skops_model
from app.services.models import models
from app.services.predictions.model_cache import load_version
from app.store import tables
from app.store.files import Upload

router = APIRouter(tags=["models"])

_BINARY = {"schema": {"type": "string", "format": "binary"}}


@router.get(
    f"{V1}/models/{{ref}}/versions/{{number}}/export",
    dependencies=[VIEWER],
    response_class=StreamingResponse,
    responses={
        200: {"content": dict.fromkeys((MEDIA_TYPE, BYTES_TYPE), _BINARY)},
        **responses(401, 404, 422),
    },
)
def export_version(
    session: Db,
    ref: Ref,
    number: Number,
    format: Annotated[
        ExportFormat,
        Query(
            description="archive: all of it, to be imported elsewhere; onnx and skops: a linear machine on given "
            "features, the latter as an estimator of scikit-learn."
        ),
    ] = "archive",
) -> Response:
    """A version with all its files: a zip of arrays that numpy reads, a model card, and the SHA-256 of each member."""
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
    responses=responses(400, 401, 403, 409, 413, 415, 422, 507),
)
async def import_version(
    request: Request,
    response: Response,
    token: Once,
    name: Annotated[
        str | None, Query(pattern=NAME_PATTERN, description="Of the model; by default that of the archive.")
    ] = None,
) -> ModelVersion:
    """Make a version of an archive; every hash is compared, and it answers with the bits that it answered with before.

    Arrays go to compiled loops of the one process that serves all workspaces, so this takes an administrator of the
    workspace `default`.
    """

    def keep(session: Session, upload: Upload, check: Check) -> tuple[ModelVersion, bool]:
        print_ = fingerprint("models", name or "", upload.sha256)

        before = answered_before(session, token, print_, archive_imports.get)
        if before is not None:
            return before, True
        # unpacked before the transaction, which keeps other writers waiting
        with archive_imports.unpacked(session, upload, check) as archive:

            def make() -> ModelVersion:
                return archive_imports.register(session, archive, name)

            return once(session, token, print_, tables.ModelVersion, make, archive_imports.get)

    found, replayed = await uploads.take(request, token, lambda session: None, keep)
    point_to(response, f"{V1}/models/{found.model}/versions/{found.version}", replayed)
    return found
