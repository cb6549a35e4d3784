"""Pages: templates with what every one of them shows, and the words for numbers and times."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from app.access.authentication import csrf_token, session_of
from app.http.parameters import V1
from app.json_text import place_of
from app.plurals import gap_text
from app.version import VERSION
from app.web import assets

NAVIGATION = (
    ("/", "Overview"),
    ("/datasets", "Datasets"),
    ("/hierarchies", "Hierarchies"),
    ("/train", "Train"),
    ("/tune", "Tune"),
    ("/jobs", "Jobs"),
    ("/models", "Models"),
    ("/reviews", "Reviews"),
    ("/playground", "Playground"),
    ("/keys", "Keys"),
    ("/audit", "Audit"),
    ("/docs", "API"),
)
# of a language that a browser asks for
_WEIGHT = re.compile(r"q=([01](?:\.\d{0,3})?)", re.ASCII)
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True)
class Call:
    """The one call of the API that a page's data comes from, for those who want it in a program.

    Attributes
    ----------
    path : str
        With its query, below the API's prefix.
    python : str
        The same by the client, which the text calls ``client``.
    body : mapping or None
        As JSON.
    """

    path: str
    python: str
    method: str = "GET"
    body: Mapping[str, Any] | None = None

    def curl(self, base: str) -> str:
        """The command for a shell that has the key in ``POLYMARGIN_API_KEY``."""
        words = ["curl", "-fsS", "-H", '"Authorization: Bearer $POLYMARGIN_API_KEY"']
        if self.method != "GET":
            words += ["-X", self.method]
        if self.body is not None:
            words += ["-H", '"Content-Type: application/json"', "-d", shlex.quote(orjson.dumps(self.body).decode())]
        return " ".join([*words, shlex.quote(f"{base}{V1}{self.path}")])

    def program(self, base: str) -> str:
        """The lines of Python; the client finds the key in ``POLYMARGIN_API_KEY``."""
        return f'from polymargin import Client\n\nwith Client("{base}") as client:\n    print({self.python})'


def render(request: Request, template: str, code: int = 200, **context: Any) -> HTMLResponse:
    """A page with the status ``code``: its template with ``context``, for the signed-in user."""
    principal = getattr(request.state, "key", None)
    secret = session_of(request)
    text = _environment.get_template(template).render(
        principal=principal,
        may_edit=principal is not None and principal.role in ("editor", "admin"),
        may_predict_files=principal is not None and principal.role != "viewer",
        may_administer=principal is not None and principal.role == "admin",
        csrf=csrf_token(secret) if secret else "",
        navigation=NAVIGATION,
        here=_section(request.url.path),
        base=str(request.base_url).rstrip("/"),
        **{"call": None, **context},
    )
    # with no referrer at all browsers send forms with no origin, either, and those are refused
    return HTMLResponse(text, code, {"Referrer-Policy": "same-origin"})


def languages(request: Request) -> list[str]:
    """Language tags that the browser asks for, the preferred first (RFC 9110, section 12.5.4)."""
    weighed = []
    for each in request.headers.get("accept-language", "").split(","):
        tag, _, weight = each.partition(";")
        found = _WEIGHT.fullmatch(weight.strip()) if weight else None
        if (tag := tag.strip()) not in ("", "*"):
            weighed.append((float(found[1]) if found else 1.0, tag))
    return [tag for weight, tag in sorted(weighed, key=lambda each: -each[0]) if weight > 0]


def part(template: str, **context: Any) -> Markup:
    """A part of a page that is the same for everybody."""
    return Markup(_environment.get_template(template).render(**context))


def number(value: float | None, digits: int = 4) -> str:
    """With thin spaces between thousands, or so many significant digits; a dash where there is none."""
    if value is None:
        return "–"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15):
        return f"{int(value):,}".replace(",", "\u202f")
    if abs(value) >= 10 ** (digits - 1) and abs(value) < 1e15:
        return f"{value:,.0f}".replace(",", "\u202f")
    return f"{value:#.{digits}g}".rstrip(".")


def gap(value: float | None) -> str:
    """A relative duality gap; a dash where there is none."""
    return gap_text(value) or "–"


def percent(value: float | None, digits: int = 1) -> str:
    """A share as per cent."""
    return "–" if value is None else f"{100 * value:.{digits}f}\u202f%"


def size(n_bytes: float | None) -> str:
    """Bytes, KiB, MiB, ..."""
    if n_bytes is None:
        return "–"
    unit = 0
    while n_bytes >= 1024 and unit < len(_UNITS) - 1:
        n_bytes, unit = n_bytes / 1024, unit + 1
    return f"{n_bytes:.{0 if unit == 0 or n_bytes >= 100 else 1}f}\u202f{_UNITS[unit]}"


def duration(seconds: float | None) -> str:
    """Seconds, minutes, hours; from two days on days."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{1000 * seconds:.0f}\u202fms"
    if seconds < 60:
        return f"{seconds:.1f}\u202fs"
    if seconds < 3600:
        return f"{int(seconds // 60)}\u202fmin {int(seconds % 60)}\u202fs"
    if seconds < 172_800:
        return f"{int(seconds // 3600)}\u202fh {int(seconds % 3600 // 60)}\u202fmin"
    return f"{number(int(seconds // 86_400))}\u202fd {int(seconds % 86_400 // 3600)}\u202fh"


def ago(moment: datetime | None) -> str:
    """How long ago a moment was, or in how long it comes, roughly."""
    if moment is None:
        return "–"
    seconds = (datetime.now(UTC) - moment).total_seconds()
    for most, unit, name in ((60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h"), (86400 * 60, 86400, "days")):
        if abs(seconds) < most:
            count = int(abs(seconds) // unit)
            if name == "s" and count < 5:
                return "just now"
            length = f"{count}\u202f{name.removesuffix('s') if name == 'days' and count == 1 else name}"
            return f"{length} ago" if seconds > 0 else f"in {length}"
    return moment.date().isoformat()


def _section(path: str) -> str:
    return "/" + path.split("/")[1]


# Each template is read now and compiled when it is first rendered: a release that is installed while this one runs may
# have other templates, which want what this one does not give them.
_TEMPLATES = {path.name: path.read_text() for path in (Path(__file__).parent / "templates").iterdir()}
_environment = Environment(
    loader=DictLoader(_TEMPLATES),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    cache_size=-1,
    auto_reload=False,
)
_environment.filters.update(
    number=number, gap=gap, percent=percent, size=size, duration=duration, ago=ago, place=place_of
)
_environment.globals.update(asset=assets.address, release=VERSION)
