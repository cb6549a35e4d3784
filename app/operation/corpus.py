"""A labelled text corpus that every installation already holds: the docstrings of numpy, scipy and scikit-learn.

Each public module, function, class and method of the three libraries has a docstring; its label is the public module
that shows it, such as `scipy.stats`. That makes a first dataset of several thousand texts and about 140 labels, with
a natural tree of labels, without a download.
"""

import hashlib
import importlib
import inspect
import os
import pkgutil
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson

LIBRARIES = ("numpy", "scipy", "sklearn")

_TEST_SHARE = 5
_MIN_TRAIN = 4
# Some docstrings are made at import, with random numbers, sets in the order of the day, or addresses.
_varies = re.compile(r"# may vary|argument\(s\) ``\{| at 0x").search
# What is neither part of the public interface nor free of side effects when it is imported.
_SKIPPED = frozenset({"tests", "conftest", "core", "distutils", "experimental", "externals"})


def docstrings(minimum_length: int = 80, min_texts: int = 5) -> Iterator[tuple[str, str]]:
    """Docstrings and the public modules that show them.

    Parameters
    ----------
    minimum_length : int
        Leave out texts of fewer characters.
    min_texts : int
        Leave out labels of fewer texts.

    Yields
    ------
    text, label : str
        Each text once, under the shortest module path (then the first by alphabet) that shows it; always in the same
        order for the same versions of the libraries.
    """
    found: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in _public_modules():
            for text in _texts(module):
                if len(text) >= minimum_length:
                    found.setdefault(text, module.__name__)
    n_texts = Counter(found.values())
    for text, label in found.items():
        if n_texts[label] >= min_texts:
            yield text, label


def write_docstrings(path: Path, minimum_length: int = 80, min_texts: int = 5) -> dict[str, int]:
    """Write the corpus as JSON lines with `text`, `label` and `split`.

    A text's place is decided by the hash of its content: of each label, about a fifth of the texts is for testing, and
    at least four are for training.

    Parameters
    ----------
    path : Path
        Replaced at once when all is written, or left as it was.
    minimum_length, min_texts : int
        As in `docstrings`.

    Returns
    -------
    dict
        `n_texts`, `n_labels`, `n_train`, `n_test`.
    """
    rows = list(docstrings(minimum_length, min_texts))
    tests = _test_texts(rows)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            for text, label in rows:
                split = "test" if text in tests else "train"
                file.write(orjson.dumps({"text": text, "label": label, "split": split}) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    n_labels = len({label for _, label in rows})
    return {"n_texts": len(rows), "n_labels": n_labels, "n_train": len(rows) - len(tests), "n_test": len(tests)}


def _test_texts(rows: list[tuple[str, str]]) -> set[str]:
    by_label: dict[str, list[str]] = {}
    for text, label in rows:
        by_label.setdefault(label, []).append(text)
    tests: set[str] = set()
    for texts in by_label.values():
        n_tests = max(0, min(round(len(texts) / _TEST_SHARE), len(texts) - _MIN_TRAIN))
        tests.update(sorted(texts, key=lambda text: hashlib.sha256(text.encode()).digest())[:n_tests])
    return tests


def _public_modules() -> list[ModuleType]:
    """Public modules that can be imported, those of the shortest path first."""
    modules: list[ModuleType] = []
    names = list(LIBRARIES)
    for name in names:
        try:
            module = importlib.import_module(name)
        except ImportError:  # it needs something optional that is not installed
            continue
        modules.append(module)
        for inner in pkgutil.iter_modules(getattr(module, "__path__", [])):
            if not inner.name.startswith("_") and inner.name not in _SKIPPED:
                names.append(f"{name}.{inner.name}")
    return sorted(modules, key=lambda module: (module.__name__.count("."), module.__name__))


def _texts(module: ModuleType) -> Iterator[str]:
    """Docstrings of a module and of what it shows, without indentation."""
    library = module.__name__.partition(".")[0]
    for holder in (module, *_shown(module, library)):
        for thing in (holder, *(_members(holder, library) if inspect.isclass(holder) else ())):
            text = thing.__doc__
            if isinstance(text, str) and text != type(thing).__doc__:
                lines = inspect.cleandoc(text).splitlines()
                yield "\n".join(line for line in lines if not _varies(line))


def _shown(module: ModuleType, library: str) -> Iterator[Any]:
    """What a module lists in `__all__` or defines, and its compiled functions."""
    listed = set(getattr(module, "__all__", ()))
    for name in sorted(listed | set(vars(module))):
        thing = getattr(module, name, None)
        if name.startswith("_") or inspect.ismodule(thing):
            continue
        origin = getattr(thing, "__module__", None)
        # The functions of BLAS and LAPACK are shown, but not listed, and do not say where they come from.
        if origin in (None, module.__name__) or (name in listed and _belongs(origin, library)):
            yield thing


def _members(owner: type, library: str) -> Iterator[Any]:
    """Public methods and properties that a class has from its library."""
    for base in owner.__mro__:
        if _belongs(base.__module__, library):
            for name, member in sorted(vars(base).items()):
                if not name.startswith("_") and hasattr(type(member), "__get__"):
                    yield member


def _belongs(origin: object, library: str) -> bool:
    """Whether a `__module__` is a library's; compiled functions have none."""
    return origin is None or (isinstance(origin, str) and origin.partition(".")[0] == library)


if __name__ == "__main__":
    write_docstrings(Path(sys.argv[1]))
