"""Trained models: scores, labels and top-k, and their files: a JSON manifest beside plain arrays."""

import hashlib
import json
import math
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from solvers.core.artefact_files import sync_folder, write_array, write_synced
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.ranking import Ranking
from solvers.numerics.array_types import AnyFloats, Array, Floats, Ints, Ints32
from solvers.numerics.best import best
from solvers.numerics.lazy_arrays import Parts

if TYPE_CHECKING:  # a model is trained without them
    from solvers.core.certain_answers import Reach
    from solvers.labels.costs import Costs
    from solvers.labels.name_block import NameBlock
    from solvers.metrics.confidence.back_off import BackOff
    from solvers.metrics.confidence.reliability import Reliability
    from solvers.metrics.confidence.set_reliability import SetReliability

_BLOCK_BYTES = 4 << 20
# part of the names of the arrays of costs, in the files of any model that has some
COSTS = "costs"
Prune = Callable[[AnyFloats], AnyFloats]


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


class Contributions(NamedTuple):
    """By how much a label's score leads a rival's, in parts that add up to it.

    Attributes
    ----------
    parts : float64 array, shape (n_indices,)
        Of the example's features, in their order.
    intercept : float
        What no feature brings.
    additive : bool
        What a feature brings is its value times the same weight in every example.
    """

    parts: Floats
    intercept: float
    additive: bool = True


class OutputCode(NamedTuple):
    """The code of a model that has one: its matrix, shape (n_classes, n_columns), and how margins are decoded."""

    matrix: Array
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

    features: Ints
    W: Any
    intercept: AnyFloats | None

    def dense(self, begin: int = 0, end: int | None = None) -> Array:
        """Some rows of W, all by default, as an array."""
        rows: Any = self.W[begin:end]
        return np.asarray(rows.toarray() if isinstance(rows, sp.csr_matrix) else rows)

    def coef(self, n_features: int) -> Floats:
        """Dense weights, shape (n_classes, n_features)."""
        coef = np.zeros((self.W.shape[1], n_features))
        coef[:, self.features] = self.dense().T
        return coef


