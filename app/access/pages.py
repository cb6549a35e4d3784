"""Pages: signing in and out, keys, and the audit log."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import partial
from typing import Annotated
from urllib.parse import quote

from anyio import to_thread
from fastapi import Form, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from app.access import audit, keys, openid, sign_ins
from app.access.authentication import ADMIN, KeyRing, cookie_name, is_csrf_token, session_of
from app.access.keys import Principal
from app.access.openid import Provider
from app.access.people import Visitor
from app.access.proxies import Proxies
from app.access.routes import ASKING_PROVIDERS, count, provider_of, welcome
from app.errors import Forbidden, Unauthenticated, Unavailable
from app.http.parameters import Db, PageToken, opened
from app.web.rendering import Call, render
from app.web.routing import pages

router = pages()


@router.get("/sign-in")
def show_sign_in(
    request: Request,
    link: Annotated[str, Query(max_length=100)] = "",
    next: Annotated[str, Query(max_length=2000)] = "/",
    signed_out: bool = False,
) -> Response:
    """Show the sign-in form, or start a session for the person whom a proxy names.

    A one-time link needs a click, so programs that only fetch the link do not use it up.
    """
    proxies: Proxies | None = request.app.state.proxies
    visitor = None if proxies is None or link or signed_out else proxies.visitor(request.scope)
    if visitor is None:
        return _form(request, _own(next), link)
    try:
        secret = _begin_person(request, visitor, "proxy")
    except Forbidden as error:
        return _form(request, _own(next), fault=error.detail, status=error.status)
    return _arrived(request, secret, _own(next))


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
        return _form(request, _own(next), fault=fault, status=401)
    count(request, principal)
    return _signed_in(request, await run_in_threadpool(_begin, request), RedirectResponse(_own(next), 303))


@router.get("/sign-in/openid")
async def begin_openid(request: Request, next: Annotated[str, Query(max_length=2000)] = "/") -> Response:
    """Send the browser to the identity provider."""
    provider = provider_of(request)
    attempt = openid.new_attempt()
    try:
        url = await to_thread.run_sync(provider.authorization_url, attempt, limiter=ASKING_PROVIDERS)
    except Unavailable as error:
        return _form(request, _own(next), fault=error.detail, status=error.status)
    answer = RedirectResponse(url, 303)
    kept = f"{attempt}.{urlsafe_b64encode(_own(next).encode()).decode()}"
    answer.set_cookie(
        _attempt_cookie(request),
        kept,
        max_age=openid.ATTEMPT_SECONDS,
        path=openid.START,
        secure=provider.start_url.startswith("https://"),
        httponly=True,
        samesite="lax",  # the provider's page leads back here
    )
    return answer


@router.get("/sign-in/openid/callback")
async def finish_openid(request: Request) -> Response:
    """Start a session for the person whom the identity provider has signed in."""
    provider = provider_of(request)
    attempt, _, place = request.cookies.get(_attempt_cookie(request), "").partition(".")
    next = _kept_next(place)
    keyring: KeyRing = request.app.state.keyring
    address = request.client.host if request.client else ""
    try:
        if not attempt:
            raise Unauthenticated("This browser has not started a sign-in, or it has expired. Sign in again.")
        look_up = partial(provider.visitor, attempt, dict(request.query_params))
        visitor = await keyring.guess(look_up, address, ASKING_PROVIDERS)
        secret = await run_in_threadpool(_begin_person, request, visitor, "OpenID")
    except (Unauthenticated, Unavailable, Forbidden) as error:
        answer = _form(request, next, fault=error.detail, status=error.status)
    else:
        answer = _arrived(request, secret, next)
    answer.delete_cookie(_attempt_cookie(request), path=openid.START, httponly=True, samesite="lax")
    return answer


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
    # a proxy would sign the person in again at once
    answer = RedirectResponse("/sign-in" if request.app.state.proxies is None else "/sign-in?signed_out=true", 303)
    answer.delete_cookie(cookie_name(request), httponly=True, samesite="strict")
    return answer


def _redeem(request: Request, link: str) -> Principal:
    with request.app.state.sessions() as session:
        return sign_ins.redeem(session, link)


def _begin(request: Request) -> str:
    principal: Principal = request.state.key
    with opened(request) as session:
        return sign_ins.begin(session, principal.key_id)


def _arrived(request: Request, secret: str, next: str) -> Response:
    """A page that leads on: a redirect would still count as the provider's, and browsers send no strict cookie then."""
    return _signed_in(request, secret, render(request, "signed_in.html", next=next))


def _begin_person(request: Request, visitor: Visitor, by: str) -> str:
    """Start a session of a person who may be new here."""
    return welcome(request, visitor, partial(sign_ins.begin, by=by))


def _form(request: Request, next: str, link: str = "", fault: str | None = None, status: int = 200) -> Response:
    provider: Provider | None = request.app.state.openid
    proxies: Proxies | None = request.app.state.proxies
    visitor = None if proxies is None else proxies.visitor(request.scope)
    start, way = None, ""
    if visitor is not None:
        start, way = "/sign-in", f"as {visitor.name[:100]}"
    elif provider is not None:
        start, way = provider.start_url, f"at {provider.host}"
    start = start and f"{start}?next={quote(next, safe='')}"
    return render(request, "sign_in.html", status, next=next, link=link, fault=fault, way=way, start=start)


def _attempt_cookie(request: Request) -> str:
    return f"{cookie_name(request)}_openid"


def _kept_next(place: str) -> str:
    try:
        return _own(urlsafe_b64decode(place.encode()).decode())
    except ValueError:
        return "/"


def _signed_in(request: Request, secret: str, answer: Response) -> Response:
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
