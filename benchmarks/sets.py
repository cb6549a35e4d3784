"""The data sets of the benchmarks: digits and docstrings always, others where POLYMARGIN_BENCH_DATA names their folder.

That folder holds a ``load.py`` with ``bench(name) -> X_train, y_train, X_test, y_test, label names``; for sets with a
label tree also ``edges(name)`` and, where labels are paths, ``tree(name) -> X, labels of every row, split, edges``;
texts come as ``rows(name)``, dicts.
"""

import importlib.util
import json
import os
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler, normalize

from app.datasets.recipe_schemas import TextRecipe
from app.features.text import TextFeatures
from app.operation.corpus import docstrings, write_docstrings
from solvers.core.problem import Problem
from solvers.labels.label_sets import of_names, of_nodes
from solvers.labels.taxonomy import Taxonomy

DENSE = ["vowel", "segment", "satimage", "pendigits", "letter", "usps"]
TEXT = ["20news", "debian-section", "naics", "debian-maintainer"]
TREE = ["imclef07a", "20news", "naics"]
MULTILABEL = ["enron", "cellcycle_fun", "seq_fun", "debian-tags"]


class Tree(NamedTuple):
    """The label tree of a set whose rows have one label.

    Attributes
    ----------
    edges : list of (str, str)
        Parents and children.
    paths : array of str, shape (n_classes, depth)
        The nodes from below the root to each class, which are leaves of one level.
    """

    edges: list[tuple[str, str]]
    paths: NDArray[np.str_]

    @property
    def names(self) -> NDArray[np.str_]:
        """Of the classes, shape (n_classes,)."""
        return self.paths[:, -1]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a set.

    Attributes
    ----------
    X : csr_matrix of float64, shape (n_samples, n_features)
    y : int32 array, shape (n_samples,)
        Class indices.
    texts : object array of str, shape (n_samples,), or None
        What the features of a set of texts were made of.
    tree : Tree or None
    """

    X: sp.csr_matrix
    y: NDArray[np.int32]
    texts: NDArray[np.object_] | None = None
    tree: Tree | None = None

    def chosen(self, mask: NDArray[np.bool_]) -> "Rows":
        """Some of the rows."""
        return Rows(self.X[mask], self.y[mask], None if self.texts is None else self.texts[mask], self.tree)


def available() -> list[str]:
    """The names that :func:`load` takes here."""
    return ["digits", "docstrings", *([*DENSE, *TEXT] if folder() else [])]


@cache
def load(name: str) -> tuple[sp.csr_matrix, NDArray[np.int32]]:
    """Training part of a set: X (n, d) CSR float64, y (n,) class indices."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return sp.csr_matrix(X / 16), y.astype(np.int32)
    if name == "docstrings":
        texts, labels = zip(*docstrings(), strict=True)
        _, X = TextFeatures.fit(texts, TextRecipe())
        return X, np.unique(labels, return_inverse=True)[1].astype(np.int32)
    X, y, *_ = _parts(name)
    return sp.csr_matrix(X, dtype=np.float64), np.asarray(y, dtype=np.int32)


def load_test(name: str) -> tuple[sp.csr_matrix, NDArray[np.int32]]:
    """The part for testing of a set that has one: all but digits and docstrings."""
    _, _, X, y, *_ = _parts(name)
    return sp.csr_matrix(X, dtype=np.float64), np.asarray(y, dtype=np.int32)


