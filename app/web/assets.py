"""Style sheets and scripts, of this package and of the installed plotly, under paths that name their content.

What is at such a path never changes, so that browsers keep it for a year; a new release has other paths.
"""

import gzip
import hashlib
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.errors import NotFound

_FOLDER = Path(__file__).parent / "static"
_PLOTLY = "plotly.min.js"
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_FOREVER = "public, max-age=31536000, immutable"


@lru_cache
def digest() -> str:
    """Of all files, and of the release of plotly: the first part of their paths."""
    found = hashlib.sha256(version("plotly").encode())
    for path in sorted(_FOLDER.iterdir()):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def address(name: str) -> str:
    """Where a page finds a file."""
    return f"/static/{digest()}/{name}"


def send(request: Request) -> Response:
    """One file; compressed, unless the browser does not take that."""
    name = request.path_params["name"]
    if request.path_params["digest"] != digest() or name not in _names():
        raise NotFound("There is no such file.")
    headers = {"Cache-Control": _FOREVER, "Vary": "Accept-Encoding"}
    content = _compressed(name)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
    else:
        content = gzip.decompress(content)
    return Response(content, headers=headers, media_type=_TYPES[Path(name).suffix])


ROUTE = Route("/static/{digest}/{name}", send, methods=["GET"], name="asset")


@lru_cache
def _names() -> frozenset[str]:
    return frozenset({_PLOTLY, *(path.name for path in _FOLDER.iterdir())})


@lru_cache
def _compressed(name: str) -> bytes:
    path = _plotly() if name == _PLOTLY else _FOLDER / name
    return gzip.compress(path.read_bytes(), 6)


def _plotly() -> Path:
    # found, and not imported: its Python part takes a while and is not needed
    spec = find_spec("plotly")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "package_data" / _PLOTLY
