"""The data sets of the benchmarks: digits and docstrings always, others where POLYMARGIN_BENCH_DATA names their folder.

That folder holds a ``load.py`` with ``bench(name) -> X_train, y_train, X_test, y_test, label names``.
"""

import importlib.util
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from app.corpus import docstrings
from app.features.text import TextFeatures, TextParams

DENSE = ["vowel", "segment", "satimage", "pendigits", "letter", "usps"]
TEXT = ["20news", "debian-section", "naics", "debian-maintainer"]


def available() -> list[str]:
    """The names that :func:`load` takes here."""
    return ["digits", "docstrings", *([*DENSE, *TEXT] if _folder() else [])]


@cache
def load(name: str) -> tuple[sp.csr_matrix, NDArray[np.int32]]:
    """Training part of a set: X (n, d) CSR float64, y (n,) class indices."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return sp.csr_matrix(X / 16), y.astype(np.int32)
    if name == "docstrings":
        texts, labels = zip(*docstrings(), strict=True)
        _, X = TextFeatures.fit(texts, TextParams())
        return X, np.unique(labels, return_inverse=True)[1].astype(np.int32)
    X, y, *_ = _parts(name)
    return sp.csr_matrix(X, dtype=np.float64), np.asarray(y, dtype=np.int32)


def load_test(name: str) -> tuple[sp.csr_matrix, NDArray[np.int32]]:
    """The part for testing of a set that has one: all but digits and docstrings."""
    _, _, X, y, *_ = _parts(name)
    return sp.csr_matrix(X, dtype=np.float64), np.asarray(y, dtype=np.int32)


@cache
def _parts(name: str) -> tuple[Any, ...]:
    return _loader()(name)


def _folder() -> Path | None:
    folder = os.environ.get("POLYMARGIN_BENCH_DATA")
    return Path(folder) if folder else None


@cache
def _loader() -> Callable[[str], tuple[Any, ...]]:
    folder = _folder()
    if folder is None:
        raise SystemExit("POLYMARGIN_BENCH_DATA is not set; only digits and docstrings are at hand")
    spec = importlib.util.spec_from_file_location("bench_data", folder / "load.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.bench  # type: ignore[no-any-return]
