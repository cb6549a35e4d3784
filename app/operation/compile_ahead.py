"""Compilation ahead of the first job: a service that has just been installed compiles its loops while nobody waits.

Compiled loops are kept beside their sources. A note in the data folder says for which sources, Python and numba all
were compiled, so that a later start does not look through them again.
"""

import hashlib
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from app.operation.supervisor import Child

NOTE = "compiled"
_ROOT = Path(__file__).resolve().parent.parent.parent
_COMPILED = ("solvers", "app/features", "app/formats")
LOWEST_PRIORITY = 19


def identity() -> str:
    """What compiled loops depend on: SHA-256 of the sources, their place, and what compiles them."""
    total = hashlib.sha256(f"{_ROOT}\0{platform.machine()}\0{sys.version}\0{version('numba')}\0".encode())
    for file in sorted(file for folder in _COMPILED for file in (_ROOT / folder).rglob("*.py")):
        total.update(f"{file.relative_to(_ROOT).as_posix()}\0".encode() + file.read_bytes())
    return total.hexdigest()


def compiler(home: Path) -> Child | None:
    """The process that compiles what is not compiled yet; None where all is, as the data folder's note says.

    Parameters
    ----------
    home : Path
        The data folder.
    """
    note, wanted = home / NOTE, identity()
    if note.is_file() and note.read_text(errors="replace") == wanted:
        return None
    # imports take seconds, too
    command = [
        "nice",
        "-n",
        str(LOWEST_PRIORITY),
        sys.executable,
        "-P",  # a folder called app where the service was started hides nothing
        "-m",
        "app.operation.warm",
        "--note",
        str(note),
        wanted,
    ]
    return Child("compiler", command, once=True)
