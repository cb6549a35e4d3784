"""Objects of buckets to which prediction jobs write their files."""

from __future__ import annotations

from pathlib import Path

from app import outbound
from app.config import settings
from app.datasets.addresses import object_of
from app.errors import InvalidInput, Item
from app.outbound import RefusedError

_EXPECTED = "s3://bucket/key or gs://bucket/key"


def require_allowed(target: str) -> None:
    """Raise InvalidInput unless the settings allow an object's address, ``s3://bucket/key`` or ``gs://bucket/key``."""
    try:
        parts = outbound.parts_of(target, ("s3", "gs"), _EXPECTED)
        if not parts.path or parts.path.endswith("/") or parts.query:
            raise RefusedError(f"expected {_EXPECTED}, in ASCII")
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
    bucket, key = object_of(target)
    bucket.put(key, path, sha256)
