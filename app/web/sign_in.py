"""Signing in, by an API key or a one-time link, and signing out."""

from functools import partial
from typing import Annotated

from fastapi import Form, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from app.api.access.auth import KeyRing, cookie_name, is_csrf_token, session_of
from app.api.common.parameters import opened
from app.errors import Forbidden, TooMany, Unauthenticated
from app.services.access import sign_ins
from app.services.access.keys import Principal
from app.web.rendering import render
from app.web.routing import pages

router = pages()


@router.get("/sign-in")
def show_sign_in(
    request: Request,
    link: Annotated[str, Query(max_length=100)] = "",
    next: Annotated[str, Query(max_length=2000)] = "/",
) -> Response:
    """Ask for the key, or by a one-time link for a click: programs that only look at a link do not use it up."""
    return render(request, "sign_in.html", next=_own(next), link=link, fault=None)


@router.post("/sign-in")
async def sign_in(
    request: Request,
    key: Annotated[str, Form(max_length=1000)] = "",
    link: Annotated[str, Form(max_length=100)] = "",
    next: Annotated[str, Form(max_length=2000)] = "/",
) -> Response:
    """Begin a session of a key, or of the one that a link stands for."""
    keyring: KeyRing = request.app.state.keyring
    address = request.client.host if request.client else ""
    fault = "That is no key of this service, or it was revoked or has expired."
    try:
        if link:
            principal = await keyring.guess(partial(_redeem, request, link), address)
        else:
            principal = await keyring.principal(f"Bearer {key}", address)
    except Unauthenticated as error:
        fault = error.detail if link else fault
        return render(request, "sign_in.html", 401, next=_own(next), link="", fault=fault)
    wait = keyring.rates.take(principal.key_id)
    if wait:
        raise TooMany("The key has asked too often just now.", wait)
    request.state.key = principal
    return _signed_in(request, await run_in_threadpool(_begin, request), _own(next))


@router.post("/sign-out")
def sign_out(request: Request, csrf: Annotated[str, Form(max_length=100)] = "") -> Response:
    """End the session."""
    secret = session_of(request)
    if secret is None:
        raise Unauthenticated("Nobody has signed in.")
    if not is_csrf_token(secret, csrf):
        raise Forbidden("The form is not of this session.")
    with request.app.state.sessions() as session:
        sign_ins.end(session, secret)
    keyring: KeyRing = request.app.state.keyring
    keyring.forget()
    answer = RedirectResponse("/sign-in", 303)
    answer.delete_cookie(cookie_name(request), httponly=True, samesite="strict")
    return answer


def _redeem(request: Request, link: str) -> Principal:
    with request.app.state.sessions() as session:
        return sign_ins.redeem(session, link)


def _begin(request: Request) -> str:
    principal: Principal = request.state.key
    with opened(request) as session:
        return sign_ins.begin(session, principal.key_id)


def _signed_in(request: Request, secret: str, next: str) -> Response:
    answer = RedirectResponse(next, 303)
    lifetime = int(request.app.state.settings.session_seconds)
    secure = request.url.scheme == "https"
    answer.set_cookie(cookie_name(request), secret, max_age=lifetime, secure=secure, httponly=True, samesite="strict")
    return answer


def _own(path: str) -> str:
    """``path`` where it is one of this service, else the overview."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else "/"
