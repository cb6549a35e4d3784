"""The audit log: what was changed by whom."""

from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from app.api.access.auth import ADMIN
from app.api.common.parameters import Db, PageToken
from app.services.access import audit
from app.web.rendering import Call, render
from app.web.routing import pages

router = pages()

PAGE_SIZE = 100
_Part = Annotated[str, Query(max_length=128)]


@router.get("/audit", dependencies=[ADMIN])
def list_audit(
    request: Request, session: Db, key: _Part = "", thing: _Part = "", page_token: PageToken = None
) -> Response:
    """The entries, newest first; by one key and about one thing where these are named."""
    page = audit.page(session, PAGE_SIZE, page_token, key=key or None, thing=thing or None)
    named = {name: value for name, value in (("key", key), ("thing", thing)) if value}
    query = "".join(f"&{name}={value}" for name, value in named.items())
    python = "".join(f", {name}={value!r}" for name, value in named.items())
    call = Call(f"/audit?page_size={PAGE_SIZE}{query}", f"client.audit(page_size={PAGE_SIZE}{python})")
    return render(request, "audit.html", page=page, key=key, thing=thing, call=call)
