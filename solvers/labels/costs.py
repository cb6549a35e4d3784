"""What answering c costs where y is right: a table with one cost for all pairs that it leaves out, or a tree distance.

Both are the same sum, so that compiled loops need no case of their own for either:

    cost(y, c) = own[y] + other[c] + e(y, c) - |path(y) and path(c)|,   cost(y, y) = 0

A table has its default in ``own``, and in e what its entries differ from that; no class has a path. Half the length of
the path between two nodes of a label tree (Zhou et al. 2011, section 5) is half of both levels less the nodes that
their paths have in common. Neither takes memory for all pairs of classes.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from solvers.labels import stored_arrays
from solvers.labels.taxonomy import Taxonomy
from solvers.numerics.array_types import AnyFloats, Array, Floats, Ints, Ints32
from solvers.numerics.coefficients import Coefficients

Table = Mapping[str, Mapping[str, float]]
NAMED = 5


class Costs(NamedTuple):
    """Costs among n_classes classes, for compiled code.

    Attributes
    ----------
    own : float64 array, shape (n_classes + 1,)
        By the right class; the last is of labels that are none of the classes.
    other : float64 array, shape (n_classes,)
        By the answer.
    begin : int64 array, shape (n_classes + 1,)
        Where the entries of each right class begin.
    answers : int32 array, shape (n_entries,)
        Ascending for each right class.
    values : float64 array, shape (n_entries,)
    path_start : int64 array, shape (n_classes + 1,)
        Where the path of each class begins.
    path_nodes : int32 array
        The nodes of every path, the highest first.
    below_start : int64 array, shape (n_nodes + 1,)
        Where the classes at or below each node begin.
    below : int32 array
    slack : bool
        Whether a training multiplies losses by the costs, instead of taking them as margins.
    """

    own: Floats
    other: Floats
    begin: Ints
    answers: Ints32
    values: Floats
    path_start: Ints
    path_nodes: Ints32
    below_start: Ints
    below: Ints32
    slack: bool = False

    @classmethod
    def of_table(cls, classes: Sequence[str], table: Table, default: float) -> "Costs":
        """The costs of a table; other pairs cost ``default``, and labels that are no classes are left out."""
        number = {label: c for c, label in enumerate(classes)}
        k = len(classes)
        entries = [
            (number[label], number[answer], cost)
            for label, answers in table.items()
            if label in number
            for answer, cost in answers.items()
            if answer in number and answer != label
        ]
        rows, columns, values = (np.array([entry[at] for entry in entries]) for at in range(3))
        order = np.lexsort((columns, rows))
        begin = np.concatenate([[0], np.cumsum(np.bincount(rows.astype(np.int64), minlength=k))]).astype(np.int64)
        nowhere = np.zeros(k + 1, np.int64), np.empty(0, np.int32)
        return cls._made(
            np.full(k + 1, default), np.zeros(k), begin, columns.astype(np.int32)[order],
            values.astype(np.float64)[order] - default, *nowhere,
        )  # fmt: skip

    @classmethod
    def of_tree(cls, classes: Sequence[str], tree: Taxonomy) -> "Costs":
        """Half the length of the path between two classes, which are nodes of the tree.

        A label that is no class is the root.
        """
        nodes = tree.find(classes)
        half = np.asarray(0.5 * tree.level[nodes], np.float64)
        paths = [tree.path(node) for node in nodes.tolist()]
        start = np.concatenate([[0], np.cumsum([len(path) for path in paths])]).astype(np.int64)
        nothing = np.zeros(len(nodes) + 1, np.int64), np.empty(0, np.int32), np.empty(0)
        return cls._made(np.append(half, 0.0), half, *nothing, start, np.concatenate(paths).astype(np.int32))

    @classmethod
    def from_arrays(cls, n_classes: int, arrays: Mapping[str, Array]) -> "Costs":
        """Costs as :meth:`arrays` writes them; raises ArrayFault where they do not fit the classes."""
        # compiled loops take arrays that may be written to
        own, other, begin, answers, values, path_start, path_nodes = (np.array(arrays[name]) for name in _STORED)
        stored_arrays.require_floats("own", own, n_classes + 1)
        stored_arrays.require_floats("other", other, n_classes)
        stored_arrays.require_starts("begin", begin, n_classes, len(answers))
        stored_arrays.require_within("answers", answers, 0, n_classes)
        stored_arrays.require_floats("values", values, len(answers))
        stored_arrays.require_starts("path_start", path_start, n_classes, len(path_nodes))
        stored_arrays.require_within("path_nodes", path_nodes, 0, len(path_nodes))
        return cls._made(own, other, begin, answers, values, path_start, path_nodes)

    @classmethod
    def _made(
        cls, own: Floats, other: Floats, begin: Ints, answers: Ints32, values: Floats, path_start: Ints,
        path_nodes: Ints32,
    ) -> "Costs":  # fmt: skip
        # nodes on no path of a class have no number here
        used, numbers = np.unique(path_nodes, return_inverse=True)
        path_nodes, n_nodes = np.asarray(numbers, np.int32), len(used)
        owner = np.repeat(np.arange(len(other), dtype=np.int32), np.diff(path_start))
        below_start = np.concatenate([[0], np.cumsum(np.bincount(path_nodes, minlength=n_nodes))]).astype(np.int64)
        below = owner[np.argsort(path_nodes, kind="stable")]
        return cls(own, other, begin, answers, values, path_start, path_nodes, below_start, below)

    def of_answers(self, some: Ints32) -> "Costs":
        """For :func:`add_costs` alone: to all right labels, only these answers, numbered in their order."""
        number = np.full(self.n_classes, -1, np.int32)
        number[some] = np.arange(len(some), dtype=np.int32)
        begin, answers, values = _entries_among(number, self.begin, self.answers, self.values)
        below_start, below, _ = _entries_among(number, self.below_start, self.below, self.below)
        return self._replace(
            other=self.other[some], begin=begin, answers=answers, values=values, below_start=below_start, below=below
        )

    def among(self, some: Ints32) -> "Costs":
        """Those among some of the classes, ascending, numbered in their order."""
        them = self.of_answers(some)
        lengths, paths = np.diff(them.begin)[some], np.diff(self.path_start)[some]
        entries, nodes = _runs(them.begin[some], lengths), _runs(self.path_start[some], paths)
        made = self._made(
            self.own[np.append(some, -1)], them.other, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            them.answers[entries], them.values[entries], np.concatenate([[0], np.cumsum(paths)]).astype(np.int64),
            self.path_nodes[nodes],
        )  # fmt: skip
        return made._replace(slack=self.slack)

    @property
    def are_one(self) -> bool:
        """Whether every wrong answer costs 1."""
        return not len(self.path_nodes) and not self.values.any() and bool((self.own == 1.0).all())

    @property
    def are_distances(self) -> bool:
        """Whether they are distances in a label tree, which also has nodes that are none of the classes."""
        return len(self.path_nodes) > 0

    @property
    def n_classes(self) -> int:
        return len(self.other)

    def arrays(self) -> dict[str, Array]:
        """The arrays to be written; :meth:`from_arrays` takes them back."""
        return {name: getattr(self, name) for name in _STORED}

    def between(self, y_true: NDArray[np.integer], y_pred: NDArray[np.integer]) -> Floats:
        """The costs of answers, shape (n_samples,); a right label that is none of the classes is -1."""
        return np.asarray(_between(self, np.asarray(y_true, np.int64), np.asarray(y_pred, np.int64)))

    def between_nodes(
        self, tree: Taxonomy, class_of: Ints, y_true: NDArray[np.integer], y_pred: NDArray[np.integer]
    ) -> Floats:
        """The costs of answers that are nodes of the label tree, shape (n_samples,).

        Parameters
        ----------
        tree : Taxonomy
            That of the model. Distances are those in it, also of nodes that no training row has.
        class_of : int array, shape (n_nodes,) or longer
            The class of each node; -1 for those that are none.
        y_true, y_pred : int array, shape (n_samples,)
            Nodes. A right label that the tree does not have is -1, the root.
        """
        if self.are_distances:
            return tree.distance(y_true, y_pred)
        return self.between(np.where(y_true >= 0, class_of[y_true], -1), class_of[y_pred])

    def expected(self, probabilities: AnyFloats) -> Floats:
        """What each answer is expected to cost, shape (n_samples, n_classes), by the probabilities of the classes."""
        P = np.asarray(probabilities, np.float64)
        k, total = self.n_classes, P.sum(axis=1)[:, None]
        entries = sp.csr_matrix((self.values, self.answers, self.begin), shape=(k, k))
        under = sp.csr_matrix(
            (np.ones(len(self.path_nodes)), self.path_nodes, self.path_start), shape=(k, len(self.below_start) - 1)
        )
        itself = self.own[:-1] + self.other - np.diff(self.path_start)
        found = (P @ self.own[:-1])[:, None] + total * self.other - P * itself
        found += P @ entries
        found -= (P @ under) @ under.T
        # what rounding has left of nothing
        return np.asarray(np.maximum(found, 0.0))

    def at_zero(self, y: NDArray[np.integer], *, largest: bool) -> Floats:
        """The largest cost of each of these classes, or the sum over all answers, shape (n_samples,)."""
        found, which = np.unique(y, return_inverse=True)
        row, values = np.empty(self.n_classes), np.empty(len(found))
        for at, c in enumerate(found.tolist()):
            costs_of(self, c, row)
            values[at] = row.max() if largest else row.sum()
        return np.asarray(values[which])


def _runs(starts: Ints, lengths: Ints) -> Ints:
    """The places from each start on, as many as its length, one run behind the other."""
    ends = np.cumsum(lengths)
    return np.asarray(np.arange(ends[-1]) + np.repeat(starts - ends + lengths, lengths))


def _entries_among(number: Ints32, begin: Ints, classes: Ints32, values: Array) -> tuple[Ints, Ints32, Array]:
    """Of lists of classes, what is left of those that have a number, by these numbers."""
    kept = number[classes] >= 0
    counts = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    return counts[begin], number[classes[kept]], values[kept]


_STORED = ("own", "other", "begin", "answers", "values", "path_start", "path_nodes")


def table_fault(table: Table, known: Sequence[str] | set[str]) -> str | None:
    """What is wrong with a table where only the ``known`` labels are there; None if nothing is."""
    labels = set(known)
    named = set(table).union(*table.values()) if table else set()
    unknown = sorted(named - labels)
    return f"costs name {labels_without_rows(unknown)}" if unknown else None


def labels_without_rows(unknown: Sequence[str]) -> str:
    """How many labels no training row has, and the first of them, for a message."""
    some = ", ".join(f"{label!r:.80}" for label in unknown[:NAMED])
    more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
    count = "1 label" if len(unknown) == 1 else f"{len(unknown)} labels"
    return f"{count} that no training row has: {some}{more}"


@njit(cache=True, nogil=True)
def cost_of(costs: Costs, y: int, c: int) -> float:
    """The cost of one answer to an example of class y."""
    if y == c:
        return 0.0
    begin, answers = costs.begin, costs.answers
    total: float = costs.own[y] + costs.other[c]
    low, high = begin[y], begin[y + 1]
    while low < high:
        mid = (low + high) >> 1
        if answers[mid] < c:
            low = mid + 1
        else:
            high = mid
    if low < begin[y + 1] and answers[low] == c:
        total += costs.values[low]
    start, nodes = costs.path_start, costs.path_nodes
    p, q = start[y], start[c]
    while p < start[y + 1] and q < start[c + 1] and nodes[p] == nodes[q]:
        total -= 1.0
        p += 1
        q += 1
    return total


@njit(cache=True, nogil=True)
def add_costs(costs: Costs, y: int, less: float, f: Array) -> None:
    """f_c += cost(y, c) - ``less`` for every class, for y itself as if e were 0 there."""
    own, other, answers, values = costs.own[y] - less, costs.other, costs.answers, costs.values
    for c in range(other.shape[0]):
        f[c] += own + other[c]
    for t in range(costs.begin[y], costs.begin[y + 1]):
        f[answers[t]] += values[t]
    nodes, start, below = costs.path_nodes, costs.below_start, costs.below
    for p in range(costs.path_start[y], costs.path_start[y + 1]):
        for t in range(start[nodes[p]], start[nodes[p] + 1]):
            f[below[t]] -= 1.0


@njit(cache=True, nogil=True)
def costs_of(costs: Costs, y: int, row: Floats) -> None:
    """The costs of all answers to an example of class y, 0 behind the last class."""
    row[:] = 0.0
    add_costs(costs, y, 0.0, row)
    row[y] = 0.0


@njit(cache=True, nogil=True)
def total_cost(costs: Costs, y: Ints32, pool: Coefficients) -> float:
    """The dual variables of all examples times the costs of their classes: the linear part of the dual value."""
    total = 0.0
    for i in range(y.shape[0]):
        for t in range(pool.start[i] + 1, pool.start[i] + pool.length[i]):
            total -= pool.values[t] * cost_of(costs, y[i], pool.classes[t])
    return total


@njit(cache=True, nogil=True)
def _between(costs: Costs, y_true: Ints, y_pred: Ints) -> Floats:
    out = np.empty(y_true.shape[0])
    for i in range(y_true.shape[0]):
        if y_true[i] < 0:
            out[i] = costs.own[-1] + costs.other[y_pred[i]]
        else:
            out[i] = cost_of(costs, y_true[i], y_pred[i])
    return out
