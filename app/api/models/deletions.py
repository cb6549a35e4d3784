"""Routes that delete versions of models, bring them back, and keep people's tags and notes."""

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Response

from app.api.access.auth import EDITOR, VIEWER
from app.api.common.bodies import JsonBody
from app.api.common.parameters import Db, DryRun, Number, Ref, revision
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.schemas.models.deletions import Deletion, Restored, Retention, RetentionRule, VersionPatch
from app.schemas.models.models import ModelVersion
from app.services.models import deletions, version_notes

router = APIRouter(prefix=f"{V1}/models", tags=["models"])

_patch, _rule = JsonBody(VersionPatch), JsonBody(RetentionRule)


@router.delete("/{ref}", dependencies=[EDITOR], responses=responses(401, 403, 404, 409, 422, 507))
def delete_model(session: Db, ref: Ref, dry_run: DryRun = False) -> Deletion:
    """Delete all versions of a model; for a time they can be restored.

    Refused while an alias names one of them or a job that is not over uses or makes one.
    """
    return deletions.delete_model(session, ref, dry_run)


@router.post("/{ref}/restore", dependencies=[EDITOR], responses=responses(401, 403, 404, 422, 507))
def restore_model(session: Db, ref: Ref) -> Restored:
    """Bring back the versions of a model that were deleted last, all those that went together."""
    return deletions.restore_model(session, ref)


@router.delete("/{ref}/versions/{number}", dependencies=[EDITOR], responses=responses(401, 403, 404, 409, 422, 507))
def delete_version(session: Db, ref: Ref, number: Number, dry_run: DryRun = False) -> Deletion:
    """Delete a version; for a time it can be restored, and its number is never given again.

    Refused while an alias names it or a job that is not over uses it. A model without versions is shown no more.
    """
    return deletions.delete_version(session, ref, number, dry_run)


@router.post("/{ref}/versions/{number}/restore", dependencies=[EDITOR], responses=responses(401, 403, 404, 422, 507))
def restore_version(session: Db, ref: Ref, number: Number) -> Restored:
    """Bring a deleted version back."""
    return deletions.restore_version(session, ref, number)


@router.patch(
    "/{ref}/versions/{number}",
    dependencies=[EDITOR],
    openapi_extra=_patch.schema,
    responses=responses(400, 401, 403, 404, 412, 413, 415, 422, 507),
)
def change_version(
    session: Db,
    response: Response,
    ref: Ref,
    number: Number,
    body: Annotated[VersionPatch, Depends(_patch)],
    if_match: Annotated[
        str | None, Header(description="The ETag of the version as it is; absent: whatever it is.")
    ] = None,
) -> ModelVersion:
    """Change the tags and notes of a version; all else about it stays as training left it."""
    changed = version_notes.change(session, ref, number, body, revision(if_match))
    response.headers["ETag"] = f'"{changed.revision}"'
    return changed


@router.get("/{ref}/retention", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_retention(session: Db, ref: Ref) -> Retention:
    """How many of a model's versions are kept, and which ones go by that now."""
    return deletions.retention(session, ref)


@router.put(
    "/{ref}/retention",
    dependencies=[EDITOR],
    openapi_extra=_rule.schema,
    responses=responses(400, 401, 403, 404, 413, 415, 422, 507),
)
def set_retention(
    session: Db, ref: Ref, body: Annotated[RetentionRule, Depends(_rule)], dry_run: DryRun = False
) -> Retention:
    """Keep so many of a model's newest versions, and whatever an alias names; the others are deleted by a worker."""
    return deletions.set_retention(session, ref, body.keep_last, dry_run)
