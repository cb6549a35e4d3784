"""Tokens of sign-ins on this machine, in a file of the data folder that only its owner reads."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, TypeAdapter, ValidationError

FILE = Path("sign-ins.json")


class Credential(BaseModel):
    """A person's token for one service."""

    secret: str
    name: str
    expires_at: AwareDatetime

    @property
    def has_expired(self) -> bool:
        return self.expires_at <= datetime.now(UTC)


_KEPT = TypeAdapter(dict[str, Credential])


def find(home: Path, url: str) -> Credential | None:
    """The token for the service at ``url``, which may have expired; None where there is none."""
    return _read(home).get(url)


def save(home: Path, url: str, credential: Credential) -> None:
    """Keep a token in place of that of an earlier sign-in; raises OSError."""
    _write(home, {**_read(home), url: credential})


def forget(home: Path, url: str) -> None:
    """Remove the token for the service at ``url``; raises OSError."""
    kept = _read(home)
    if kept.pop(url, None) is not None:
        _write(home, kept)


def _read(home: Path) -> dict[str, Credential]:
    file = home / FILE
    if not os.access(file, os.R_OK):
        return {}
    try:
        return _KEPT.validate_json(file.read_bytes())
    except ValidationError:  # a later version may write another form; signing in again replaces it
        return {}


def _write(home: Path, kept: dict[str, Credential]) -> None:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = home / f".{FILE}.{os.getpid()}"
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w") as stream:
        json.dump(_KEPT.dump_python(kept, mode="json"), stream, indent=1)
    part.replace(home / FILE)
