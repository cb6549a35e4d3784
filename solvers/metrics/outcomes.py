"""What an evaluation found: measures of all rows and of every level of the label tree, with intervals, and tables."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import NamedTuple, get_args

import numpy as np
import scipy.sparse as sp
from numba import njit

from solvers.labels.label_sets import are_own, own_labels
from solvers.labels.taxonomy import Weighting
from solvers.labels.tree_paths import Adjacency
from solvers.metrics import intervals, label_table
from solvers.metrics.calibration import ReliabilityCurve, expected_calibration_error, log_losses
from solvers.metrics.evaluation import Evaluation
from solvers.metrics.frequency_bands import add_bands
from solvers.metrics.hierarchical import ancestry, right
from solvers.metrics.intervals import RowSums
from solvers.metrics.label_table import AVERAGES, HIERARCHICAL, Confusions, LabelTable
from solvers.metrics.multilabel import common, n_different, set_losses
from solvers.metrics.ranking import KS, Placed
from solvers.numerics.array_types import Array, Bools, Floats, Floats32, Ints, Ints32


class Measured(NamedTuple):
    """A measure with its interval; ``level`` 0 is all labels, 1 those below the top of the label tree."""

    name: str
    level: int
    value: float
    low: float | None = None
    high: float | None = None


class Outcomes:
    """The measures of an evaluation whose rows have all been taken.

    Parameters
    ----------
    evaluation : Evaluation
    inverse_propensities : float64 array, shape (n_labels,), optional
        ``1 / p`` of each label; without it there is no psp@k.
    ks : tuple of int
    n_training : int64 array, shape (n_labels,), optional
        Training rows that have each label as their own; without it there are no measures by frequency.

    Raises
    ------
    ValueError
        There are no rows.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        inverse_propensities: Floats | None = None,
        ks: tuple[int, ...] = KS,
        n_training: Ints | None = None,
    ) -> None:
        if evaluation.n_rows == 0:
            raise ValueError("no rows to measure; expected at least one")
        self.evaluation = evaluation
        self.labels = evaluation.labels
        tree = self.labels.tree
        self._true, self._named = evaluation.truth.sets, evaluation.named()
        own = self._own_true, self._own_named = self._own_sets()
        self._parts = [sp.csr_matrix(sets) for sets in (common(self._true, self._named), self._true, self._named)]
        self._own_parts = self._parts if tree is None else [sp.csr_matrix(sets) for sets in (common(*own), *own)]
        ranges = [] if tree is None else [tree.level_range(level) for level in range(1, tree.depth + 1)]
        self._levels = [slice(nodes.start, nodes.stop) for nodes in ranges]
        self.rows = RowSums()
        self._losses()
        self._rankings(inverse_propensities, ks, n_training)
        self._probabilities()

    @property
    def answers_one(self) -> bool:
        """Rows have one label each, and so have answers."""
        return self.evaluation.truth.single is not None and not self.evaluation.names_sets

    def table(self) -> LabelTable:
        """Counts by label, shape (n_labels,) each; along a tree of sets that are closed upwards."""
        return self._counted(self._parts)

    def measures(
        self,
        resamples: int = intervals.RESAMPLES,
        confidence: float = intervals.CONFIDENCE,
        seed: int = 0,
        between: Callable[[float], None] = lambda _: None,
    ) -> list[Measured]:
        """All measures: those of rows, and precision, recall and F1 of the labels together, level by level.

        Parameters
        ----------
        resamples : int
            0: no intervals.
        confidence, seed
            As :func:`solvers.metrics.intervals.bootstrap` has them.
        between : callable
            Called between blocks of resamples with the share that is done; what it raises ends the work.
        """
        names = [(measure.name, measure.level) for measure in self.rows.measures]
        names += [(name, 0) for name in AVERAGES]
        if len(self._levels) > 1:
            names += [(HIERARCHICAL[name], 0) for name in AVERAGES]
        names += [(name, level) for level in range(1, len(self._levels) + 1) for name in AVERAGES]
        values = np.concatenate([self.rows.of_all(), self._averages(self._counted)])
        found = self.calibration()
        # resampling would add to it what it adds to the distances of small bins
        last = [] if found is None else [Measured("calibration_error", 0, found[0])]
        if not resamples:
            reported = zip(names, values.tolist(), strict=True)
            return [Measured(name, level, value) for (name, level), value in reported] + last
        done = 0

        def statistic(counts: Floats32) -> Floats:
            nonlocal done
            between(done / resamples)
            done += len(counts)
            averages = np.stack([self._averages(partial(self._drawn, row)) for row in counts])
            return np.concatenate([self.rows.values(counts), averages], axis=1)

        n_rows = self.evaluation.n_rows
        ends = intervals.bootstrap(statistic, n_rows, resamples=resamples, confidence=confidence, seed=seed)
        return [
            Measured(name, level, value, low, high)
            for (name, level), value, low, high in zip(names, values.tolist(), *ends.tolist(), strict=True)
        ] + last

    def calibration(self) -> tuple[float, ReliabilityCurve] | None:
        """The expected calibration error and its curve, of models with probabilities."""
        reported = self.evaluation.probabilities
        if reported is None:
            return None
        return expected_calibration_error(np.minimum(reported.of_predicted, 1.0), self._right())

    def confusions(self, most: int) -> list[tuple[int, Confusions]]:
        """Up to ``most`` confused pairs of labels, and as many of each level's."""
        found = []
        if self.answers_one:
            true, n_labels = self.evaluation.truth.single, self.labels.n
            assert true is not None
            wrong = ~self._right()
            found.append(
                (0, label_table.confused_labels(true[wrong], self.evaluation.predicted[wrong], n_labels, most))
            )
        elif not self._levels:
            found.append((0, label_table.confused_sets(self._true, self._named, most)))
        for level, nodes in enumerate(self._levels, 1):
            pairs = label_table.confused_sets(self._true[:, nodes], self._named[:, nodes], most)
            found.append((level, Confusions(pairs.true + nodes.start, pairs.predicted + nodes.start, pairs.n_rows)))
        return found

    def mistakes(self, most: int) -> Ints:
        """Up to ``most`` rows that the model is wrong about, the most wrong first.

        That is by how much more probable the answer is than the true label, else by the lead of its score,
        and of sets by how many labels differ.
        """
        evaluation, reported = self.evaluation, self.evaluation.probabilities
        if not self.answers_one:
            amount = n_different(self._true, self._named).astype(np.float64)
            wrong = np.flatnonzero(amount > 0)
        else:
            amount = (
                evaluation.leads.astype(np.float64) if reported is None else reported.of_predicted - reported.of_true
            )
            wrong = np.flatnonzero(~self._right())
        return np.asarray(wrong[np.argsort(-amount[wrong], kind="stable")[:most]], np.int64)

    def by_row(self) -> dict[str, Floats32]:
        """The measures that are means, by row, shape (n_samples,) each; nan where a row is not counted.

        Of those that differ by a factor alone, as precision@k and accuracy@k of rows with one label do, there is one.
        """
        held = self._held
        found: dict[str, Floats32] = {}
        reported: set[int] = set()
        for measure in self.rows.measures:
            if measure.level == 0 and measure.under in (None, held) and measure.over not in reported:
                reported.add(measure.over)
                values = self.rows.columns[measure.over] * np.float32(measure.scale)
                found[measure.name] = (
                    values if measure.under is None else np.where(self.rows.columns[held] > 0, values, np.nan)
                )
        return found

    def _right(self) -> Bools:
        true, predicted, tree = self.evaluation.truth.single, self.evaluation.predicted, self.labels.tree
        assert true is not None
        if tree is None:
            return np.asarray(true == predicted)
        return right(tree, np.where(true < tree.n_nodes, true, -1), predicted)

    def _losses(self) -> None:
        """Add the losses of rows, and the error of each level."""
        rows, tree = self.rows, self.labels.tree
        if self.answers_one:
            rows.measure("error", 0, rows.column(~self._right()))
            self._costs()
            if tree is None:
                return
            true, predicted = self.evaluation.truth.single, self.evaluation.predicted
            assert true is not None
            nodes = np.where(true < tree.n_nodes, true, -1)
            rows.measure("tree_loss", 0, rows.column(tree.distance(nodes, predicted)))
            paths, said = ancestry(tree, nodes), ancestry(tree, predicted)
            for level in range(1, tree.depth + 1):
                there = paths[:, level - 1] >= 0
                wrong = there & (paths[:, level - 1] != said[:, level - 1])
                rows.measure("error", level, rows.column(wrong), rows.column(there))
            return
        different = n_different(self._own_true, self._own_named)
        rows.measure("error", 0, rows.column(different > 0))
        rows.measure("symmetric_difference", 0, rows.column(different))
        if tree is None:
            return
        if len(self._levels) > 1:
            closed = rows.column(n_different(self._true, self._named))
            rows.measure(HIERARCHICAL["symmetric_difference"], 0, closed)
        losses = set_losses(tree, self._true[:, : tree.n_nodes], self._named[:, : tree.n_nodes])
        for kind in get_args(Weighting):
            rows.measure(f"h_{kind}", 0, rows.column(losses[f"h_{kind}"]))
        for level, of_level in enumerate(self._levels, 1):
            wrong = n_different(self._true[:, of_level], self._named[:, of_level]) > 0
            rows.measure("error", level, rows.column(wrong))

    def _costs(self) -> None:
        """Add what answers cost, and what those of least expected cost do."""
        evaluation = self.evaluation
        if evaluation.costs is not None:
            self.rows.measure("cost", 0, self.rows.column(evaluation.cost_of(evaluation.predicted)))
            if evaluation.decided is not None:
                self.rows.measure("least_cost", 0, self.rows.column(evaluation.cost_of(evaluation.decided)))

    def _rankings(self, inverse: Floats | None, ks: tuple[int, ...], n_training: Ints | None) -> None:
        truth, tree, evaluation = self._true, self.labels.tree, self.evaluation
        row = np.repeat(np.arange(evaluation.n_rows), np.diff(truth.indptr))
        every = np.ones(truth.nnz, bool)
        listed = every if tree is None else are_own(truth, self._parents)
        whole = _placed(evaluation.places, row, evaluation.n_rows, listed, truth.indices, inverse)
        self._held = len(self.rows.columns)
        whole.add_to(self.rows, 0, ks, sets=evaluation.truth.single is None)
        if n_training is not None and evaluation.truth.single is None:
            n_of_each = n_training[truth.indices[listed]]
            add_bands(self.rows, evaluation.places[listed], row[listed], evaluation.n_rows, n_of_each)
        if len(self._levels) > 1 and evaluation.names_sets and not evaluation.ranks_own:
            closed = _placed(evaluation.places, row, evaluation.n_rows, every, truth.indices, inverse)
            closed.add_to(self.rows, 0, ks, "hierarchical_")
        for level, nodes in enumerate(self._levels, 1):
            there = (truth.indices >= nodes.start) & (truth.indices < nodes.stop)
            of_level = _placed(evaluation.level_places, row, evaluation.n_rows, there, truth.indices)
            of_level.add_to(self.rows, level, ks)

    def _probabilities(self) -> None:
        reported = self.evaluation.probabilities
        if reported is not None:
            self.rows.measure("log_loss", 0, self.rows.column(log_losses(reported.of_true)))
            # sum_c (p_c - [c is true])^2 (Brier 1950), without a matrix of all probabilities
            self.rows.measure("brier", 0, self.rows.column(reported.squares - 2 * reported.of_true + 1))

    def _own_sets(self) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        """True and named labels without those above another one of the row.

        Of rows with one label a named node that is right is the label itself: it may be below it.
        """
        if self.labels.tree is None:
            return self._true, self._named
        if self.answers_one:
            true, predicted = self.evaluation.truth.single, self.evaluation.predicted
            assert true is not None
            return self._single(true), self._single(np.where(self._right(), true, predicted))
        return own_labels(self._true, self._parents), own_labels(self._named, self._parents)

    def _single(self, label: Array) -> sp.csr_matrix:
        n = len(label)
        return sp.csr_matrix((np.ones(n, bool), label, np.arange(n + 1)), shape=(n, self.labels.n))

    @cached_property
    def _parents(self) -> Adjacency:
        """The labels above each; none above those that the tree does not have."""
        tree = self.labels.tree
        if tree is None:
            return Adjacency(np.zeros(self.labels.n + 1, np.int64), np.empty(0, np.int32))
        start, nodes = tree.parents
        return Adjacency(np.concatenate([start, np.full(self.labels.n - tree.n_nodes, start[-1])]), nodes)

    def _averages(self, counted: Callable[[list[sp.csr_matrix]], LabelTable]) -> Floats:
        """The averages of own labels, then of closed sets along a tree, all labels first and then level by level."""
        tables = [counted(self._own_parts)]
        if self._levels:
            closed = counted(self._parts)
            tables += [closed] if len(self._levels) > 1 else []
            tables += [closed.at(nodes) for nodes in self._levels]
        return np.array([each.averages()[name] for each in tables for name in AVERAGES])

    def _counted(self, parts: list[sp.csr_matrix]) -> LabelTable:
        return LabelTable(*(np.bincount(part.indices, minlength=self.labels.n).astype(np.int64) for part in parts))

    def _drawn(self, counts: Floats32, parts: list[sp.csr_matrix]) -> LabelTable:
        """As :meth:`_counted`, of rows that were drawn so often."""
        tables = np.zeros((3, self.labels.n))
        for part, out in zip(parts, tables, strict=True):
            _count(counts, part.indptr, part.indices, out)
        return LabelTable(*tables)


def _placed(
    found: Ints32, row: Ints, n_rows: int, chosen: Bools, labels: Array, inverse: Floats | None = None
) -> Placed:
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row[chosen], minlength=n_rows))])
    return Placed(indptr, found[chosen], None if inverse is None else inverse[labels[chosen]])


@njit(cache=True, nogil=True)
def _count(counts: Floats32, indptr: Array, indices: Array, out: Floats) -> None:
    """Add to the labels of each row how often it was drawn."""
    for i in range(len(counts)):
        if counts[i] > 0:
            for p in range(indptr[i], indptr[i + 1]):
                out[indices[p]] += counts[i]
