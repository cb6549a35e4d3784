"""The route of the audit log; there is none that changes it."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.api.access.auth import ADMIN
from app.api.common.parameters import Db, PageSize, PageToken
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.schemas.access.audit import AuditEntry
from app.schemas.common.moments import Moment
from app.schemas.common.names import NAME_PATTERN
from app.schemas.common.pages import Page
from app.services.access import audit

router = APIRouter(prefix=f"{V1}/audit", tags=["keys"], dependencies=[ADMIN])

_Named = Annotated[str | None, Query(pattern=NAME_PATTERN, description="Id or name.")]
_SINCE = Query(description="With a time zone: 2030-01-31T12:00:00Z.")


@router.get("", responses=responses(401, 403, 422))
def list_audit(
    session: Db,
    key: _Named = None,
    thing: _Named = None,
    since: Annotated[Moment | None, _SINCE] = None,
    until: Annotated[Moment | None, _SINCE] = None,
    page_size: PageSize = 100,
    page_token: PageToken = None,
) -> Page[AuditEntry]:
    """What was changed by whom, newest first: by one key, of one thing, in a time."""
    return audit.page(session, page_size, page_token, key=key, thing=thing, since=since, until=until)
