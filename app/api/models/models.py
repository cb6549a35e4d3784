"""Routes for models, their versions and aliases."""

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Response

from app.api.access.auth import EDITOR, VIEWER
from app.api.common.bodies import JsonBody
from app.api.common.parameters import Db, Number, PageSize, PageToken, Ref, revision
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.schemas.common.names import NAME_PATTERN
from app.schemas.common.pages import Page
from app.schemas.models.models import Alias, AliasTarget, Model, ModelVersion, Selection
from app.services.models import aliases, models

router = APIRouter(prefix=f"{V1}/models", tags=["models"])

_target = JsonBody(AliasTarget)
_ALIAS = Path(pattern=NAME_PATTERN)


@router.get("", dependencies=[VIEWER], responses=responses(401, 422))
def list_models(session: Db, page_size: PageSize = 100, page_token: PageToken = None) -> Page[Model]:
    """Models, newest first."""
    return models.page(session, page_size, page_token)


@router.get("/{ref}", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_model(session: Db, ref: Ref) -> Model:
    """One model by id or name, with its latest version."""
    return models.get(session, ref)


@router.get("/{ref}/versions", dependencies=[VIEWER], responses=responses(401, 404, 422))
def list_versions(session: Db, ref: Ref, page_size: PageSize = 100, page_token: PageToken = None) -> Page[ModelVersion]:
    """Versions of a model, newest first."""
    return models.version_page(session, ref, page_size, page_token)


@router.get("/{ref}/versions/{number}", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_version(session: Db, response: Response, ref: Ref, number: Number) -> ModelVersion:
    """One version: where it came from, its metrics, and how near it is to the optimum."""
    found = models.version(session, ref, number)
    response.headers["ETag"] = f'"{found.revision}"'
    return found


@router.get("/{ref}/versions/{number}/selection", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_selection(session: Db, ref: Ref, number: Number) -> Selection:
    """How a version was chosen: every trial with its parameters and measures, and the members of the pool."""
    return models.selection(session, ref, number)


@router.put(
    "/{ref}/aliases/{alias}",
    dependencies=[EDITOR],
    openapi_extra=_target.schema,
    responses=responses(400, 401, 403, 404, 409, 412, 413, 415, 422, 507),
)
def set_alias(
    session: Db,
    response: Response,
    ref: Ref,
    alias: Annotated[str, _ALIAS],
    body: Annotated[AliasTarget, Depends(_target)],
    if_match: Annotated[str | None, Header(description="The ETag of the alias as it is; absent for a new one.")] = None,
) -> Alias:
    """Point an alias at a version: promote, or roll back.

    An alias that exists is moved only by a request that names its current ETag in `If-Match`; any other, and one
    without the header (or with `If-None-Match: *`), gets 412. `If-Match: *` moves it whatever it is.
    """
    moved = aliases.set_alias(session, ref, alias, body.version, _revision(if_match))
    response.headers["ETag"] = f'"{moved.revision}"'
    return moved


@router.delete(
    "/{ref}/aliases/{alias}", status_code=204, dependencies=[EDITOR], responses=responses(401, 403, 404, 412, 422, 507)
)
def delete_alias(
    session: Db,
    ref: Ref,
    alias: Annotated[str, _ALIAS],
    if_match: Annotated[
        str | None, Header(description="The ETag of the alias as it is; absent: whatever it is.")
    ] = None,
) -> None:
    """Remove an alias; its version stays."""
    aliases.delete_alias(session, ref, alias, revision(if_match))


def _revision(if_match: str | None) -> int | None:
    return 0 if if_match is None else revision(if_match)
