"""Routes for API keys."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from app.api.access.auth import ADMIN
from app.api.common.bodies import JsonBody
from app.api.common.parameters import Db, PageSize, PageToken, Ref
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.schemas.access.keys import Key, KeyRequest, NewKey
from app.schemas.common.pages import Page
from app.services.access import keys

router = APIRouter(prefix=f"{V1}/keys", tags=["keys"], dependencies=[ADMIN])

_key = JsonBody(KeyRequest)


@router.get("", responses=responses(401, 403, 422))
def list_keys(session: Db, page_size: PageSize = 100, page_token: PageToken = None) -> Page[Key]:
    """Keys, newest first, without their secrets."""
    return keys.page(session, page_size, page_token)


@router.post(
    "", status_code=201, openapi_extra=_key.schema, responses=responses(400, 401, 403, 409, 413, 415, 422, 507)
)
def create_key(session: Db, response: Response, body: Annotated[KeyRequest, Depends(_key)]) -> NewKey:
    """Make a key; this answer alone shows its secret, so a repeated request is refused by the key's name."""
    response.headers["Cache-Control"] = "no-store"
    return keys.create(session, body.name, body.role, body.expires_at, body.workspace)


@router.delete("/{ref}", status_code=204, responses=responses(401, 403, 404, 409, 422, 507))
def revoke_key(session: Db, request: Request, ref: Ref) -> None:
    """End a key's validity, by its name in one's own workspace: here at once, in other processes within a second."""
    keys.revoke(session, ref)
    request.app.state.keyring.forget()
