"""Trained models: scores, labels and top-k, and their files: a JSON manifest beside plain arrays."""

import hashlib
import importlib
import json
import math
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.labels.taxonomy import Taxonomy

Floats = NDArray[np.floating[Any]]

# The class of every kind of model that an artefact may hold, imported when a first model of its kind is met.
MODEL_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "linear": "solvers.core.model:LinearModel",
        "sparse_linear": "solvers.core.sparse_linear_model:SparseLinearModel",
        "sharded_linear": "solvers.core.sharded_linear_model:ShardedLinearModel",
        "kernel": "solvers.kernel_svm.kernel_model:KernelModel",
        "code": "solvers.output_codes.code_model:CodeModel",
        "linear_code": "solvers.output_codes.linear_code_model:LinearCodeModel",
        "stumps": "solvers.boosting.weak_learners.stumps_model:StumpsModel",
        "trees": "solvers.boosting.weak_learners.decision_trees_model:DecisionTreesModel",
        "committee": "solvers.boosting.weak_learners.committee_model:CommitteeModel",
        "taxonomy": "solvers.hierarchical.taxonomy_model:TaxonomyModel",
        "kernel_taxonomy": "solvers.hierarchical.kernel_taxonomy_model:KernelTaxonomyModel",
        "subtree": "solvers.hierarchical.subtree_model:SubtreeModel",
    }
)


class ModelError(ValueError):
    """A folder does not hold a model that this version can read, or its bytes are not those that were written."""


class Explanation(NamedTuple):
    """A prediction along a label tree, of models that predict so.

    Attributes
    ----------
    path : list of (str, float), or None
        Of models that go down the tree: the nodes from below the root to the prediction, and their margins.
    subtree : list of (str, str or None, float), or None
        Of models that name sets: the nodes of the set, parents first, their parents (None: the root) and margins.
    """

    path: list[tuple[str, float]] | None = None
    subtree: list[tuple[str, str | None, float]] | None = None


class OutputCode(NamedTuple):
    """The code of a model that has one: its matrix, shape (n_classes, n_columns), and how margins are decoded."""

    matrix: NDArray[Any]
    decoding: str


class LinearWeights(NamedTuple):
    """The weights of a linear model.

    Attributes
    ----------
    features : int64 array, shape (n_rows,)
        The features that have a row, ascending; all others weigh nothing.
    W : float array or csr_matrix, shape (n_rows, n_classes)
    intercept : float array, shape (n_classes,), optional
    """

    features: NDArray[np.int64]
    W: Any
    intercept: Floats | None

    def dense(self, begin: int = 0, end: int | None = None) -> NDArray[Any]:
        """Some rows of W, all by default, as an array."""
        rows: Any = self.W[begin:end]
        return np.asarray(rows.toarray() if isinstance(rows, sp.csr_matrix) else rows)

    def coef(self, n_features: int) -> NDArray[np.float64]:
        """Dense weights, shape (n_classes, n_features)."""
        coef = np.zeros((self.W.shape[1], n_features))
        coef[:, self.features] = self.dense().T
        return coef


