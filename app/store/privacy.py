"""The data folder is its user's alone: whoever else has an account on the machine reads none of it."""

import contextlib
import os
from pathlib import Path

_OTHERS = 0o077


def keep_private(home: Path) -> None:
    """Make ``home`` if it is not there, close it to others, and let this process make no file that they can read."""
    os.umask(_OTHERS)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if home.stat().st_mode & _OTHERS:
        with contextlib.suppress(PermissionError):  # somebody else's folder, who decides
            home.chmod(0o700)
