"""The example dataset: docstrings of the installed libraries, with a tree of its labels."""

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import orjson
from sqlalchemy.orm import Session

from app.access import quotas
from app.datasets import service as datasets
from app.datasets.schemas import Dataset, NewDataset
from app.errors import Conflict, NotFound, Unavailable
from app.hierarchies import service as hierarchies
from app.hierarchies.schemas import NewHierarchy
from app.store.db import reading
from app.store.files import Upload, files

NAME = "docstrings"
_MOST_SECONDS = 300.0
_BLOCK = 1 << 20
_making = threading.Lock()


def docstrings(session: Session) -> Dataset:
    """The dataset ``docstrings``, created if missing, with the hierarchy of the same name.

    Raises
    ------
    Conflict
        Another request makes it just now.
    TooMany, StorageFull
        The workspace may have no more jobs, or store no more.
    Unavailable
        The corpus cannot be made: a library does not load, or it takes minutes.
    """
    try:
        return datasets.get(session, NAME)
    except NotFound:
        pass
    # asked before the work as well as after it: that takes minutes of a processor
    with reading(session):
        quotas.require_jobs(session)
        quotas.require_room(session, 1, hold=False)
    if not _making.acquire(blocking=False):
        raise Conflict("the example is being created; retry in a minute")
    try:
        return _made(session)
    finally:
        _making.release()


def _made(session: Session) -> Dataset:
    with tempfile.TemporaryDirectory(prefix="polymargin-") as folder:
        corpus = Path(folder) / "docstrings.jsonl"
        _write(corpus)
        labels = sorted({orjson.loads(line)["label"] for line in corpus.read_bytes().splitlines()})
        _keep_tree(session, labels)
        upload = _received(corpus.read_bytes())
    return datasets.register(session, NewDataset(name=NAME, format="jsonl"), upload)


def _write(corpus: Path) -> None:
    # A process of its own: importing every module of three libraries would stay in this one's memory.
    command = [sys.executable, "-P", "-m", "app.operation.corpus", str(corpus)]
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {**os.environ, "PYTHONPATH": path}
    try:
        made = subprocess.run(command, timeout=_MOST_SECONDS, capture_output=True, env=environment)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"The example could not be created within {_MOST_SECONDS:g} seconds.") from None
    if made.returncode:
        raise Unavailable(
            "The example could not be created on this machine; run `polymargin corpus docstrings` to see the reason."
        )


def _keep_tree(session: Session, labels: list[str]) -> None:
    try:
        hierarchies.get(session, NAME)
    except NotFound:
        new = NewHierarchy(name=NAME, format="paths")
        tree = hierarchies.read(_received("\n".join(labels).encode()), new)
        hierarchies.register(session, NAME, new.format or "paths", tree)


def _received(content: bytes) -> Upload:
    upload = files().upload()
    try:
        for start in range(0, len(content), _BLOCK):
            upload.write(content[start : start + _BLOCK])
        upload.finish()
    except BaseException:
        upload.abort()
        raise
    return upload