class Model(ABC):
    """What training leaves behind; a kind of model names itself in ``kind`` and keeps its state in arrays.

    A new kind also gets its line in :data:`MODEL_KINDS`, by which :func:`load_model` finds it.

    Attributes
    ----------
    classes : tuple of str
        Label names in the order of the scores' columns.
    n_features : int
        Columns that a matrix to be scored must have.
    report : mapping of str to float
        What the method has to tell of its model, finite numbers by name; saved and loaded with it.
    tree : Taxonomy or None
        The label tree whose nodes are the classes, of models over one.
    in_shards : bool
        The model stays in the files that its shards have written.
    output_code : OutputCode or None
    """

    kind: ClassVar[str]
    classes: tuple[str, ...]
    n_features: int
    report: Mapping[str, float] = MappingProxyType({})
    tree: Taxonomy | None = None
    in_shards: ClassVar[bool] = False

    @abstractmethod
    def scores(self, X: sp.csr_matrix) -> Floats:
        """Scores of the rows of X: float array, shape (n_samples, n_classes); the largest is the prediction."""

    @abstractmethod
    def score_one(self, indices: NDArray[np.int32], values: NDArray[np.float64]) -> Floats:
        """Scores of one sparse example: float array, shape (n_classes,); indices distinct, in [0, n_features)."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays to be written; :meth:`from_arrays` takes them back."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, NDArray[Any]]) -> "Model":
        """A model around arrays that may be memory-mapped and read-only."""

    def predict(self, X: sp.csr_matrix, chunk_bytes: int = 64 << 20) -> NDArray[np.int64]:
        """Class indices, shape (n_samples,); scores are made for ``chunk_bytes`` bytes of rows at a time."""
        rows = max(1, chunk_bytes // (8 * len(self.classes)))
        parts = [self.scores(X[i : i + rows]).argmax(axis=1) for i in range(0, X.shape[0], rows)]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def top(
        self, indices: NDArray[np.int32], values: NDArray[np.float64], k: int = 1
    ) -> tuple[NDArray[np.int64], Floats]:
        """The k best classes of one sparse example by falling score, and their scores; ties by class index."""
        scores = self.score_one(indices, values)
        k = min(k, len(scores))
        if k == 1:
            best = np.array([scores.argmax()])
        else:
            cut = np.partition(scores, len(scores) - k)[len(scores) - k]
            above = np.flatnonzero(scores >= cut)
            best = above[np.argsort(-scores[above], kind="stable")[:k]]
        return best, scores[best]

    def predict_sets(self, X: sp.csr_matrix, chunk_bytes: int = 64 << 20) -> sp.csr_matrix | None:
        """The predicted sets of nodes, csr_matrix of bool; None of models that name one label an example."""
        return None

    def explain(self, indices: NDArray[np.int32], values: NDArray[np.float64], best: int) -> Explanation:
        """How the model comes to the prediction ``best`` of one sparse example."""
        return Explanation()

    def linear_weights(self) -> LinearWeights | None:
        """The weights of the features, of models that are linear."""
        return None

    @property
    def merge_key(self) -> Any:
        """Of models that can be merged with others, what is the same in those that go together; else None."""
        return None

    @classmethod
    def merged_margins(
        cls, names: tuple[str, ...], n_features: int, models: Sequence["Model"], leads: Sequence[float]
    ) -> "Model":
        """One model in place of several of two classes each, of the same ``merge_key``.

        Parameters
        ----------
        names : tuple of str
            Classes of the new model: one for each model.
        n_features : int
        models : sequence of Model
        leads : sequence of float
            What the difference of each model's two scores is divided by to give the score of its class.
        """
        raise TypeError(f"models of the kind {cls.kind} cannot be merged")

    def of_rows(self, rows: NDArray[np.int64], n_rows: int) -> "Model":
        """The same model where its training examples were the ``rows`` of ``n_rows`` examples.

        Only models to which examples are numbers differ: those of precomputed kernels.
        """
        return self

    @property
    def output_code(self) -> OutputCode | None:
        """The output code, of models that have one."""
        return None

    def with_last_as_intercept(self, value: float) -> "Model":
        """The same model of examples without their last feature, which is ``value`` in every one of them."""
        raise NotImplementedError(f"a {self.kind} model has no weights of features")

    @property
    def nonzero_weights(self) -> float:
        """The share of the weights of classes and features that are not zero; nan for a model without such weights."""
        return math.nan

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays().values())

    def save(self, folder: Path, details: Mapping[str, Any] | None = None) -> str:
        """Write the model to ``folder``, which appears whole or not at all; an older one there is replaced.

        Parameters
        ----------
        folder : Path
            Its parent exists.
        details : mapping, optional
            JSON that the manifest carries along: lineage, parameters.

        Returns
        -------
        str
            SHA-256 of the manifest, which names the SHA-256 of every array.
        """
        part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        hashes = {name: write_array(part / f"{name}.npy", array) for name, array in self.arrays().items()}
        return self.seal(part, hashes, folder, details)

    def seal(
        self, part: Path, hashes: Mapping[str, str], folder: Path, details: Mapping[str, Any] | None = None
    ) -> str:
        """As :meth:`save` for a model whose arrays lie in the folder ``part`` already, by :func:`write_array`."""
        manifest = {
            "format": 1,
            "kind": self.kind,
            "classes": list(self.classes),
            "n_features": self.n_features,
            "arrays": dict(hashes),
            "report": dict(self.report),
            "details": dict(details or {}),
        }
        text = json.dumps(manifest, ensure_ascii=False, allow_nan=False, sort_keys=True).encode()
        _write_synced(part / "manifest.json", text)
        _sync_folder(part)
        if folder.exists():
            shutil.rmtree(folder)
        part.rename(folder)
        _sync_folder(folder.parent)
        return hashlib.sha256(text).hexdigest()


class LinearModel(Model):
    """One weight vector a class, kept feature-major so that a sparse example reads few rows.

    Parameters
    ----------
    classes : sequence of str
    n_features : int
    features : int64 array, shape (n_rows,)
        The features that have a row, ascending; all others weigh nothing.
    W : float array, shape (n_rows, n_classes)
    intercept : float array, shape (n_classes,), optional
        What is added to the scores; None adds nothing, and is not written.
    """

    kind = "linear"

    def __init__(
        self,
        classes: Sequence[str],
        n_features: int,
        features: NDArray[np.int64],
        W: Floats,
        intercept: Floats | None = None,
    ) -> None:
        self.classes = tuple(classes)
        self.n_features = n_features
        self.features = features
        self.W = W
        self.intercept = intercept

    @property
    def nonzero_weights(self) -> float:
        return float(np.count_nonzero(self.W) / max(1, len(self.classes) * self.n_features))

    def with_last_as_intercept(self, value: float) -> "LinearModel":
        intercept = self.W[-1] * self.W.dtype.type(value)
        return LinearModel(
            self.classes, self.n_features - 1, self.features[:-1], np.ascontiguousarray(self.W[:-1]), intercept
        )

    def linear_weights(self) -> LinearWeights:
        return LinearWeights(self.features, self.W, self.intercept)

    @property
    def coef(self) -> Floats:
        """Dense weights, shape (n_classes, n_features)."""
        coef = np.zeros((len(self.classes), self.n_features), self.W.dtype)
        coef[:, self.features] = self.W.T
        return coef

    def scores(self, X: sp.csr_matrix) -> Floats:
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features; the model has {self.n_features}")
        used = X if len(self.features) == self.n_features else X[:, self.features]
        scores = np.asarray(used.astype(self.W.dtype, copy=False) @ self.W)
        if self.intercept is not None:
            scores += self.intercept
        return scores

    def score_one(self, indices: NDArray[np.int32], values: NDArray[np.float64]) -> Floats:
        if len(self.features) == 0:
            indices, values = indices[:0], values[:0]
        elif len(self.features) != self.n_features:
            at = np.searchsorted(self.features, indices)
            at[at == len(self.features)] = 0
            known = self.features[at] == indices
            indices, values = at[known], values[known]
        scores = np.asarray(values.astype(self.W.dtype) @ self.W[indices])
        return scores if self.intercept is None else scores + self.intercept

    def arrays(self) -> dict[str, NDArray[Any]]:
        arrays = {"features": self.features, "W": self.W}
        return arrays if self.intercept is None else arrays | {"intercept": self.intercept}

    @classmethod
    def from_arrays(
        cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, NDArray[Any]]
    ) -> "LinearModel":
        return cls(classes, n_features, arrays["features"], arrays["W"], arrays.get("intercept"))


def load_model(folder: Path, *, mmap: bool = True, verify: bool = False) -> tuple[Model, dict[str, Any]]:
    """Read a model and the details of its manifest.

    Parameters
    ----------
    folder : Path
    mmap : bool
        Map the arrays read-only instead of reading them, so that processes share one copy.
    verify : bool
        Compare every array with its SHA-256 first.

    Raises
    ------
    ModelError
        The folder holds no model, one of a later version, or one whose bytes have changed.
    """
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder.name} holds no readable manifest.json") from error
    kind = find_kind(str(manifest.get("kind")))
    if manifest.get("format") != 1 or kind is None:
        raise ModelError(f"{folder.name} was written by another version of the program")
    arrays = {}
    for name, digest in manifest["arrays"].items():
        path = folder / f"{name}.npy"
        if verify and _digest(path) != digest:
            raise ModelError(f"{path.name} is not the array that was written")
        arrays[name] = np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)
    model = kind.from_arrays(tuple(manifest["classes"]), manifest["n_features"], arrays)
    model.report = manifest.get("report", {})
    return model, manifest["details"]


def find_kind(name: str) -> type[Model] | None:
    """The class of a kind of model by :data:`MODEL_KINDS`; None for a kind that this version does not know."""
    if name not in MODEL_KINDS:
        return None
    module, _, member = MODEL_KINDS[name].partition(":")
    found: type[Model] = getattr(importlib.import_module(module), member)
    return found


def write_array(path: Path, array: NDArray[Any]) -> str:
    """Write an array durably; returns the SHA-256 of the file."""
    with path.open("wb") as file:
        np.save(file, np.ascontiguousarray(array), allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    return _digest(path)


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
