"""The data sets of the benchmarks: digits and docstrings always, others where POLYMARGIN_BENCH_DATA names their folder.

That folder holds a ``load.py`` with ``bench(name) -> X_train, y_train, X_test, y_test, label names``; for sets with a
label tree also ``edges(name)`` and, where labels are paths, ``tree(name) -> X, labels of every row, split, edges``.
"""

import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from app.corpus import docstrings
from app.features.text import TextFeatures, TextParams
from solvers.problem import Problem
from solvers.taxonomy import Taxonomy

DENSE = ["vowel", "segment", "satimage", "pendigits", "letter", "usps"]
TEXT = ["20news", "debian-section", "naics", "debian-maintainer"]
TREE = ["imclef07a", "20news", "naics"]


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


def load_tree(name: str) -> tuple[Problem, sp.csr_matrix, NDArray[np.int32]]:
    """Training part of a set of ``TREE`` with its label tree, and the rows and nodes for testing; rows of length 1."""
    source = _loader()
    if name == "imclef07a":
        X, labels, split, edges = source.tree(name)
        train, nodes = split == "train", Taxonomy.from_edges(edges)
        # the deepest label of a row names its path
        y = np.array([max(row, key=lambda label: nodes.level[nodes.find([label])[0]]) for row in labels])
        X, y, X_test, y_test = X[train], y[train], X[~train], y[~train]
    else:
        X, y, X_test, y_test, names = source.bench(name)
        y, y_test = names[y], names[y_test]
    tree = Taxonomy.from_edges(source.edges(name))
    classes, index = np.unique(y.astype(str), return_inverse=True)
    problem = Problem.check(normalize(X), index, classes.tolist(), taxonomy=tree)
    return problem, sp.csr_matrix(normalize(X_test)), tree.find(y_test.astype(str).tolist())


@cache
def _parts(name: str) -> tuple[Any, ...]:
    parts: tuple[Any, ...] = _loader().bench(name)
    return parts


def _folder() -> Path | None:
    folder = os.environ.get("POLYMARGIN_BENCH_DATA")
    return Path(folder) if folder else None


@cache
def _loader() -> Any:
    folder = _folder()
    if folder is None:
        raise SystemExit("POLYMARGIN_BENCH_DATA is not set; only digits and docstrings are at hand")
    spec = importlib.util.spec_from_file_location("bench_data", folder / "load.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
