"""The programs that are asked who answers best: what each tries on rows held out, and how it is called.

One thread each. Features are the same for all but fastText, which reads the texts.
"""

import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import ComplementNB
from sklearn.svm import SVC, LinearSVC

from benchmarks.sets import Rows
from solvers.estimator import PolymarginClassifier

Setting = dict[str, Any]
Scores = NDArray[np.floating[Any]]

MOST_CLASSES_OF_LOGISTIC = 100
BUCKETS = 200_000
LISTED = 10


class Fitted(NamedTuple):
    """A trained model.

    Attributes
    ----------
    seconds : float
        Processor seconds of the training alone.
    scores : callable
        Of rows: float array, shape (n_samples, n_classes), minus infinity for a class that is not listed.
    n_bytes : callable
        The size of the model.
    probabilities : bool
        The scores are probabilities, or with ``logarithms`` logarithms of them.
    """

    seconds: float
    scores: Callable[[Rows], Scores]
    n_bytes: Callable[[], int]
    probabilities: bool = False
    logarithms: bool = False
    said: str = ""


class Program(NamedTuple):
    """A program: its settings to choose from, how it is trained with one, and why it is left out of a set, if it is."""

    name: str
    grid: list[Setting]
    fit: Callable[[Setting, Rows, int], Fitted]
    refused: Callable[[Rows, int], str] = lambda rows, n_classes: ""
    ours: bool = False


class _Clock:
    seconds = 0.0


