"""Routes for the room that files take."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.api.access.auth import ADMIN
from app.api.common.parameters import Everything
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.schemas.models.deletions import Storage
from app.services.operation import storage
from app.store.files import files

router = APIRouter(prefix=f"{V1}/storage", tags=["operation"], dependencies=[ADMIN])


@router.get("", responses=responses(401, 403, 422))
def get_storage(session: Everything) -> Storage:
    """What takes room and goes with the next collection: deleted versions, and files that nothing names."""
    return storage.report(session, files())


@router.post("/collect", responses=responses(401, 403, 422, 507))
def collect_storage(
    session: Everything,
    deleted: Annotated[
        bool, Query(description="Also deleted versions that could still be restored; then they cannot any more.")
    ] = False,
) -> Storage:
    """Remove now what `GET /storage` tells; workers do so every ten minutes."""
    return storage.collect(session, files(), deleted)
