"""Objects of buckets to which prediction jobs write their files."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from app import outbound
from app.config import settings
from app.errors import InvalidInput, Item
from app.outbound import RefusedError
from app.store.buckets import Bucket


def require_allowed(target: str) -> None:
    """Raise InvalidInput unless the settings allow an object's address, ``s3://bucket/key``."""
    try:
        parts = outbound.parts_of(target, ("s3",), "s3://bucket/key")
        if not _key(parts.path) or parts.path.endswith("/") or parts.query:
            raise RefusedError("expected s3://bucket/key, in ASCII")
        outbound.require_within(target, settings().targets, "POLYMARGIN_TARGETS")
    except RefusedError as error:
        raise InvalidInput("the file cannot be written there", [Item(str(error), "/target")]) from None


def write(target: str, path: Path, sha256: str) -> None:
    """Write a file to the object, which appears whole and replaces one that is there.

    Raises
    ------
    InvalidInput
        The settings do not allow the address.
    StorageAway
        The bucket does not answer.
    """
    require_allowed(target)
    parts = urlsplit(target)
    Bucket(f"s3://{parts.netloc}", settings().files_endpoint or None).put(_key(parts.path), path, sha256)


def _key(path: str) -> str:
    return unquote(path).lstrip("/")
