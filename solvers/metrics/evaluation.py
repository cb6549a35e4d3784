"""The evaluation of a model: rows go through it in blocks; their predictions and the places of their labels stay."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.labels.costs import Costs
from solvers.labels.label_sets import closed, of_nodes
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.ranking import Ranking, places
from solvers.metrics.tree_places import tree_places
from solvers.numerics.array_types import Array, Floats, Ints, Ints32


@dataclass(frozen=True, eq=False)
class Labels:
    """What the labels of rows and a model's answers are counted in: the labels that it knows, and then all others.

    Attributes
    ----------
    names : tuple of str
        Of a model without a label tree its classes, else the tree's nodes; then the labels that are none of these,
        which no answer is ever right about.
    n_known : int
    class_labels : int64 array, shape (n_classes,)
        The number of each of the model's classes.
    tree : Taxonomy or None
        The first ``n_known`` labels are its nodes.
    """

    names: tuple[str, ...]
    n_known: int
    class_labels: Ints
    tree: Taxonomy | None = None

    @property
    def n(self) -> int:
        return len(self.names)

    def close(self, labels: NDArray[np.integer]) -> sp.csr_matrix:
        """One label a row as a set, with all above it: csr_matrix of bool, shape (n_samples, n)."""
        y = np.asarray(labels, np.int64)
        if self.tree is None:
            return sp.csr_matrix((np.ones(len(y), bool), y, np.arange(len(y) + 1)), shape=(len(y), self.n))
        known = of_nodes(self.tree, np.where(y < self.n_known, y, -1))
        row = np.flatnonzero(y >= self.n_known)
        strange = sp.coo_matrix((np.ones(len(row), bool), (row, y[row])), shape=(len(y), self.n))
        return sp.csr_matrix(sp.hstack([known, sp.csr_matrix(strange)[:, self.n_known :]], format="csr"), dtype=bool)


@dataclass(frozen=True, eq=False)
class Truth:
    """The true labels of rows.

    Attributes
    ----------
    sets : csr_matrix of bool, shape (n_samples, n_labels)
        With a label all those above it; sorted.
    single : int64 array, shape (n_samples,), or None
        The one label of each row, where each has one.
    """

    sets: sp.csr_matrix
    single: Ints | None = None


class Probabilities(NamedTuple):
    """The probabilities that a model predicts for each row.

    Attributes
    ----------
    of_true : float64 array, shape (n_samples,)
        0 of a label that is none of its classes.
    of_predicted : float64 array, shape (n_samples,)
    squares : float64 array, shape (n_samples,)
        The sum of the squares of all classes' probabilities.
    """

    of_true: Floats
    of_predicted: Floats
    squares: Floats


class Evaluation:
    """Takes what a model answers to the rows, one block after the other.

    ``leads``, float32 of shape (n_rows,), are the scores of the answers less those of the true labels: infinite where
    the model does not know the label, and empty where rows or answers are sets. With costs, ``decided``, int32 of the
    same shape, are the labels of least expected cost, of models with probabilities.

    Parameters
    ----------
    labels : Labels
    truth : Truth
        Of all rows.
    names_sets : bool
        The model answers with sets.
    ranks_own : bool
        Along a tree it ranks labels that rows have as their own: a label has its own place, and not that of the best
        label below it.
    costs : Costs, optional
        Among the model's classes.
    """

    def __init__(
        self, labels: Labels, truth: Truth, names_sets: bool, ranks_own: bool = False, costs: Costs | None = None
    ) -> None:
        self.labels, self.truth, self.names_sets, self.ranks_own = labels, truth, names_sets, ranks_own
        self.costs = None if truth.single is None or names_sets else costs
        n_rows, n_entries = truth.sets.shape[0], truth.sets.nnz
        self.done = 0
        self.predicted = np.zeros(n_rows, np.int32)
        self.places = np.zeros(n_entries, np.int32)
        self.level_places = np.zeros(n_entries if labels.tree is not None else 0, np.int32)
        self.leads = np.zeros(n_rows if truth.single is not None and not names_sets else 0, np.float32)
        self.probabilities: Probabilities | None = None
        self.decided: Ints32 | None = None
        self._named: list[tuple[Ints, Ints32]] = []

    @property
    def n_rows(self) -> int:
        return len(self.predicted)

    def add(self, ranking: Ranking) -> None:
        """Take the answers to the next rows."""
        begin, end = self.done, self.done + ranking.values.shape[0]
        sets, tree = self.truth.sets, self.labels.tree
        entries = slice(sets.indptr[begin], sets.indptr[end])
        indptr, found = sets.indptr[begin : end + 1] - sets.indptr[begin], sets.indices[entries]
        self.predicted[begin:end] = self.labels.class_labels[ranking.first()]
        if tree is None:
            self.places[entries] = places(ranking.values, indptr, found, ranking.ties)
        else:
            nodes = self.labels.class_labels
            whole, level = tree_places(tree, nodes, ranking.values, ranking.ties, indptr, found)
            if self.ranks_own:
                own = np.where(self._class_of[found] < 0, len(nodes), self._class_of[found])
                whole = places(ranking.values, indptr, own, ranking.ties)
            self.places[entries], self.level_places[entries] = whole, level
        if self.names_sets:
            assert ranking.sets is not None
            named = sp.csr_matrix(ranking.sets)
            if tree is not None and not np.array_equal(self.labels.class_labels, np.arange(tree.n_nodes)):
                named, _ = closed(tree, named.indptr, self.labels.class_labels[named.indices])
            named.sort_indices()
            self._named.append((np.diff(named.indptr).astype(np.int64), named.indices.astype(np.int32)))
        if len(self.leads):
            self._add_leads(ranking, slice(begin, end))
        if ranking.tells_probabilities:
            self._add_probabilities(ranking, slice(begin, end))
            if self.costs is not None:
                self._decide(self.costs, ranking, slice(begin, end))
        self.done = end

    def _classes_of(self, rows: slice) -> Ints:
        """The class of each row's true label, shape (n_samples,); -1 where it is none of the model's classes."""
        assert self.truth.single is not None
        return np.asarray(self._class_of[self.truth.single[rows]])

    @cached_property
    def _class_of(self) -> Ints:
        """The class of each label, shape (n_labels,); -1 where it is none of the model's classes."""
        found = np.full(self.labels.n, -1)
        found[self.labels.class_labels] = np.arange(len(self.labels.class_labels))
        return found

    def cost_of(self, answers: NDArray[np.integer]) -> Floats:
        """What these labels, of the model's classes, cost as answers to the rows, shape (n_rows,)."""
        assert self.costs is not None
        tree, true = self.labels.tree, self.truth.single
        if tree is not None:
            assert true is not None
            nodes = np.where(true < tree.n_nodes, true, -1)
            return self.costs.between_nodes(tree, self._class_of, nodes, np.asarray(answers))
        return self.costs.between(self._classes_of(slice(None)), self._class_of[answers])

    def _decide(self, costs: Costs, ranking: Ranking, rows: slice) -> None:
        """Note the labels of least expected cost; of equal ones that of the first class."""
        if self.decided is None:
            self.decided = np.zeros(self.n_rows, np.int32)
        expected = costs.expected(np.exp(ranking.values.astype(np.float64)))
        self.decided[rows] = self.labels.class_labels[expected.argmin(axis=1)]

    def _add_leads(self, ranking: Ranking, rows: slice) -> None:
        values, true = ranking.values, self._classes_of(rows)
        at = np.arange(len(values))
        with np.errstate(invalid="ignore"):
            lead = values[at, ranking.first()] - values[at, true]
        self.leads[rows] = np.where(true >= 0, lead, np.inf)

    def _add_probabilities(self, ranking: Ranking, rows: slice) -> None:
        if self.truth.single is None or self.names_sets:
            return
        if self.probabilities is None:
            self.probabilities = Probabilities(*(np.zeros(self.n_rows) for _ in Probabilities._fields))
        p, true = np.exp(ranking.values.astype(np.float64)), self._classes_of(rows)
        at = np.arange(len(p))
        self.probabilities.of_true[rows] = np.where(true >= 0, p[at, true], 0.0)
        self.probabilities.of_predicted[rows] = p[at, ranking.first()]
        self.probabilities.squares[rows] = np.einsum("ij,ij->i", p, p)

    def named(self) -> sp.csr_matrix:
        """The labels that the model names, csr_matrix of bool, shape (n_samples, n_labels)."""
        if not self.names_sets:
            return self.labels.close(self.predicted)
        sizes, labels = (
            np.concatenate([np.empty(0, np.int64), *(part[at] for part in self._named)]) for at in range(2)
        )
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        return sp.csr_matrix((np.ones(len(labels), bool), labels, indptr), shape=(len(sizes), self.labels.n))

    def state(self) -> dict[str, Array]:
        """All that was taken, as arrays; :meth:`resume` takes them back."""
        arrays: dict[str, Array] = {
            "done": np.array([self.done]),
            "predicted": self.predicted,
            "places": self.places,
            "level_places": self.level_places,
            "leads": self.leads,
        }
        if self.probabilities is not None:
            arrays["probabilities"] = np.array(self.probabilities)
        if self.decided is not None:
            arrays["decided"] = self.decided
        if self.names_sets:
            for name, at in (("sizes", 0), ("named", 1)):
                arrays[name] = np.concatenate([np.empty(0, np.int64), *(part[at] for part in self._named)])
        return arrays

    def resume(self, state: Mapping[str, Array]) -> None:
        """Go on from :meth:`state`; raises ValueError where it is that of other rows."""
        names = ("predicted", "places", "level_places", "leads")
        if "leads" not in state:
            raise ValueError("the state was written by an earlier version")
        sizes = {name: (len(state[name]), len(getattr(self, name))) for name in names}
        if any(given != due for given, due in sizes.values()):
            raise ValueError(f"the state was written for other rows: {sizes}")
        self.done = int(state["done"][0])
        for name in sizes:
            getattr(self, name)[:] = state[name]
        if "probabilities" in state:
            self.probabilities = Probabilities(*np.array(state["probabilities"]))
        if "decided" in state:
            self.decided = np.array(state["decided"])
        if self.names_sets:
            self._named = [(state["sizes"].astype(np.int64), state["named"].astype(np.int32))]
