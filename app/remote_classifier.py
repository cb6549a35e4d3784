"""A remote service behind scikit-learn's face: ``RemoteClassifier("topics").fit(texts, labels).predict(more)``."""

import json
import tempfile
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, compress, islice, pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from app.client import Client
from app.formats.label_names import label_problem
from app.plurals import counted
from app.predictions.client import sparse_rows
from app.remote.tables import package_of
from app.values import normalized, written
from solvers.labels.given import kept_weights, require_labels

BATCH = 500


class RemoteClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Trains and predicts in a service of Polymargin.

    Parameters
    ----------
    model : str
        Each ``fit`` gives the model of this name a new version.
    solver : str
    params : mapping, optional
        The solver's parameters.
    options : mapping, optional
        Other fields of app.jobs.schemas.TrainRequest: hierarchy, seed, threads, text, ...; with a space those of
        app.jobs.request_schemas.TuneRequest: measure, folds, draws, texts, budget_seconds, ...
    space : sequence of mapping, optional
        Settings to try, of which the best are taken, in place of ``solver`` and ``params``; see
        app.jobs.request_schemas.Candidate.
    test_fraction : float
        Rows that the service holds out for its own measures. By default 0: scikit-learn's tools hold out their own.
    keep_dataset : bool
        Leave the uploaded rows in the service, under the name of the model and a number; else they are deleted, and the
        version keeps their hash.
    url, api_key : str, optional
        As :class:`app.client.Client` takes them.
    timeout : float, optional
        Seconds that training may take.

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
    version_ : app.models.schemas.ModelVersion
        What training has made; predictions are this version's.
    job_ : app.jobs.client.Job
        The job that made it; the ``job_.result`` of a tuning has the trial and its measures.
    n_features_in_ : int
        Of matrices.
    feature_names_in_ : array, shape (n_features_in_,)
        Of data frames of numbers, if all columns have strings as names. The version knows the names, too.
    """

    def __init__(
        self,
        model: str,
        solver: str = "auto",
        params: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        space: Sequence[Mapping[str, Any]] | None = None,
        test_fraction: float = 0.0,
        keep_dataset: bool = False,
        url: str | None = None,
        api_key: str | None = None,
        timeout: float | None = None,
    ) -> None:
        self.model = model
        self.solver = solver
        self.params = params
        self.options = options
        self.space = space
        self.test_fraction = test_fraction
        self.keep_dataset = keep_dataset
        self.url = url
        self.api_key = api_key
        self.timeout = timeout

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> "RemoteClassifier":
        """Upload rows, train a version of the model, and wait for it.

        Parameters
        ----------
        X : sequence of str, a data frame of one column of texts or of numbers, or matrix, shape (n_samples, n_features)
        y : sequence, shape (n_samples,), or list of lists, or indicator matrix, shape (n_samples, n_labels)
            Labels, or sets of labels. Predictions have the form of y, and are elements of ``classes_``.
        sample_weight : array, shape (n_samples,), optional
            Weights of the rows; rows of weight 0 are left out.

        Raises
        ------
        ValueError
            X and y differ in length, a number is NaN or infinite, a label is missing or has control characters, or the
            service would read two labels as one.
        app.remote.errors.ClientError
            The service refuses, or the job fails.
        """
        X = self._rows(X, reset=True)
        n_rows, n_labels = (each.shape[0] if hasattr(each, "shape") else len(each) for each in (X, y))
        if n_rows != n_labels:
            raise ValueError(f"X has {n_rows} rows, but y has {n_labels} labels")
        keep, weights = kept_weights(sample_weight, (n_rows,))
        labels = self._labels(y, keep)
        if not keep.all():
            X = list(compress(X, keep)) if self._texts else X[keep]
        with self._client() as client, tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows.jsonl")
            self._write(path, X, labels, weights)
            name = f"{self.model[:90]}-{np.random.default_rng().integers(2**62):x}"
            dataset = client.datasets.upload(path, name, "jsonl", progress=False, **self._label_options())
            dataset.wait(self.timeout, progress=False)
            try:
                request = {"test_fraction": self.test_fraction, **(self.options or {})}
                if self.space is None:
                    job = client.train(name, self.model, self.solver, self.params, **request).wait(
                        self.timeout, progress=False
                    )
                else:
                    job = client.tune(name, self.model, self.space, **request).wait(self.timeout, progress=False)
            finally:
                if not self.keep_dataset:
                    client.datasets.delete(dataset.id, force=True)
            assert job.result is not None
            assert job.result.version is not None
            self.job_ = job
            self.version_ = client.models.version(self.model, job.result.version)
        return self

    def predict(self, X: Any) -> Any:
        """Labels, shape (n_samples,); of models that were fitted to sets, sets in the form that they were given in.

        Raises
        ------
        ValueError
            X has other columns than the training rows, or the same columns in another order.
        """
        answers = list(self._answers(X, 1))
        if self._form == "labels":
            places = [self._places.get(each.label, -1) for each in answers]
            # along a hierarchy, answers may be nodes that no training row has
            return (
                self.classes_[places] if min(places) >= 0 else np.array([self._label(each.label) for each in answers])
            )
        sets = [[self._label(label.label) for label in each.labels] for each in answers]
        if self._form == "lists":
            return sets
        column = {label: place for place, label in enumerate(self.classes_.tolist())}
        indicators = np.zeros((len(sets), len(column)), int)
        for row, labels in enumerate(sets):
            indicators[row, [column[label] for label in labels if label in column]] = 1
        return sp.csr_matrix(indicators) if self._form == "sparse" else indicators

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores, shape (n_samples, n_classes), in the order of ``classes_``.

        Of two classes with one label per row, by how much the second one leads: shape (n_samples,), as scikit-learn's
        scorers expect.
        """
        scores = self._table(X, "score")
        binary = self._form == "labels" and scores.shape[1] == 2
        return scores[:, 1] - scores[:, 0] if binary else scores

    @available_if(lambda self: self._require_probabilities())  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities, shape (n_samples, n_classes), in the order of ``classes_``.

        Raises
        ------
        AttributeError
            The version has none; those that ``auto`` trains have. Before ``fit``, ``solver`` or ``space`` decides.
        """
        found = self._table(X, "probability")
        # single precision rounds the sum; the probabilities of sets, and of the first of many labels, have other sums
        total = found.sum(axis=1, keepdims=True)
        return np.where(np.abs(total - 1.0) < 1e-4, found / np.where(total > 0.0, total, 1.0), found)

    def _require_probabilities(self) -> bool:
        fitted = hasattr(self, "version_")
        solvers = {self.version_.solver} if fitted else {each.get("solver") for each in self.space or [vars(self)]}
        if "auto" not in solvers:
            raise AttributeError(self._why_none("probability") if fitted else "only solver='auto' has probabilities")
        return True

    def _labels(self, y: Any, keep: NDArray[np.bool_]) -> Sequence[Any]:
        """The label or the labels of each row that is kept; sets their classes and the form of y."""
        shape = getattr(y, "shape", None)
        labels: list[Any]
        if shape is not None and len(shape) == 2 and shape[1] > 1:
            self._form = "sparse" if sp.issparse(y) else "indicators"
            given = sp.csr_matrix(getattr(y, "values", y))[keep]
            self.classes_ = np.asarray(y.columns) if hasattr(y, "columns") else np.arange(shape[1])
            labels = [self.classes_[given.indices[a:b]].tolist() for a, b in pairwise(given.indptr.tolist())]
        elif shape is None and len(y) and all(isinstance(one, (list, tuple, set, frozenset)) for one in y):
            self._form = "lists"
            labels = [list(one) for one in compress(y, keep)]
            self.classes_ = np.array(sorted({label for one in labels for label in one}))
        else:
            self._form = "labels"
            require_labels(y)
            column = np.asarray(y).ravel()[keep]
            if column.dtype.kind == "f":
                check_classification_targets(column)
            self.classes_, labels = np.unique(column), column.tolist()
        # arrays of strings drop NULs at their ends, so what was given is checked, not the classes
        said = self.classes_.tolist() if shape is not None else compress(y, keep)
        for label in chain.from_iterable(said) if self._form == "lists" else said:
            if (problem := label_problem(_name(label))) is not None:
                raise ValueError(f"y has the label {label!r}, which the service refuses: {problem}")
        self._places: dict[str, int] = {}
        for place, label in enumerate(self.classes_.tolist()):
            other = self._places.setdefault(_name(label), place)
            if other != place:
                one = self.classes_.tolist()[other]
                raise ValueError(f"y has the labels {one!r} and {label!r}, which the service reads as one: rename one")
        # the service reads <https://a.example/1> without its brackets where all labels have them
        bare = {name[1:-1]: place for name, place in self._places.items() if name[:1] + name[-1:] == "<>"}
        self._places = bare | self._places
        return labels

    def _label_options(self) -> dict[str, Any]:
        """Strings stay as they are: ``1.0`` and ``[a]`` are labels."""
        are_texts = any(isinstance(label, str) for label in self.classes_.tolist())
        return {"label_lists": "keep", "label_type": "text" if are_texts else None}

    def _label(self, name: str) -> Any:
        """The label of y that the service calls by this name; the name itself if no training row has it."""
        place = self._places.get(name)
        return name if place is None else self.classes_.tolist()[place]

    def _rows(self, X: Any, reset: bool) -> Any:
        """A list of texts, or a CSR matrix of finite numbers with the columns of the training rows; sets which.

        Raises
        ------
        ValueError
            A number is NaN or infinite, or the columns are others than those of the training rows.
        """
        texts = _texts(X)
        if reset:
            self._texts, self._names = texts is not None, None
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(self, name):
                    delattr(self, name)
        if self._texts:
            if texts is None:
                raise ValueError("X has no texts, but this classifier was fitted to texts")
            return texts
        found = validate_data(self, X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False, reset=reset)
        matrix = sp.csr_matrix(found)
        wrong = np.flatnonzero(~np.isfinite(matrix.data))
        if len(wrong):
            row = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
            raise ValueError(
                f"X has {counted(len(wrong), 'number')} that are NaN or infinite; the first is {matrix.data[wrong[0]]} "
                f"in row {row}, column {matrix.indices[wrong[0]]}"
            )
        if reset and hasattr(self, "feature_names_in_"):
            names = [unicodedata.normalize("NFC", name) for name in self.feature_names_in_.tolist()]
            self._names = names if len(set(names)) == len(names) else None
        return matrix

    def _write(self, path: Path, X: Any, labels: Sequence[Any], weights: NDArray[np.float64] | None) -> None:
        """Rows as JSON lines, of which the first has all columns that have names."""
        missing = dict.fromkeys(self._names or (), 0.0)
        weighted = repeat({}) if weights is None else ({"weight": weight} for weight in weights.tolist())
        with path.open("w", encoding="utf-8") as file:
            for row, label, weight in zip(self._instances(X), labels, weighted, strict=False):
                if missing:
                    row["features"] = missing | row["features"]
                    missing = {}
                named = [_name(one) for one in label] if isinstance(label, list) else _name(label)
                file.write(json.dumps({**row, "label": named, **weight}, ensure_ascii=False) + "\n")

    def _instances(self, X: Any) -> Iterator[dict[str, Any]]:
        """Rows as the service reads them; numbers by the names of their columns if they have names."""
        if self._texts:
            yield from ({"text": text} for text in X)
            return
        for row in sparse_rows(X):
            if self._names is None:
                yield row
            else:
                names = [self._names[at] for at in row["indices"]]
                yield {"features": dict(zip(names, row["values"], strict=True))}

    def _table(self, X: Any, field: str) -> NDArray[np.float64]:
        rows = []
        for answer in self._answers(X, min(len(self.classes_), 1000)):
            row = np.full(len(self.classes_), 0.0 if field == "probability" else -np.inf)
            for each in answer.top:
                value = getattr(each, field)
                if value is None:
                    raise AttributeError(self._why_none(field))
                if each.label in self._places:
                    row[self._places[each.label]] = value
            rows.append(row)
        return np.array(rows)

    def _why_none(self, field: str) -> str:
        version = f"{self.model}@{self.version_.version}"
        if field == "score":
            return f"{version} has no score of a label without a rival"
        return (
            f"{version} has no probability of its labels, because solver {self.version_.solver!r} has scores alone. "
            "Pass solver='auto', whose versions have calibrated probabilities; its parameter candidates names methods"
        )

    def _answers(self, X: Any, top_k: int) -> Iterator[Any]:
        check_is_fitted(self, "version_")
        X = self._rows(X, reset=False)
        if self._names is None and not self._texts:
            # columns behind the last that a training row has weigh nothing, and the service does not know them
            X = X[:, : self.version_.n_features]
        with self._client() as client:
            instances = self._instances(X)
            while batch := list(islice(instances, BATCH)):
                yield from client.predict(self.model, batch, top_k, self.version_.version).predictions

    def _client(self) -> Client:
        return Client(self.url, self.api_key)


def _texts(X: Any) -> list[str] | None:
    """The texts of a sequence, a series, or a data frame of one column; None of numbers."""
    if hasattr(X, "iloc") and X.ndim == 2:
        if X.shape[1] != 1:
            if len(X) and any(isinstance(value, str) for value in X.iloc[0]):
                raise ValueError(
                    f"X has {X.shape[1]} columns, some of them texts; expected one column of texts, or only numbers"
                )
            return None
        X = X.iloc[:, 0]
    elif package_of(X) == "polars" and X.shape[1:] == (1,):
        X = X.to_series()
    if sp.issparse(X) or getattr(getattr(X, "dtype", None), "kind", "O") not in "OU":
        return None
    return list(X) if isinstance(next(iter(X), None), str) else None


def _name(label: Any) -> str:
    """What the service calls a label of y."""
    return normalized(written(label) if isinstance(label, str | bool | int | float) else str(label))
