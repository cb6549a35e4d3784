"""How the programs that are asked who answers best are trained, and asked for scores; one thread each."""

import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from app.datasets.recipe_schemas import default_recipe
from app.features.text import TextFeatures
from benchmarks.sets import Rows
from solvers.estimator import PolymarginClassifier

Setting = dict[str, Any]
Scores = NDArray[np.floating[Any]]

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


def polymargin(method: str, setting: Setting, rows: Rows, n_classes: int) -> Fitted:
    tree = rows.tree
    hierarchy, y = (None, rows.y) if tree is None else (tree.edges, tree.names[rows.y])
    with _timed() as clock:
        classifier = PolymarginClassifier(method, hierarchy=hierarchy, **setting).fit(rows.X, y)
    model = classifier.model_

    def scores(asked: Rows) -> Scores:
        # of machines over a label tree: what leaves are ordered by
        found = np.asarray(model.ranking(asked.X).values)
        if tree is None:
            return _spread(found, classifier.classes_, n_classes, -np.inf)
        place = {name: column for column, name in enumerate(classifier.classes_.tolist())}
        columns = [column for column, name in enumerate(tree.names.tolist()) if name in place]
        return _spread(found[:, [place[tree.names[column]] for column in columns]], columns, n_classes, -np.inf)

    chosen = method == "auto"
    said = " + ".join(_described(member) for member in model.record["members"]) if chosen else ""
    size = lambda: sum(array.nbytes for array in model.arrays().values())  # noqa: E731
    return Fitted(clock.seconds, scores, size, chosen, chosen, said)


def _described(member: dict[str, Any]) -> str:
    params = member.get("params", {})
    shown = [str(params[name]) for name in ("clustering", "kernel") if name in params]
    shown += [f"{name} {params[name]:.3g}" for name in ("C", "gamma") if name in params]
    return member["solver"] + (f" ({', '.join(shown)})" if shown else "")


def scikit_learn(make: Callable[..., Any], dense: bool, setting: Setting, rows: Rows, n_classes: int) -> Fitted:
    model = make(**setting)
    X = rows.X.toarray() if dense else rows.X
    with _timed() as clock:
        model.fit(X, rows.y)
    reported = hasattr(model, "predict_proba")

    def scores(asked: Rows) -> Scores:
        given = asked.X.toarray() if dense else asked.X
        found = model.predict_proba(given) if reported else model.decision_function(given)
        return _spread(found, model.classes_, n_classes, 0.0 if reported else -np.inf)

    return Fitted(clock.seconds, scores, lambda: _sklearn_bytes(model), reported)


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


def omikuji_model(fixed: Setting, setting: Setting, rows: Rows, n_classes: int) -> Fitted:
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
        with quiet(), _timed() as clock:
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
            with quiet():
                model.save(folder)
            return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())

    return Fitted(clock.seconds, scores, n_bytes)


@contextmanager
def quiet() -> Iterator[None]:
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


def fasttext_model(setting: Setting, rows: Rows, n_classes: int) -> Fitted:
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


def _spread(found: Scores, classes: Sequence[int] | NDArray[Any], n_classes: int, otherwise: float) -> Scores:
    """Columns of all classes, where some had no row."""
    if len(classes) == n_classes:
        return found
    scores = np.full((found.shape[0], n_classes), otherwise, found.dtype)
    scores[:, np.asarray(classes, int)] = found
    return scores


def hiclass_model(make: Callable[..., Any], setting: Setting, rows: Rows, n_classes: int) -> Fitted:
    """A classifier for each inner node, whose probabilities are multiplied along a path.

    That is done here: of ``predict_proba`` of version 5.0.8 the likeliest label is another than that of ``predict``.
    """
    from hiclass import LocalClassifierPerParentNode

    tree = rows.tree
    assert tree is not None
    model = LocalClassifierPerParentNode(make(**setting))
    with _timed() as clock:
        model.fit(rows.X, tree.paths[rows.y])
    local = {node: data["classifier"] for node, data in model.hierarchy_.nodes(data=True) if "classifier" in data}
    # it names a node by its path, and puts a separator between the parts
    place = {"::HiClass::Separator::".join(path): column for column, path in enumerate(tree.paths.tolist())}

    def scores(asked: Rows) -> Scores:
        found, whole = np.zeros((asked.X.shape[0], n_classes)), {model.root_: np.ones(asked.X.shape[0])}
        while whole:
            node, above = whole.popitem()
            if node not in local:
                found[:, place[node]] = above
                continue
            p = local[node].predict_proba(asked.X)
            whole |= {name: above * p[:, column] for column, name in enumerate(local[node].classes_)}
        return found

    return Fitted(clock.seconds, scores, lambda: sum(map(_sklearn_bytes, local.values())), True)


def lightgbm_model(**setting: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, verbose=-1, random_state=0, **setting)


def from_texts(program: Program) -> Program:
    """The same program on the features that the service makes of texts by default."""

    def fit(setting: Setting, rows: Rows, n_classes: int) -> Fitted:
        assert rows.texts is not None
        with _timed() as clock:
            features, X = TextFeatures.fit(rows.texts, default_recipe("auto", n_classes))
        fitted = program.fit(setting, Rows(sp.csr_matrix(X), rows.y), n_classes)

        def scores(asked: Rows) -> Scores:
            assert asked.texts is not None
            return fitted.scores(Rows(sp.csr_matrix(features.transform(asked.texts)), asked.y))

        return fitted._replace(seconds=clock.seconds + fitted.seconds, scores=scores)

    return program._replace(name=f"{program.name}, from texts", fit=fit, refused=texts_only)


def trees_only(rows: Rows, n_classes: int) -> str:
    """Why a program is left out that takes a label tree."""
    return "" if rows.tree is not None else "of label trees only"


def texts_only(rows: Rows, n_classes: int) -> str:
    """Why a program is left out that reads texts."""
    return "" if rows.texts is not None else "of texts only"
