"""API keys: who may do what."""

from fastapi import Request
from starlette.responses import Response

from app.api.access.auth import ADMIN
from app.api.common.parameters import Db, PageToken
from app.services.access import keys
from app.web.rendering import Call, render
from app.web.routing import pages

router = pages()

PAGE_SIZE = 100


@router.get("/keys", dependencies=[ADMIN])
def list_keys(request: Request, session: Db, page_token: PageToken = None) -> Response:
    """All keys, and the form to make another."""
    page = keys.page(session, PAGE_SIZE, page_token)
    return render(request, "keys.html", page=page, call=Call("/keys", "client.keys.list()"))
