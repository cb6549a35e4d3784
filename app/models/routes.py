"""Routes of models, versions, aliases and deletions."""

from typing import Annotated

from fastapi import APIRouter, Header, Path, Response

from app.access.authentication import EDITOR, VIEWER
from app.http.bodies import Body
from app.http.parameters import V1, Db, DryRun, Number, PageSize, PageToken, Ref, revision
from app.http.problems import responses
from app.models import aliases, deletions
from app.models import service as models
from app.models.schemas import (
    AliasTarget,
    Deletion,
    Model,
    ModelAbout,
    ModelVersion,
    MovedAlias,
    Restored,
    Retention,
    RetentionRule,
    Selection,
    VersionPatch,
)
from app.schemas import NAME_PATTERN, Page

router = APIRouter(prefix=f"{V1}/models", tags=["models"])

_ALIAS = Path(pattern=NAME_PATTERN)


@router.get("", dependencies=[VIEWER])
def list_models(session: Db, page_size: PageSize = 100, page_token: PageToken = None) -> Page[Model]:
    """List models, newest first."""
    return models.page(session, page_size, page_token)


@router.get("/{ref}", dependencies=[VIEWER])
def get_model(session: Db, ref: Ref) -> Model:
    """Get a model by id or name, with its latest version."""
    return models.get(session, ref)


@router.get("/{ref}/versions", dependencies=[VIEWER])
def list_versions(session: Db, ref: Ref, page_size: PageSize = 100, page_token: PageToken = None) -> Page[ModelVersion]:
    """List versions of a model, newest first."""
    return models.version_page(session, ref, page_size, page_token)


@router.get("/{ref}/versions/{number}", dependencies=[VIEWER])
def get_version(session: Db, response: Response, ref: Ref, number: Number) -> ModelVersion:
    """Get a version with its origin, metrics and duality gap."""
    found = models.version(session, ref, number)
    response.headers["ETag"] = f'"{found.revision}"'
    return found


@router.get("/{ref}/versions/{number}/selection", dependencies=[VIEWER])
def get_selection(session: Db, ref: Ref, number: Number) -> Selection:
    """Get the model selection of a version: all trials with parameters and measures, and the members of the pool."""
    return models.selection(session, ref, number)


@router.put("/{ref}/aliases/{alias}", dependencies=[EDITOR], responses=responses(409, 412))
def set_alias(
    session: Db,
    response: Response,
    ref: Ref,
    alias: Annotated[str, _ALIAS],
    body: Body[AliasTarget],
    if_match: Annotated[str | None, Header(description="Current ETag of the alias; absent for a new alias.")] = None,
) -> MovedAlias:
    """Set an alias to a version: promote or roll back.

    An existing alias moves only if `If-Match` has its current ETag. A request with another ETag, without the header or
    with `If-None-Match: *` gets 412. `If-Match: *` moves the alias unconditionally.
    """
    moved = aliases.set_alias(session, ref, alias, body.version, _revision(if_match))
    response.headers["ETag"] = f'"{moved.revision}"'
    return moved


@router.delete("/{ref}/aliases/{alias}", status_code=204, dependencies=[EDITOR], responses=responses(412))
def delete_alias(
    session: Db,
    ref: Ref,
    alias: Annotated[str, _ALIAS],
    if_match: Annotated[
        str | None, Header(description="Current ETag of the alias; if absent, the alias is removed unconditionally.")
    ] = None,
) -> None:
    """Remove an alias; the version remains."""
    aliases.delete_alias(session, ref, alias, revision(if_match))


def _revision(if_match: str | None) -> int | None:
    return 0 if if_match is None else revision(if_match)


deletions_router = APIRouter(prefix=f"{V1}/models", tags=["models"])


@deletions_router.delete("/{ref}", dependencies=[EDITOR], responses=responses(409))
def delete_model(session: Db, ref: Ref, dry_run: DryRun = False) -> Deletion:
    """Delete all versions of a model; they can be restored for some time.

    Rejected while an alias names one of them, or an unfinished job uses or creates one.
    """
    return deletions.delete_model(session, ref, dry_run)


@deletions_router.patch("/{ref}", dependencies=[EDITOR])
def describe_model(session: Db, ref: Ref, body: Body[ModelAbout]) -> Model:
    """Say what a model is for: license, languages, intended use, limitations, contact. Its model cards show them.

    Omitted fields are unchanged; null removes a field.
    """
    return models.describe(session, ref, body)


@deletions_router.post("/{ref}/restore", dependencies=[EDITOR])
def restore_model(session: Db, ref: Ref) -> Restored:
    """Restore the versions of a model that the latest deletion removed."""
    return deletions.restore_model(session, ref)


@deletions_router.delete("/{ref}/versions/{number}", dependencies=[EDITOR], responses=responses(409))
def delete_version(session: Db, ref: Ref, number: Number, dry_run: DryRun = False) -> Deletion:
    """Delete a version; it can be restored for some time, and its number is never reused.

    Rejected while an alias names it or an unfinished job uses it. A model without versions is no longer listed.
    """
    return deletions.delete_version(session, ref, number, dry_run)


@deletions_router.post("/{ref}/versions/{number}/restore", dependencies=[EDITOR])
def restore_version(session: Db, ref: Ref, number: Number) -> Restored:
    """Restore a deleted version."""
    return deletions.restore_version(session, ref, number)


@deletions_router.patch("/{ref}/versions/{number}", dependencies=[EDITOR], responses=responses(412))
def change_version(
    session: Db,
    response: Response,
    ref: Ref,
    number: Number,
    body: Body[VersionPatch],
    if_match: Annotated[
        str | None,
        Header(description="Current ETag of the version; if absent, the version is changed unconditionally."),
    ] = None,
) -> ModelVersion:
    """Change the tags and notes of a version; nothing else can be changed."""
    changed = models.change_version(session, ref, number, body, revision(if_match))
    response.headers["ETag"] = f'"{changed.revision}"'
    return changed


@deletions_router.get("/{ref}/retention", dependencies=[VIEWER])
def get_retention(session: Db, ref: Ref) -> Retention:
    """Get the retention rule of a model and the versions that it deletes now."""
    return deletions.retention(session, ref)


@deletions_router.put("/{ref}/retention", dependencies=[EDITOR])
def set_retention(session: Db, ref: Ref, body: Body[RetentionRule], dry_run: DryRun = False) -> Retention:
    """Keep this many of the newest versions, and all versions with an alias; a worker deletes the others."""
    return deletions.set_retention(session, ref, body.keep_last, dry_run)
