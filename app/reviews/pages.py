"""Pages of review queues: all of them, and one whose rows people decide."""

from typing import Annotated, Literal

from fastapi import Query, Request
from starlette.responses import Response

from app.access.authentication import VIEWER
from app.datasets import service as datasets
from app.http.parameters import Db, PageToken, Ref
from app.reviews import service as reviews
from app.web.rendering import Call, render
from app.web.routing import pages

router = pages()

PAGE_SIZE = 20


@router.get("/reviews", dependencies=[VIEWER])
def list_reviews(request: Request, session: Db, page_token: PageToken = None) -> Response:
    """List all queues with their progress."""
    page = reviews.page(session, PAGE_SIZE, page_token)
    call = Call(f"/reviews?page_size={PAGE_SIZE}", f"client.reviews.list({PAGE_SIZE})")
    return render(request, "reviews.html", page=page, call=call)


@router.get("/reviews/{ref}", dependencies=[VIEWER])
def show_review(
    request: Request,
    session: Db,
    ref: Ref,
    state: Annotated[Literal["open", "skipped", "disputed"], Query()] = "open",
) -> Response:
    """Show one queue: a row to decide, and the progress."""
    review = reviews.get(session, ref)
    call = Call(f"/reviews/{review.name}", f"client.reviews.get({review.name!r})")
    names = datasets.names(session, [review.dataset])
    return render(request, "review.html", review=review, state=state, datasets=names, call=call)
