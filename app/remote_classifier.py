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

from app.client import Polymargin

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
        Other fields of app.schemas.jobs.jobs.TrainRequest: hierarchy, seed, threads, text, ...; with a space those of
        app.schemas.jobs.tuning.TuneRequest: measure, folds, draws, texts, budget_seconds, ...
    space : sequence of mapping, optional
        Settings to try, of which the best are taken, in place of ``solver`` and ``params``; see
        app.schemas.jobs.tuning.Candidate.
    test_fraction : float
        Rows that the service holds out for its own measures. By default 0: scikit-learn's tools hold out their own.
    keep_dataset : bool
        Leave the uploaded rows in the service, under the name of the model and a number; else they are deleted, and the
        version keeps their hash.
    url, api_key : str, optional
        As :class:`app.client.Polymargin` takes them.
    timeout : float, optional
        Seconds that training may take.

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
    version_ : app.schemas.models.models.ModelVersion
        What training has made; predictions are this version's.
    job_ : app.remote.jobs.Job
        What has made it; of a tuning ``job_.result`` tells the trial and its measures.
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
        X : sequence of str, or matrix, shape (n_samples, n_features)
        y : sequence, shape (n_samples,)
            Labels; predictions are of their type.

        Raises
        ------
        ValueError
            X and y differ in length.
        app.remote.errors.ClientError
            The service refuses, or the job fails.
        """
        labels = np.asarray(y)
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if n_rows != len(labels):
            raise ValueError(f"X has {n_rows} rows and y {len(labels)} labels")
        self.classes_ = np.unique(labels)
        self._known = {str(label): label for label in self.classes_}
        with self._client() as client, tempfile.TemporaryDirectory() as folder:
            path, self._texts = _written(X, labels, Path(folder))
            if not self._texts:
                self.n_features_in_ = int(np.shape(X)[1])
            name = f"{self.model[:90]}-{np.random.default_rng().integers(2**62):x}"
            dataset = client.datasets.upload(path, name, "jsonl").wait(self.timeout)
            try:
                request = {"test_fraction": self.test_fraction, **(self.options or {})}
                if self.space is None:
                    job = client.train(name, self.model, self.solver, self.params, **request).wait(self.timeout)
                else:
                    job = client.tune(name, self.model, self.space, **request).wait(self.timeout)
            finally:
                if not self.keep_dataset:
                    client.datasets.delete(dataset.id, force=True)
            assert job.result is not None
            assert job.result.version is not None
            self.job_ = job
            self.version_ = client.models.version(self.model, job.result.version)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels, shape (n_samples,)."""
        return np.array([self._known.get(each.label, each.label) for each in self._answers(X, 1)])

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
            instances = _instances(X if self._texts else sp.csr_matrix(X)[:, : self.version_.n_features], self._texts)
            while batch := list(islice(instances, BATCH)):
                yield from client.predict(self.model, batch, top_k, self.version_.version).predictions

    def _client(self) -> Polymargin:
        return Polymargin(self.url, self.api_key)


def _written(X: Any, labels: NDArray[Any], folder: Path) -> tuple[Path, bool]:
    """Rows as a file that the service reads, and whether they are texts."""
    path = folder / "rows.jsonl"
    texts = not sp.issparse(X) and (not hasattr(X, "dtype") or X.dtype.kind in "OU") and isinstance(X[0], str)
    with path.open("w", encoding="utf-8") as file:
        for instance, label in zip(_instances(X, texts), labels, strict=True):
            file.write(json.dumps({**instance, "label": str(label)}, ensure_ascii=False) + "\n")
    return path, texts


def _instances(X: Any, texts: bool) -> Iterator[dict[str, Any]]:
    if texts:
        yield from ({"text": text} for text in X)
        return
    matrix = sp.csr_matrix(X, dtype=np.float64)
    for begin, end in pairwise(matrix.indptr.tolist()):
        yield {"indices": matrix.indices[begin:end].tolist(), "values": matrix.data[begin:end].tolist()}
