"""Parses label trees in a separate process; run as a script, it is that process.

So reading neither holds up the threads that answer requests, nor goes on when nobody waits for its answer, nor takes
more memory than it is given, nor asks anything of a network. Small files of the simple formats are read at once.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from app.formats.hierarchies.parsing import is_workbook, parse_hierarchy
from app.formats.hierarchies.source import Bounds
from app.formats.hierarchies.vocabulary import Dropped, Label, Vocabulary
from app.formats.plain_file import MostUnpacked, compression_of, plain_file
from app.formats.table import FormatError, RowError, row_error
from app.hierarchies.formats import FORMATS
from app.hierarchies.schemas import HierarchyOptions
from solvers.core.artefact_files import read_array
from solvers.labels.taxonomy import Taxonomy

INLINE_BYTES = 64 << 10

# how much more files may unpack to that are read as a stream
_TIMES = 4
_MEMORY_BYTES = 4 << 30
_LOOK_SECONDS = 0.05
_ORPHANED = 3
# more at once would only take turns, each with its memory
_turns = threading.Semaphore(2)
# those who wait hold a thread each, of which there are few
_places = threading.Semaphore(2 + 4)


class TooManyWaitError(Exception):
    """Too many files are waiting to be parsed."""


def read_hierarchy(
    path: Path, format: str, options: HierarchyOptions, bounds: Bounds, check: Callable[[], None]
) -> Vocabulary:
    """As :func:`parse_hierarchy`; compressed, large and less simple files are read in another process.

    Parameters
    ----------
    path, format, options, bounds
        As there; the file may be compressed.
    check : callable
        Called several times a second; what it raises ends the process.

    Raises
    ------
    FormatError
        Also where reading takes longer, or more memory, than it may.
    TooManyWaitError
        Others are being read, and several wait for their turn.
    """
    if _is_simple(path, format):
        return parse_hierarchy(path, format, options, bounds)
    with _turn(check), tempfile.TemporaryDirectory(prefix="polymargin-") as folder:
        _run([str(path), format, options.model_dump_json(), json.dumps(asdict(bounds)), folder], bounds.seconds, check)
        found = json.loads((Path(folder) / "found.json").read_bytes())
        if found["n_errors"]:
            raise FormatError([RowError(**error) for error in found["errors"]], found["n_errors"])
        return load_vocabulary(Path(folder))


def main(path: str, format: str, options: str, bounds: str, folder: str) -> None:
    """Read a file, and write the vocabulary or its faults to ``folder``."""
    threading.Thread(target=_end_with_the_caller, daemon=True).start()
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))
    most = Bounds(**json.loads(bounds))
    errors: list[RowError] = []
    n_errors = 0
    try:
        n_bytes = most.n_bytes * (_TIMES if FORMATS[format].is_streamed else 1)
        with plain_file(Path(path), MostUnpacked(n_bytes=n_bytes)) as plain:
            vocabulary = parse_hierarchy(plain, format, HierarchyOptions.model_validate_json(options), most)
        save_vocabulary(Path(folder), vocabulary)
    except FormatError as error:
        errors, n_errors = error.errors, error.n_errors
    except MemoryError:
        errors, n_errors = row_error(1, "parsing the label tree exceeds its memory limit").errors, 1
    document = {"n_errors": n_errors, "errors": [asdict(error) for error in errors]}
    (Path(folder) / "found.json").write_text(json.dumps(document))


def _is_simple(path: Path, format: str) -> bool:
    if not FORMATS[format].is_simple or path.stat().st_size > INLINE_BYTES:
        return False
    with path.open("rb") as file:
        return not is_workbook(path) and compression_of(file.read(8)) is None


@contextmanager
def _turn(check: Callable[[], None]) -> Iterator[None]:
    if not _places.acquire(blocking=False):
        raise TooManyWaitError("too many label trees are being parsed")
    try:
        while not _turns.acquire(timeout=_LOOK_SECONDS):
            check()
        try:
            yield
        finally:
            _turns.release()
    finally:
        _places.release()


def _run(arguments: list[str], seconds: float, check: Callable[[], None]) -> None:
    process = subprocess.Popen([sys.executable, "-P", "-m", __name__, *arguments], stdin=subprocess.PIPE)
    deadline = time.monotonic() + seconds
    try:
        while True:
            check()
            try:
                status = process.wait(_LOOK_SECONDS)
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() > deadline:
                    raise row_error(1, f"parsing the label tree takes longer than {seconds:g} s") from None
    finally:
        process.kill()
        process.communicate()
    if status != 0:
        raise RuntimeError(f"the process that reads a hierarchy ended with status {status}")


def _refusing_all_but(own: Iterable[str]) -> Callable[[str, tuple[Any, ...]], None]:
    """What refuses, as an audit hook, to ask networks, or files beside ``own`` and Python's, which a file may name."""
    # an editable installation is found by a finder, and not on the path
    code = (str(Path(__file__).parents[3] / package) for package in ("app", "solvers"))
    read = tuple(os.path.realpath(path) for path in (*own, *code, *sys.path, sys.prefix, sys.base_prefix))

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "urllib.Request"):
            raise PermissionError("the process that parses label trees must not use the network")
        if event == "open" and isinstance(arguments[0], str) and not _is_among(arguments[0], read):
            raise PermissionError("the process that parses label trees must not open other files")

    return refuse


