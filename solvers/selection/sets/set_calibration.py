"""Which calibration of sets of labels is used: chosen, and measured, on rows that it is not fitted to.

Each kind is fitted to one half of the rows held out and applied to the other, and the reverse. The best kind is fitted
once more to all of them. So measures are those of new rows. The best kind ranks the rows' own labels best. Along a tree
it has the best average precision of closed sets: there the order of raw scores ranks the rows' own labels somewhat
better, and its probabilities are much worse. A curve that is common to all labels makes the probabilities of the best
kind those that are observed; it is fitted to log-odds of rows that the kind was not fitted to.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from solvers.hierarchical import subtrees
from solvers.labels.label_sets import own_labels
from solvers.labels.tree_paths import Adjacency
from solvers.metrics.confidence.calibration_curve import CalibrationCurve
from solvers.metrics.confidence.pairs import Pairs
from solvers.metrics.ranking import places
from solvers.numerics.array_types import AnyFloats, AnyInts, Array, Bools, Floats
from solvers.selection.sets.frequency_calibration import FrequencyCalibration, Trained
from solvers.selection.sets.node_calibration import NodeCalibration
from solvers.selection.sets.own_labels import of_own
from solvers.selection.sets.set_curve import Curve, softplus_sum

# rows held out with a label from which it may have a sigmoid of its own
OWN_ROWS = 10
# of kinds whose gains differ by less, the log loss chooses
WORTH = 0.005
DEPTH = 10


class Kind(NamedTuple):
    """How log-odds follow from scores.

    Attributes
    ----------
    frequency : bool
        Whether the common sigmoid depends on how frequent a label is.
    own : bool
        Whether frequent labels have sigmoids of their own.
    """

    frequency: bool
    own: bool


# the first keeps the order of the scores
KINDS = (Kind(False, False), Kind(True, False), Kind(True, True))


class FittedSets(NamedTuple):
    """The calibration for a model of all rows, and log-odds of the rows held out by halves, (n_rows, n_labels)."""

    calibration: NodeCalibration
    log_odds: Floats
    ndcg: float


def fit_sets(
    scores: AnyFloats, labels: sp.csr_matrix, trained: Trained, parents: Adjacency, ranked: Bools | None = None
) -> FittedSets:
    """Choose the kind of calibration, and fit it.

    Parameters
    ----------
    scores : float array, shape (n_rows, n_labels)
        Of rows held out.
    labels : csr_matrix of bool, same shape
        Closed upwards.
    parents : Adjacency
        Of the labels.
    ranked : bool array, shape (n_labels,), optional
        Labels that some row has as its own; left out, all.
    """
    own = own_labels(labels, parents)
    half = np.arange(len(scores)) % 2
    parts = [(half != side, half == side) for side in (0, 1)] if len(scores) > 1 else [(half == 0, half == 0)]
    along_tree = len(parents.nodes) > 0
    # along a tree labels differ in more than how frequent they are, and frequent labels need not share anything
    shares = not along_tree and bool((np.asarray(labels.sum(axis=0)).ravel() < OWN_ROWS).any())
    kinds = [kind for kind in KINDS if shares or kind.own or not kind.frequency]
    lines = []
    for fitted_to, _ in parts:
        rows = trained._replace(fold=trained.fold[fitted_to])
        lines.append(_lines(kinds, scores[fitted_to], labels[fitted_to], rows, trained.counts))
    best: tuple[float, float, Kind, Floats] | None = None
    ones = np.broadcast_to(np.int64(1), scores.size)
    for kind in kinds:  # the log-odds of two kinds at a time are in memory, the best and the next
        log_odds = np.empty(scores.shape)
        for (_, applied_to), fitted in zip(parts, lines, strict=True):
            for fold, (slope, offset) in enumerate(zip(*fitted[kind], strict=True)):
                here = np.flatnonzero(applied_to & (trained.fold == fold))
                log_odds[here] = slope * scores[here] + offset
        subtrees.least_above(parents, log_odds)
        gain = (
            Curve.from_pairs(Pairs.from_log_odds(log_odds, labels)).average_precision
            if along_tree
            else ndcg(log_odds, own, ranked)
        )
        loss = softplus_sum(log_odds.ravel(), ones) - float(log_odds[labels.nonzero()].sum())
        if best is None or gain > best[0] * (1.0 + WORTH) or (gain >= best[0] * (1.0 - WORTH) and loss < best[1]):
            best = gain, loss, kind, log_odds
    assert best is not None
    slope, offset = _lines((best[2],), scores, labels, trained, trained.typical[None])[best[2]]
    k = scores.shape[1]
    said = best[3]
    every = np.ones(scores.shape[1], bool) if ranked is None else ranked
    gain = ndcg(of_own(said, every, parents), own, ranked) if along_tree else best[0]
    log_odds = np.empty(said.shape)
    for fitted_to, applied_to in parts:
        log_odds[applied_to] = _curve(said[fitted_to], labels[fitted_to])(said[applied_to])
    calibration = NodeCalibration(slope[0], offset[0], np.zeros(k), np.ones(k), curve=_curve(said, labels))
    return FittedSets(calibration, log_odds, gain)


def _curve(log_odds: Floats, labels: sp.csr_matrix) -> CalibrationCurve:
    return CalibrationCurve.fit(log_odds.ravel(), labels.toarray().astype(bool).ravel())


def ndcg(values: Floats, own: sp.csr_matrix, ranked: Bools | None = None) -> float:
    """The mean over rows with a label of nDCG@10, by falling values of the labels that are ranked."""
    if ranked is not None and not ranked.all():
        values = np.where(ranked, values, -np.inf)
    sizes = np.diff(own.indptr)
    if not sizes.any():
        return 0.0
    return mean_ndcg(places(values, own.indptr, own.indices), sizes)


def mean_ndcg(place: AnyInts, sizes: AnyInts) -> float:
    """The mean of nDCG@10 over rows with a label, from the places of their labels, row after row.

    Parameters
    ----------
    place : int array, shape (n_labels,)
        From 1; 0 of labels that are not listed.
    sizes : int array, shape (n_rows,)
        How many labels each row has; some row has one.
    """
    gains = np.where((place > 0) & (place <= DEPTH), 1.0 / np.log2(1.0 + np.maximum(place, 1)), 0.0)
    row = np.repeat(np.arange(len(sizes)), sizes)
    ideal = np.cumsum(1.0 / np.log2(2.0 + np.arange(DEPTH)))
    have = sizes > 0
    found = np.bincount(row, gains, len(sizes))[have] / ideal[np.minimum(sizes[have], DEPTH) - 1]
    return float(found.mean())


def _lines(
    kinds: Sequence[Kind], scores: AnyFloats, labels: sp.csr_matrix, trained: Trained, counts: Array
) -> dict[Kind, tuple[Floats, Floats]]:
    """Slopes and offsets for so many training rows with each label, float64 arrays of the shape of counts."""
    own = np.flatnonzero(np.asarray(labels.sum(axis=0)).ravel() >= OWN_ROWS)
    if len(own) and any(kind.own for kind in kinds):
        fitted = NodeCalibration.fit(scores[:, own], sp.csr_matrix(labels[:, own]))
    common = {
        frequency: FrequencyCalibration.fit(scores, labels, trained, frequency=frequency).lines(counts)
        for frequency in {kind.frequency for kind in kinds}
    }
    # nothing is known of a label that no row of the training has
    absent, rest = counts == 0, NodeCalibration.of_rest(len(scores))
    found = {}
    for kind in kinds:
        slope, offset = common[kind.frequency]
        slope, offset = np.where(absent, 0.0, slope), np.where(absent, rest, offset)
        if kind.own and len(own):
            slope[:, own] = fitted.slope / fitted.deviation
            offset[:, own] = fitted.offset - fitted.slope * fitted.mean / fitted.deviation
        found[kind] = slope, offset
    return found