def load_rows(name: str) -> tuple[Rows, Rows]:
    """The parts for training and testing, with texts or a label tree of sets that have them.

    Docstrings are divided as the demo divides them.
    """
    if name in DENSE:
        return Rows(*load(name)), Rows(*load_test(name))
    if name == "imclef07a":
        return _rows_of_tree(name)
    if name != "docstrings":
        parts = _text_parts(name)
        return Rows(*load(name), parts["train"]), Rows(*load_test(name), parts["test"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "docstrings.jsonl")
        write_docstrings(path)
        rows = [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]
    texts = np.array([row["text"] for row in rows], object)
    y = np.unique([row["label"] for row in rows], return_inverse=True)[1].astype(np.int32)
    train = np.array([row["split"] == "train" for row in rows])
    features, X = TextFeatures.fit(texts[train], TextRecipe())
    X_test = sp.csr_matrix(features.transform(texts[~train]))
    return Rows(sp.csr_matrix(X), y[train], texts[train]), Rows(X_test, y[~train], texts[~train])


def load_tree(name: str) -> tuple[Problem, sp.csr_matrix, NDArray[np.int32]]:
    """Training part of a set of ``TREE`` with its label tree, and the rows and nodes for testing; rows of length 1.

    Also of docstrings, where modules are in packages, and every fourth row is for testing.
    """
    if name == "docstrings":
        return _docstrings_tree()
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


def _rows_of_tree(name: str) -> tuple[Rows, Rows]:
    """The rows of :func:`load_tree` by classes, where these are leaves of one level."""
    problem, X_test, nodes = load_tree(name)
    taxonomy = problem.taxonomy
    assert taxonomy is not None
    at = taxonomy.find(list(problem.classes))
    tree = Tree(_loader().edges(name), np.array([[taxonomy.names[i] for i in taxonomy.path(int(node))] for node in at]))
    of_node = np.full(taxonomy.n_nodes, -1, np.int32)
    of_node[at] = np.arange(len(at))
    return Rows(problem.X, problem.y, tree=tree), Rows(X_test, of_node[nodes], tree=tree)


def load_sets(name: str) -> tuple[Problem, sp.csr_matrix, sp.csr_matrix]:
    """Training part of a set with sets of labels, and the rows and sets for testing; rows of length 1.

    The features of the yeast sets, whose scales differ by orders of magnitude, have mean 0 and variance 1 before.
    Of ``TREE`` and docstrings the sets are the paths to single labels.
    """
    if name not in MULTILABEL:
        problem, X_test, y_test = load_tree(name)
        assert problem.taxonomy is not None
        sets = Problem.check_sets(problem.X, problem.label_sets(), problem.taxonomy)
        return sets, X_test, of_nodes(problem.taxonomy, y_test)
    source = _loader()
    if name == "debian-tags":
        rows = source.rows("debian")
        train = np.array([row["split"] == "train" for row in rows])
        tfidf = TfidfVectorizer(min_df=2, sublinear_tf=True).fit(
            [row["text"] for row in rows if row["split"] == "train"]
        )
        X, labels = tfidf.transform([row["text"] for row in rows]), [row["tags"] for row in rows]
    else:
        X, labels, split, _ = source.tree(name)
        train = split == "train"
        if name != "enron":
            X = sp.csr_matrix(StandardScaler().fit(X[train].toarray()).transform(X.toarray()))
    tree = Taxonomy.from_edges(source.edges(name))
    if name == "debian-tags":
        # a few tags are finer than the tree, which has what comes before their last colon
        known = set(tree.names)
        coarser = ((tag if tag in known else tag.rpartition(":")[0] for tag in row) for row in labels)
        labels = [[tag for tag in row if tag in known] for row in coarser]
    sets, _ = of_names(tree, labels)
    tests = ~train if name in ("debian-tags", "enron") else split == "test"
    X = sp.csr_matrix(normalize(X))
    return Problem.check_sets(X[train], sets[train], tree), X[tests], sets[tests]


def _docstrings_tree() -> tuple[Problem, sp.csr_matrix, NDArray[np.int32]]:
    X, y = load("docstrings")
    names = sorted({label for _, label in docstrings()})
    paths = {".".join(name.split(".")[:depth]) for name in names for depth in range(1, name.count(".") + 2)}
    tree = Taxonomy.from_edges([(path.rpartition(".")[0] or "root", path) for path in sorted(paths)])
    held = np.arange(len(y)) % 4 == 3
    classes, index = np.unique(np.array(names)[y[~held]], return_inverse=True)
    problem = Problem.check(normalize(X[~held]), index, classes.tolist(), taxonomy=tree)
    return problem, sp.csr_matrix(normalize(X[held])), tree.find(np.array(names)[y[held]].tolist())


def _text_parts(name: str) -> dict[str, NDArray[np.object_]]:
    """The texts of each part, of the same rows in the same order as :func:`_parts` has them."""
    source = _loader()
    file, label, at_least = source.TEXT[name]
    rows = source.rows(file)
    n_rows = Counter(row[label] for row in rows if row["split"] == "train")
    kept = [row for row in rows if n_rows[row[label]] >= at_least]
    return {part: np.array([row["text"] for row in kept if row["split"] == part], object) for part in ("train", "test")}


@cache
def _parts(name: str) -> tuple[Any, ...]:
    parts: tuple[Any, ...] = _loader().bench(name)
    return parts


def folder() -> Path | None:
    """The folder of real sets, where there is one."""
    given = os.environ.get("POLYMARGIN_BENCH_DATA")
    return Path(given) if given else None


@cache
def _loader() -> Any:
    where = folder()
    if where is None:
        raise SystemExit("POLYMARGIN_BENCH_DATA is not set; only digits and docstrings are at hand")
    spec = importlib.util.spec_from_file_location("bench_data", where / "load.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
