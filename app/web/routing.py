"""What pages have that the API's routes have not: errors are pages, too, and who has not signed in is asked to."""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app.access.authentication import authorize
from app.errors import InvalidInput, NotFound, PolymarginError, Unauthenticated
from app.http import problems
from app.http.parameters import V1
from app.web.rendering import render


class Page(APIRoute):
    """A route that answers with a page, whatever happens."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def handler(request: Request) -> Response:
            try:
                return await answer(request)
            except Unauthenticated:
                return _sign_in(request)
            except RequestValidationError:
                return _failure(request, InvalidInput("The address of this page is not valid."))
            except PolymarginError as error:
                return _failure(request, error)

        return handler


def install(app: FastAPI) -> None:
    """Let browsers get a page for an unknown address; programs get a problem document."""

    async def answer(request: Request, error: Exception) -> Response:
        if request.method != "GET" or not _accepts_page(request):
            return await problems.from_http(request, error)
        with suppress(PolymarginError):
            await authorize(request, "viewer")  # who has signed in stays so
        return _failure(request, NotFound("No page has this address. It may be misspelt, or its subject was deleted."))

    app.add_exception_handler(404, answer)


def pages() -> APIRouter:
    """A router for pages; none of them belongs to the API's description."""
    return APIRouter(route_class=Page, include_in_schema=False, default_response_class=HTMLResponse)


def _sign_in(request: Request) -> Response:
    if request.method != "GET":
        return RedirectResponse("/sign-in", 303)
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse("/sign-in" if wanted == "/" else f"/sign-in?next={quote(wanted, safe='')}", 303)


def _accepts_page(request: Request) -> bool:
    """Whether a browser asks; what is below the API's prefix is for programs, also in a browser."""
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith(f"{V1}/")


def _failure(request: Request, error: PolymarginError) -> Response:
    return render(request, "failure.html", error.status, error=error)
