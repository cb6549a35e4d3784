"""Pages of hierarchies: the upload form, and the tree to browse and search."""

from typing import Any

from fastapi import Request
from starlette.responses import Response

from app.access.authentication import VIEWER
from app.datasets import service as datasets
from app.hierarchies import service as hierarchies
from app.hierarchies.formats import ENDINGS, FORMATS, formats_of
from app.http.parameters import Db, PageToken, Ref
from app.web.rendering import Call, render
from app.web.routing import pages

router = pages()

PAGE_SIZE, MOST_OFFERED = 50, 1000


@router.get("/hierarchies", dependencies=[VIEWER])
def list_hierarchies(request: Request, session: Db, page_token: PageToken = None) -> Response:
    """All hierarchies, with the upload form."""
    page = hierarchies.page(session, PAGE_SIZE, page_token)
    call = Call(f"/hierarchies?page_size={PAGE_SIZE}", f"client.hierarchies.list({PAGE_SIZE})")
    titles = [(each.name, each.title) for each in FORMATS.values()]
    extensions = {ending.removeprefix("."): name for ending, name in ENDINGS.items()}
    form: dict[str, Any] = {"formats": titles, "extensions": extensions, "formats_of": formats_of}
    return render(request, "hierarchies.html", page=page, call=call, **form)


@router.get("/hierarchies/{ref}", dependencies=[VIEWER])
def show_hierarchy(request: Request, session: Db, ref: Ref) -> Response:
    """One hierarchy as a tree."""
    found = hierarchies.get(session, ref)
    call = Call(f"/hierarchies/{found.name}/nodes?parent=root", f"client.hierarchies.nodes({found.name!r}, 'root')")
    others = [each for each in hierarchies.page(session, MOST_OFFERED).items if each.id != found.id]
    counted = [each for each in datasets.page(session, MOST_OFFERED).items if each.state == "ready"]
    return render(request, "hierarchy.html", hierarchy=found, others=others, datasets=counted, call=call)
