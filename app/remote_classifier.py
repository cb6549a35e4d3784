"""A remote service behind scikit-learn's face: ``RemoteClassifier("topics").fit(texts, labels).predict(more)``."""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from app.client import Client
from app.plurals import counted
from app.predictions.client import sparse_rows

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

    def fit(self, X: Any, y: Any) -> "RemoteClassifier":
        """Upload rows, train a version of the model, and wait for it.

        Parameters
        ----------
        X : sequence of str, a data frame of one column of texts or of numbers, or matrix, shape (n_samples, n_features)
        y : sequence, shape (n_samples,), or list of lists, or indicator matrix, shape (n_samples, n_labels)
            Labels, or sets of labels. Predictions have the form of y, and labels their type.

        Raises
        ------
        ValueError
            X and y differ in length, or a number is NaN or infinite.
        app.remote.errors.ClientError
            The service refuses, or the job fails.
        """
        X = _one_column(X)
        labels = self._labels(y)
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if n_rows != len(labels):
            raise ValueError(f"X has {n_rows} rows, but y has {len(labels)} labels")
        self._known = {str(label): label for label in self.classes_}
        X, self._texts = _rows(X)
        with self._client() as client, tempfile.TemporaryDirectory() as folder:
            path = _written(X, self._texts, labels, Path(folder))
            if not self._texts:
                self.n_features_in_ = int(np.shape(X)[1])
            name = f"{self.model[:90]}-{np.random.default_rng().integers(2**62):x}"
            dataset = client.datasets.upload(path, name, "jsonl", progress=False).wait(self.timeout, progress=False)
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
        """Labels, shape (n_samples,); of models that were fitted to sets, sets in the form that they were given in."""
        answers = list(self._answers(X, 1))
        if self._form == "labels":
            return np.array([self._known.get(each.label, each.label) for each in answers])
        sets = [[self._known.get(label.label, label.label) for label in each.labels] for each in answers]
        if self._form == "lists":
            return sets
        column = {label: place for place, label in enumerate(self.classes_.tolist())}
        indicators = np.zeros((len(sets), len(column)), int)
        for row, labels in enumerate(sets):
            indicators[row, [column[label] for label in labels if label in column]] = 1
        return sp.csr_matrix(indicators) if self._form == "sparse" else indicators

    def _labels(self, y: Any) -> Sequence[Any]:
        """The label or the labels of each row; sets their classes and the form of y."""
        shape = getattr(y, "shape", None)
        if shape is not None and len(shape) == 2 and shape[1] > 1:
            self._form = "sparse" if sp.issparse(y) else "indicators"
            given = sp.csr_matrix(getattr(y, "values", y))
            self.classes_ = np.asarray(y.columns) if hasattr(y, "columns") else np.arange(shape[1])
            return [self.classes_[given.indices[a:b]].tolist() for a, b in pairwise(given.indptr.tolist())]
        if shape is None and len(y) and all(isinstance(one, (list, tuple, set, frozenset)) for one in y):
            self._form = "lists"
            self.classes_ = np.array(sorted({label for one in y for label in one}))
            return [list(one) for one in y]
        self._form = "labels"
        labels = np.asarray(y).ravel()
        self.classes_ = np.unique(labels)
        return labels.tolist()

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores, shape (n_samples, n_classes), in the order of ``classes_``."""
        return self._table(X, "score")

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities, shape (n_samples, n_classes), in the order of ``classes_``.

        Raises
        ------
        AttributeError
            The model has none; those that ``auto`` trains have.
        """
        return self._table(X, "probability")

    def _table(self, X: Any, field: str) -> NDArray[np.float64]:
        column = {str(label): place for place, label in enumerate(self.classes_)}
        rows = []
        for answer in self._answers(X, min(len(self.classes_), 1000)):
            row = np.full(len(self.classes_), 0.0 if field == "probability" else -np.inf)
            for each in answer.top:
                value = getattr(each, field)
                if value is None:
                    raise AttributeError(f"the version of {self.model!r} that answers has no {field}")
                if each.label in column:
                    row[column[each.label]] = value
            rows.append(row)
        return np.array(rows)

    def _answers(self, X: Any, top_k: int) -> Iterator[Any]:
        check_is_fitted(self, "version_")
        with self._client() as client:
            # columns behind the last that a training row has weigh nothing, and the service does not know them
            X = _one_column(X)
            instances = _instances(X if self._texts else sp.csr_matrix(X)[:, : self.version_.n_features], self._texts)
            while batch := list(islice(instances, BATCH)):
                yield from client.predict(self.model, batch, top_k, self.version_.version).predictions

    def _client(self) -> Client:
        return Client(self.url, self.api_key)


def _one_column(X: Any) -> Any:
    """The texts of a series or of a data frame of one column, the numbers of another; all else as it is."""
    if not hasattr(X, "iloc"):
        return X
    column = X if getattr(X, "ndim", 0) == 1 else (X.iloc[:, 0] if X.shape[1] == 1 else None)
    if column is not None and isinstance(column.iloc[0], str):
        return column.tolist()
    if column is None and any(isinstance(value, str) for value in X.iloc[0]):
        raise ValueError(
            f"X has {X.shape[1]} columns, some of them texts; expected one column of texts, or only numbers"
        )
    return X.to_numpy(dtype=np.float64, na_value=np.nan)


def _rows(X: Any) -> tuple[Any, bool]:
    """The texts, or a CSR matrix of finite numbers, and whether they are texts; raises ValueError."""
    if not sp.issparse(X) and (not hasattr(X, "dtype") or X.dtype.kind in "OU") and isinstance(X[0], str):
        return X, True
    matrix = sp.csr_matrix(X, dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(matrix.data))
    if len(wrong):
        row = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
        raise ValueError(
            f"X has {counted(len(wrong), 'number')} that are NaN or infinite; the first is {matrix.data[wrong[0]]} in "
            f"row {row}, column {matrix.indices[wrong[0]]}"
        )
    return matrix, False


def _written(X: Any, texts: bool, labels: Sequence[Any], folder: Path) -> Path:
    path = folder / "rows.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for instance, label in zip(_instances(X, texts), labels, strict=True):
            named = [str(one) for one in label] if isinstance(label, list) else str(label)
            file.write(json.dumps({**instance, "label": named}, ensure_ascii=False) + "\n")
    return path


def _instances(X: Any, texts: bool) -> Iterator[dict[str, Any]]:
    if texts:
        yield from ({"text": text} for text in X)
        return
    yield from sparse_rows(sp.csr_matrix(X, dtype=np.float64))