class Model(ABC):
    """What training leaves behind; a kind of model names itself in ``kind`` and keeps its state in arrays.

    A new kind also gets its line in :data:`solvers.core.stored_models.MODEL_KINDS`, by which it is found.

    Attributes
    ----------
    classes : tuple of str
        Label names in the order of the scores' columns.
    n_features : int
        Columns that a matrix to be scored must have.
    report : mapping of str to float
        Figures of the method about its model, finite numbers by name; saved and loaded with it.
    tree : Taxonomy or None
        The label tree whose nodes are the classes, of models over one.
    names_sets : bool
        The model answers with sets of labels.
    ranks_own : bool
        Of models that answer with sets along a tree: they rank labels that rows have as their own, and not the
        ancestors of these.
    in_shards : bool
        The model stays in the files that its shards have written.
    reliability : Reliability or None
        Of models whose scores are logarithms of probabilities: how far these can be trusted.
    back_off : BackOff or None
        The same along the label tree of the problem that it was trained on, where there was one.
    set_reliability : SetReliability or None
        Of models that name sets and whose scores are log-odds: how far these can be trusted.
    least_probability : float
        Of models that name sets: below this, no label is in a set; 0 where this depends on the row.
    scores_rows_alone : bool
        :meth:`scores` gives every row the bits that :meth:`score_one` gives.
    record : mapping of str to JSON
        How the model was chosen, of methods that choose; saved and loaded with it.
    reach : Reach or None
        How far leads may be from those of the exact optimum, of models whose training has certified it; saved and
        loaded with it.
    costs : Costs or None
        What an answer costs where another label is right, of models that were trained with costs; saved and loaded with
        it.
    output_code : OutputCode or None
    unexplained : str
        Why :meth:`contributions` has none; empty where it has.
    """

    kind: ClassVar[str]
    classes: tuple[str, ...]
    n_features: int
    report: Mapping[str, float] = MappingProxyType({})
    tree: Taxonomy | None = None
    names_sets: ClassVar[bool] = False
    ranks_own: bool = False
    in_shards: ClassVar[bool] = False
    reliability: "Reliability | None" = None
    back_off: "BackOff | None" = None
    set_reliability: "SetReliability | None" = None
    least_probability: float = 0.0
    scores_rows_alone: bool = False
    record: Mapping[str, Any] = MappingProxyType({})
    unexplained: str = ""
    reach: "Reach | None" = None
    costs: "Costs | None" = None

    @abstractmethod
    def scores(self, X: sp.csr_matrix) -> AnyFloats:
        """Scores of the rows of X: float array, shape (n_samples, n_classes); the largest is the prediction."""

    @abstractmethod
    def score_one(self, indices: Ints32, values: Floats) -> AnyFloats:
        """Scores of one sparse example: float array, shape (n_classes,); indices distinct, in [0, n_features)."""

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """The arrays to be written; :meth:`from_arrays` takes them back."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]) -> "Model":
        """A model around arrays that may be memory-mapped and read-only."""

    def check_width(self, X: sp.csr_matrix) -> None:
        """Raise ValueError if X has not as many features as the model."""
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features; the model has {self.n_features}")

    def predict(self, X: sp.csr_matrix, chunk_bytes: int = 64 << 20) -> Ints:
        """Class indices, shape (n_samples,); scores are made for ``chunk_bytes`` bytes of rows at a time."""
        rows = max(1, chunk_bytes // (8 * len(self.classes)))
        parts = [self.scores(X[i : i + rows]).argmax(axis=1) for i in range(0, X.shape[0], rows)]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def top(self, indices: Ints32, values: Floats, k: int = 1) -> tuple[Ints, AnyFloats]:
        """The k best classes of one sparse example by falling score, and their scores; ties by class index."""
        columns, scores = best(self.score_one(indices, values)[None], k)
        return columns[0], scores[0]

    def top_rows(self, X: sp.csr_matrix, k: int = 1) -> list[tuple[Ints, AnyFloats]]:
        """:meth:`top` of every row of X, to the bit."""
        if not self.scores_rows_alone or type(self).top is not Model.top:
            bounds = zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True)
            return [self.top(X.indices[begin:end], X.data[begin:end], k) for begin, end in bounds]
        step = max(1, _BLOCK_BYTES // (8 * len(self.classes)))
        found: list[tuple[Ints, AnyFloats]] = []
        for begin in range(0, X.shape[0], step):
            found += zip(*best(self.scores(X[begin : begin + step]), k), strict=True)
        return found

    def ranking(self, X: sp.csr_matrix) -> Ranking:
        """By what :meth:`top` orders the classes for the rows of X, all at once; the first is :meth:`predict`'s."""
        return Ranking(self.scores(X), tells_probabilities=self.reliability is not None)

    def set_margins(self, scores: AnyFloats) -> AnyFloats | None:
        """What is positive for the labels of predicted sets, from :meth:`scores`; None of models that name one."""
        return None

    def predict_sets(self, X: sp.csr_matrix, chunk_bytes: int = 64 << 20) -> sp.csr_matrix | None:
        """The predicted sets of nodes, csr_matrix of bool; None of models that name one label an example."""
        return None

    def explain(self, indices: Ints32, values: Floats, best: int) -> Explanation:
        """How the model comes to the prediction ``best`` of one sparse example."""
        return Explanation()

    def contests(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> list[tuple[int, int | None]]:
        """The comparisons of classes that led to ``best``, each with the rival that it beat, None where there was none.

        Parameters
        ----------
        best, rival : int
            The answer and the runner-up, by which most models explain; those that go down a label tree have others.
        """
        return [(best, rival)]

    def contributions(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> Contributions | None:
        """What each feature brings to the score of ``best`` less that of ``rival`` (None: less nothing).

        None where :attr:`unexplained` says why.
        """
        return None

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

    def of_rows(self, rows: Ints, n_rows: int) -> "Model":
        """The same model where its training examples were the ``rows`` of ``n_rows`` examples.

        Only models to which examples are numbers differ: those of precomputed kernels.
        """
        return self

    @classmethod
    def row_arrays(cls, arrays: Mapping[str, Array]) -> dict[str, str]:
        """The arrays of which the scores of an example need nothing but the rows of its features.

        Parameters
        ----------
        arrays : mapping of str to array
            Of the model, at least those that are not named here.

        Returns
        -------
        dict
            Names of such arrays, and of the arrays that have the features of their rows, ascending. A model without
            some rows, and without the features of these, scores examples that lack these features as the whole model.
            Features from ``n_features`` on are of every example.
        """
        return {}

    @property
    def learnt(self) -> Collection[int] | None:
        """The classes that some training row had, of models that know; else None."""
        return None

    @property
    def output_code(self) -> OutputCode | None:
        """The output code, of models that have one."""
        return None

    def with_concepts(
        self,
        tree: Taxonomy,
        names: "NameBlock",
        new_of_old: Ints,
        rows: tuple[sp.csr_matrix, sp.csr_matrix] | None = None,
    ) -> "Model":
        """The same model over the concepts of another edition of its vocabulary, without training.

        Parameters
        ----------
        tree : Taxonomy
            The concepts of the edition.
        names : NameBlock
            Of features with the names of the edition; the terms before them are the same.
        new_of_old : int64 array, shape (n_classes,)
            The node that takes the place of each class; -1 where none does.
        rows : pair of csr_matrix, shape (n_train, n_nodes), optional
            The own labels of all training rows, and the concepts that they name; by default what was counted of
            them follows ``new_of_old``.

        Raises
        ------
        ValueError
            The model does not find concepts by their names.
        """
        raise ValueError("it does not find concepts by their names")

    def smaller(self, prune: Prune, half: bool) -> "Model":
        """A copy with some weights at zero and, with ``half``, the others in half precision; intercepts stay.

        Weights are written sparse where that takes fewer bytes.

        Parameters
        ----------
        prune : callable
            Takes an array of weights, and returns one like it with some at zero, or the same.
        half : bool
            Weights are rounded to float16; what reads them sums in float32.

        Raises
        ------
        ValueError
            The model has no weights of features, or one beyond the range of half precision.
        """
        raise ValueError(f"a {self.kind} model has no feature weights to compress")

    def with_last_as_intercept(self, value: float) -> "Model":
        """The same model of examples without their last feature, which is ``value`` in every one of them."""
        raise NotImplementedError(f"a {self.kind} model has no feature weights")

    @property
    def nonzero_weights(self) -> float:
        """The share of the weights of classes and features that are not zero; nan for a model without such weights."""
        return math.nan

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays().values())

    def cost_arrays(self) -> dict[str, Array]:
        """The arrays of its costs by the names of their files; none without costs."""
        return {} if self.costs is None else {**Parts({COSTS: self.costs.arrays()})}

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
        arrays = {**self.arrays(), **self.cost_arrays()}
        hashes = {name: write_array(part / f"{name}.npy", array) for name, array in arrays.items()}
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
            "record": dict(self.record),
            "details": dict(details or {}),
        }
        if self.reach is not None:
            manifest["reach"] = self.reach.as_json()
        text = json.dumps(manifest, ensure_ascii=False, allow_nan=False, sort_keys=True).encode()
        write_synced(part / "manifest.json", text)
        sync_folder(part)
        if folder.exists():
            shutil.rmtree(folder)
        part.rename(folder)
        sync_folder(folder.parent)
        return hashlib.sha256(text).hexdigest()
