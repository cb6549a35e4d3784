"""The files of a service from the data folder to object storage and back."""

import re
from collections.abc import Callable, Iterable

from app.errors import SettingsError
from app.store import partial_uploads
from app.store.files import MANIFEST, files, files_at
from solvers.core.artefact_files import file_digest

# files of one machine alone, and uploads that are under way
_LEFT = re.compile(r"(\.|incoming(/|$)|" + partial_uploads.FOLDER + "(/|$))")


class MoveError(Exception):
    """Files cannot be moved as it was asked."""


def move_files(target: str, say: Callable[[str], None]) -> dict[str, int]:
    """Copy all files to ``target``: ``s3://bucket/prefix``, or the data folder of one that was kept in a bucket.

    What is there already with the same SHA-256 is not copied again, so that an interrupted move is simply repeated, and
    a move of a running service is finished by a second one after it was stopped. Nothing is removed from the source.

    Parameters
    ----------
    target : str
        ``s3://bucket/prefix`` or ``folder``.
    say : callable
        Takes one line for people.

    Returns
    -------
    dict
        ``files``, ``copied`` and ``bytes`` (of those copied).

    Raises
    ------
    MoveError
        The files are at the target already.
    StorageAway, OSError, ValueError
        The storage does not answer, a disk is full, or a file of the source is damaged.
    """
    source = files()
    try:
        to = files_at("" if target == "folder" else target)
    except SettingsError as error:
        raise MoveError(str(error)) from None
    if (source.working is source) == (target == "folder"):
        raise MoveError(f"the files are not in {'a bucket' if target == 'folder' else 'the data folder'} now")
    paths = ordered(path for path in source.sizes("") if not _LEFT.match(path))
    say(f"Comparing and copying {len(paths)} files")
    copied = n_bytes = 0
    for path in paths:
        with source.opened(path) as file:
            sha256 = file_digest(file)
            if to.sha256(path) != sha256:
                to.put(path, file, sha256)
                copied, n_bytes = copied + 1, n_bytes + file.stat().st_size
    return {"files": len(paths), "copied": copied, "bytes": n_bytes}


def ordered(paths: Iterable[str]) -> list[str]:
    """Sorted, manifests last: a folder of arrays is complete once its manifest is there."""
    return sorted(paths, key=lambda path: (path.endswith(f"/{MANIFEST}"), path))