@contextmanager
def _timed() -> Iterator[_Clock]:
    clock, began = _Clock(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield clock
    clock.seconds = time.process_time() - began


def _ours(method: str, setting: Setting, rows: Rows, n_classes: int) -> Fitted:
    with _timed() as clock:
        classifier = PolymarginClassifier(method, **setting).fit(rows.X, rows.y)
    model = classifier.model_

    def scores(asked: Rows) -> Scores:
        return _spread(np.asarray(model.scores(asked.X)), classifier.classes_, n_classes, -np.inf)

    chosen = method == "auto"
    said = " + ".join(_described(member) for member in model.record["members"]) if chosen else ""
    size = lambda: sum(array.nbytes for array in model.arrays().values())  # noqa: E731
    return Fitted(clock.seconds, scores, size, chosen, chosen, said)


def _described(member: dict[str, Any]) -> str:
    params = member.get("params", {})
    shown = [str(params[name]) for name in ("clustering", "kernel") if name in params]
    shown += [f"{name} {params[name]:.3g}" for name in ("C", "gamma") if name in params]
    return member["solver"] + (f" ({', '.join(shown)})" if shown else "")


def _sklearn(make: Callable[..., Any], dense: bool, setting: Setting, rows: Rows, n_classes: int) -> Fitted:
    model = make(**setting)
    X = rows.X.toarray() if dense else rows.X
    with _timed() as clock:
        model.fit(X, rows.y)
    told = hasattr(model, "predict_proba")

    def scores(asked: Rows) -> Scores:
        given = asked.X.toarray() if dense else asked.X
        found = model.predict_proba(given) if told else model.decision_function(given)
        return _spread(found, model.classes_, n_classes, 0.0 if told else -np.inf)

    return Fitted(clock.seconds, scores, lambda: _sklearn_bytes(model), told)


def _sklearn_bytes(model: Any) -> int:
    if hasattr(model, "booster_"):
        return len(model.booster_.model_to_string())
    if hasattr(model, "estimators_"):
        trees = [tree.tree_.__getstate__() for tree in model.estimators_]
        return sum(tree["nodes"].nbytes + tree["values"].nbytes for tree in trees)
    arrays = ["coef_", "intercept_", "feature_log_prob_", "class_log_prior_"]
    if isinstance(model, SVC):
        arrays = ["support_vectors_", "dual_coef_", "intercept_"]
    found = [getattr(model, name) for name in arrays if hasattr(model, name)]
    return sum(each.data.nbytes + each.indices.nbytes if sp.issparse(each) else each.nbytes for each in found)


def _omikuji(fixed: Setting, setting: Setting, rows: Rows, n_classes: int) -> Fitted:
    import omikuji

    params = omikuji.Model.default_hyper_param()
    for name, value in (fixed | setting).items():
        setattr(params, name, value)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.txt")
        with path.open("w") as file:
            # it refuses rows without features
            known = rows.chosen(np.diff(rows.X.indptr) > 0)
            file.write(f"{known.X.shape[0]} {known.X.shape[1]} {n_classes}\n")
            for label, pairs in zip(known.y, _pairs(known.X), strict=True):
                file.write(f"{label} " + " ".join(f"{j}:{value:.8g}" for j, value in pairs) + "\n")
        with _quiet(), _timed() as clock:
            model = omikuji.Model.train_on_data(str(path), params, n_threads=1)
    model.init_prediction_thread_pool(1)

    def scores(asked: Rows) -> Scores:
        found = np.full((asked.X.shape[0], n_classes), -np.inf, np.float32)
        for row, pairs in zip(found, _pairs(asked.X), strict=True):
            for label, value in model.predict(pairs, top_k=LISTED):
                row[label] = value
        return found

    def n_bytes() -> int:
        with tempfile.TemporaryDirectory() as folder:
            with _quiet():
                model.save(folder)
            return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())

    return Fitted(clock.seconds, scores, n_bytes)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what compiled code writes to stdout and stderr."""
    sys.stdout.flush()
    kept = [os.dup(number) for number in (1, 2)]
    with open(os.devnull, "w") as nowhere:
        try:
            for number in (1, 2):
                os.dup2(nowhere.fileno(), number)
            yield
        finally:
            for number, old in zip((1, 2), kept, strict=True):
                os.dup2(old, number)
                os.close(old)


def _pairs(X: sp.csr_matrix) -> Iterator[list[tuple[int, float]]]:
    for begin, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield list(zip(X.indices[begin:end].tolist(), X.data[begin:end].tolist(), strict=True))


def _fasttext(setting: Setting, rows: Rows, n_classes: int) -> Fitted:
    import fasttext

    fasttext.FastText.eprint = lambda *_: None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.txt")
        lines = zip(rows.y, _words(rows), strict=True)
        path.write_text("".join(f"__label__{label} {words}\n" for label, words in lines), encoding="utf8")
        with _timed() as clock:
            model = fasttext.train_supervised(
                str(path), dim=100, bucket=BUCKETS, minCount=1, thread=1, verbose=0, **setting
            )

    def scores(asked: Rows) -> Scores:
        found = np.zeros((asked.X.shape[0], n_classes), np.float32)
        # its own predict() fails with numpy 2, and for lists gives one probability to all labels with pybind11 3
        for row, words in zip(found, _words(asked), strict=True):
            for value, name in model.f.predict(words + "\n", -1, 0.0, "strict"):
                row[int(name.removeprefix("__label__"))] = min(value, 1.0)
        return found

    return Fitted(
        clock.seconds, scores, lambda: model.get_input_matrix().nbytes + model.get_output_matrix().nbytes, True
    )


def _words(rows: Rows) -> list[str]:
    """Texts as TF-IDF divides them."""
    assert rows.texts is not None
    return [" ".join(re.findall(r"\b\w\w+\b", text.lower())) for text in rows.texts]


def _spread(found: Scores, classes: NDArray[Any], n_classes: int, otherwise: float) -> Scores:
    """Columns of all classes, where some had no row."""
    if len(classes) == n_classes:
        return found
    scores = np.full((found.shape[0], n_classes), otherwise, found.dtype)
    scores[:, np.asarray(classes, int)] = found
    return scores


def _lightgbm(**setting: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, verbose=-1, random_state=0, **setting)


def _grid(name: str, *values: Any, **others: Any) -> list[Setting]:
    return [{name: value} | others for value in values]


def _texts_only(rows: Rows, n_classes: int) -> str:
    return "" if rows.texts is not None else "of texts only"


def _dense_only(rows: Rows, n_classes: int) -> str:
    return "" if rows.texts is None else "of dense features only"


def _few_classes(rows: Rows, n_classes: int) -> str:
    return "" if n_classes <= MOST_CLASSES_OF_LOGISTIC else f"more than {MOST_CLASSES_OF_LOGISTIC} classes"


def _own(name: str, grid: list[Setting], method: str) -> Program:
    return Program(name, grid, partial(_ours, method), ours=True)


def _peer(name: str, grid: list[Setting], make: Callable[..., Any], *refused: Any, dense: bool = False) -> Program:
    return Program(name, grid, partial(_sklearn, make, dense), *refused)


# the middle first: where time is short, that has been tried
SQUARED = {"loss": "squared_hinge", "bias": 1.0}
PROGRAMS = [
    _own("auto", [{}], "auto"),
    _own("weston_watkins, C = 1", [{"C": 1.0}], "weston_watkins"),
    _own("crammer_singer", _grid("C", 1.0, 0.3, 3.0, 0.1, 10.0, bias=1.0), "crammer_singer"),
    _own("one_vs_rest, squared hinge", _grid("C", 0.3, 1.0, 0.1, 3.0, 0.03, **SQUARED), "one_vs_rest"),
    _own("label_trees", _grid("C", 1.0, 0.3, 3.0), "label_trees"),
    _peer("LinearSVC", _grid("C", 0.3, 1.0, 0.1, 3.0, 0.03), partial(LinearSVC, random_state=0)),
    _peer(
        "LogisticRegression",
        _grid("C", 10.0, 100.0, 1.0),
        partial(LogisticRegression, max_iter=300),
        _few_classes,
    ),
    _peer("SGD, log loss", _grid("alpha", 1e-5, 1e-6, 1e-4), partial(SGDClassifier, loss="log_loss", random_state=0)),
    _peer("SGD, hinge", _grid("alpha", 1e-5, 1e-6, 1e-4), partial(SGDClassifier, loss="hinge", random_state=0)),
    _peer("ComplementNB", _grid("alpha", 0.1, 0.3, 0.03, 1.0, 0.01), ComplementNB, _texts_only),
    Program("Omikuji, Parabel", _grid("linear_c", 1.0, 0.3, 3.0), partial(_omikuji, {})),
    Program(
        "Omikuji, Bonsai",
        _grid("linear_c", 1.0, 0.3, 3.0),
        partial(_omikuji, {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3}),
    ),
    Program(
        "fastText",
        [
            {"lr": 0.5, "epoch": 50, "wordNgrams": 1},
            {"lr": 1.0, "epoch": 50, "wordNgrams": 1},
            {"lr": 1.0, "epoch": 50, "wordNgrams": 2},
        ],
        _fasttext,
        _texts_only,
    ),
    _peer(
        "RandomForest",
        _grid("max_features", "sqrt", 0.3, n_estimators=300),
        partial(RandomForestClassifier, n_jobs=1, random_state=0),
        _dense_only,
        dense=True,
    ),
    _peer(
        "LightGBM",
        [
            {"n_estimators": 100, "learning_rate": 0.1, "num_leaves": 31},
            {"n_estimators": 300, "learning_rate": 0.05, "num_leaves": 31},
            {"n_estimators": 200, "learning_rate": 0.1, "num_leaves": 15},
        ],
        _lightgbm,
        _dense_only,
        dense=True,
    ),
    _peer(
        "SVC, RBF kernel",
        [{"C": C, "gamma": gamma} for gamma in ("scale", 0.1, 0.03, 0.3) for C in (10.0, 1.0)],
        SVC,
        _dense_only,
        dense=True,
    ),
]
