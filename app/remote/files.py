"""Files on their way to the service."""

import errno
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from app.remote.progress import Update, progress_bar
from app.remote.transport import Transport
from app.remote.uploads import FROM_BYTES, Uploads

CHUNK_BYTES = 1 << 20
FETCHING_SECONDS = 3700.0


def send_file(
    transport: Transport,
    path: str,
    file: Path,
    options: type[BaseModel],
    query: Mapping[str, str | bool | Sequence[str] | None],
    progress: bool | None = False,
) -> bytes:
    """Post a file, a large one in pieces, and return the answer's body.

    Parameters
    ----------
    transport : Transport
    path : str
        Of the route, which takes uploads in pieces.
    file : Path
    options : model
        Its fields may be in the query, beside ``name``, ``format`` and ``for_model``; ``resume`` names an upload to
        continue.
    query : mapping
        None: the service's default.
    progress : bool or None
        Whether there is a bar of the bytes that were sent; None: in notebooks and terminals.

    Raises
    ------
    TypeError
        There is no such option.
    """
    _require_known(query, options)
    resume = query.get("resume")
    query = {name: value for name, value in query.items() if name != "resume"}
    with progress_bar(progress, f"Uploading {file.name}", file.stat().st_size, "B") as sent:
        if resume is None and not is_large(file):
            return post_file(transport, path, file, query, sent)
        upload, sha256 = Uploads(transport).send_file(file, None if resume is None else str(resume), sent)
        return transport.send("POST", path, params={**query, "upload": upload, "sha256": sha256}).content


def send_address(
    transport: Transport,
    path: str,
    address: str,
    options: type[BaseModel],
    query: Mapping[str, str | bool | Sequence[str] | None],
) -> bytes:
    """Post the address of a file, wait until the service has fetched it, and return the answer's body.

    Raises as :func:`send_file`.
    """
    _require_known(query, options)
    params = {name: value for name, value in query.items() if name != "resume"}
    return transport.send("POST", path, params={**params, "address": address}, timeout=FETCHING_SECONDS).content


def _require_known(query: Mapping[str, object], options: type[BaseModel]) -> None:
    unknown = query.keys() - options.model_fields.keys() - {"name", "format", "for_model", "resume"}
    if unknown:
        raise TypeError(f"no option {' or '.join(sorted(unknown))}; known are {', '.join(options.model_fields)}")


def is_address(data: object) -> bool:
    """Whether the service is to fetch a file itself."""
    return isinstance(data, str) and data.startswith(("https://", "http://", "s3://", "gs://"))


def is_large(file: Path) -> bool:
    """Whether a file is sent in pieces."""
    return file.stat().st_size >= FROM_BYTES


def post_file(
    transport: Transport, path: str, file: Path, query: Mapping[str, Any], sent: Update | None = None
) -> bytes:
    """Post a file, read from disk piece by piece, and return the answer's body."""
    headers = {"Content-Type": "application/octet-stream", "Content-Length": str(file.stat().st_size)}
    return transport.send("POST", path, params=query, content=lambda: _pieces(file, sent), headers=headers).content


def receive_file(transport: Transport, path: str, file: Path, query: Mapping[str, str | None]) -> int:
    """Write the body of an answer to ``file``, which appears whole or not at all; return its bytes."""
    if not file.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(file.parent))
    part = file.with_name(f".{file.name}.part")
    size = 0
    try:
        with part.open("wb") as opened:
            for piece in transport.pieces(path, query):
                size += opened.write(piece)
        part.replace(file)
    except OSError as error:
        if error.errno is not None and error.filename is None:  # systems name no file in errors of writing
            error.filename = str(file)
        raise
    finally:
        part.unlink(missing_ok=True)
    return size


def _pieces(file: Path, sent: Update | None) -> Iterator[bytes]:
    n_sent = 0
    with file.open("rb") as opened:
        while piece := opened.read(CHUNK_BYTES):
            yield piece
            n_sent += len(piece)
            if sent is not None:
                sent(n_sent, "")
