"""Hierarchies: uploading one, and its tree to fold and search."""

from fastapi import Request
from starlette.responses import Response

from app.api.auth import VIEWER
from app.api.parameters import Db, PageToken, Ref
from app.services import hierarchies
from app.web.rendering import Call, render
from app.web.routing import pages

router = pages()

PAGE_SIZE = 50


@router.get("/hierarchies", dependencies=[VIEWER])
def list_hierarchies(request: Request, session: Db, page_token: PageToken = None) -> Response:
    """All hierarchies, and the form to upload another."""
    page = hierarchies.page(session, PAGE_SIZE, page_token)
    call = Call(f"/hierarchies?page_size={PAGE_SIZE}", f"client.hierarchies.list({PAGE_SIZE})")
    return render(request, "hierarchies.html", page=page, call=call)


@router.get("/hierarchies/{ref}", dependencies=[VIEWER])
def show_hierarchy(request: Request, session: Db, ref: Ref) -> Response:
    """One hierarchy as a tree."""
    found = hierarchies.get(session, ref)
    call = Call(f"/hierarchies/{found.name}/nodes?parent=root", f"client.hierarchies.nodes({found.name!r}, 'root')")
    return render(request, "hierarchy.html", hierarchy=found, call=call)