def _is_among(path: str, read: tuple[str, ...]) -> bool:
    # A folder itself holds nothing; temporary files without a name are made in it, and opened again by their number.
    if path.startswith("/proc/self/fd/") or os.path.isdir(path):
        return True
    return os.path.realpath(path).startswith(read)


def _end_with_the_caller() -> None:
    """The caller holds the other end of standard input and writes nothing: its end means that the caller is gone."""
    os.read(0, 1)
    os._exit(_ORPHANED)


def save_vocabulary(folder: Path, vocabulary: Vocabulary) -> None:
    """Write a vocabulary to an empty folder."""
    tree = vocabulary.tree
    # no name has a line end in it: that is a control character
    (folder / "names").write_text("\n".join(tree.names), encoding="utf-8", newline="")
    np.save(folder / "parent.npy", tree.parent, allow_pickle=False)
    np.save(folder / "others.npy", tree.others, allow_pickle=False)
    _write_lines(folder / "labels", _facts(vocabulary.labels))
    _write_lines(folder / "retired", _facts(vocabulary.retired))
    _write_lines(folder / "dropped", map(tuple, vocabulary.dropped))
    (folder / "read_as").write_bytes(orjson.dumps(dict(vocabulary.read_as)))


def load_vocabulary(folder: Path) -> Vocabulary:
    """The vocabulary that :func:`save_vocabulary` wrote."""
    names = tuple((folder / "names").read_text(encoding="utf-8").split("\n"))
    parent, others = (read_array(folder / f"{name}.npy", mmap=False) for name in ("parent", "others"))
    return Vocabulary(
        Taxonomy(names, parent, others),
        _labels(folder / "labels"),
        _labels(folder / "retired"),
        [Dropped(*values) for values in _lines(folder / "dropped")],
        orjson.loads((folder / "read_as").read_bytes()),
    )


def _facts(labels: Mapping[str, Label]) -> Iterable[object]:
    return ((name, label.facts()) for name, label in labels.items())


def _labels(path: Path) -> dict[str, Label]:
    return {name: Label.from_facts(facts) for name, facts in _lines(path)}


def _write_lines(path: Path, values: Iterable[object]) -> None:
    with path.open("wb") as file:
        for value in values:
            file.write(orjson.dumps(value) + b"\n")


def _lines(path: Path) -> Iterable[Any]:
    with path.open("rb") as file:
        return [orjson.loads(line) for line in file]


if __name__ == "__main__":
    tempfile.tempdir = sys.argv[5]
    sys.addaudithook(_refusing_all_but([sys.argv[1], sys.argv[5]]))
    main(*sys.argv[1:])
