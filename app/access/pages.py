"""Pages: signing in and out, keys, and the audit log."""

from functools import partial
from typing import Annotated

from fastapi import Form, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from app.access import audit, keys, sign_ins
from app.access.authentication import ADMIN, KeyRing, cookie_name, is_csrf_token, session_of
from app.access.keys import Principal
from app.errors import Forbidden, TooMany, Unauthenticated
from app.http.parameters import Db, PageToken, opened
from app.web.rendering import Call, render
from app.web.routing import pages

router = pages()


@router.get("/sign-in")
def show_sign_in(
    request: Request,
    link: Annotated[str, Query(max_length=100)] = "",
    next: Annotated[str, Query(max_length=2000)] = "/",
) -> Response:
    """Show the sign-in form. A one-time link needs a click, so programs that only fetch the link do not use it up."""
    return render(request, "sign_in.html", next=_own(next), link=link, fault=None)


@router.post("/sign-in")
async def sign_in(
    request: Request,
    key: Annotated[str, Form(max_length=1000)] = "",
    link: Annotated[str, Form(max_length=100)] = "",
    next: Annotated[str, Form(max_length=2000)] = "/",
) -> Response:
    """Start a session for an API key or for a one-time link."""
    keyring: KeyRing = request.app.state.keyring
    address = request.client.host if request.client else ""
    fault = "The API key is unknown, revoked or expired."
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
        raise TooMany("Too many requests with this key; retry later.", wait)
    request.state.key = principal
    return _signed_in(request, await run_in_threadpool(_begin, request), _own(next))


@router.post("/sign-out")
def sign_out(request: Request, csrf: Annotated[str, Form(max_length=100)] = "") -> Response:
    """End the session."""
    secret = session_of(request)
    if secret is None:
        raise Unauthenticated("Not signed in.")
    if not is_csrf_token(secret, csrf):
        raise Forbidden("The form belongs to another session; reload the page.")
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


keys_router = pages()

PAGE_SIZE = 100


@keys_router.get("/keys", dependencies=[ADMIN])
def list_keys(request: Request, session: Db, page_token: PageToken = None) -> Response:
    """List all keys, with a form to create one."""
    page = keys.page(session, PAGE_SIZE, page_token)
    return render(request, "keys.html", page=page, call=Call("/keys", "client.keys.list()"))


audit_router = pages()


_Part = Annotated[str, Query(max_length=128)]


@audit_router.get("/audit", dependencies=[ADMIN])
def list_audit(
    request: Request, session: Db, key: _Part = "", thing: _Part = "", page_token: PageToken = None
) -> Response:
    """List audit entries, newest first, filtered by key and by name or id."""
    page = audit.page(session, PAGE_SIZE, page_token, key=key or None, thing=thing or None)
    named = {name: value for name, value in (("key", key), ("thing", thing)) if value}
    query = "".join(f"&{name}={value}" for name, value in named.items())
    python = "".join(f", {name}={value!r}" for name, value in named.items())
    call = Call(f"/audit?page_size={PAGE_SIZE}{query}", f"client.audit(page_size={PAGE_SIZE}{python})")
    return render(request, "audit.html", page=page, key=key, thing=thing, call=call)
