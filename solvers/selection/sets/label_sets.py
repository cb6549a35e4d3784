"""What a search measures, chooses and makes of sets of labels."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from solvers.core.base import Solver, State
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.labels.label_sets import own_labels
from solvers.labels.taxonomy import Taxonomy
from solvers.labels.tree_part import TreePart
from solvers.metrics.confidence.pairs import Pairs, Rest
from solvers.metrics.confidence.set_reliability import SetReliability
from solvers.metrics.label_table import LabelTable
from solvers.metrics.multilabel import table
from solvers.numerics.array_types import AnyFloats, Bools, Floats
from solvers.selection.held_out import SET_MEASURES, Measure
from solvers.selection.pooling import Pool
from solvers.selection.sets.frequency_calibration import Trained
from solvers.selection.sets.lighter_members import light_member
from solvers.selection.sets.node_calibration import NodeCalibration
from solvers.selection.sets.own_labels import closed
from solvers.selection.sets.set_calibration import fit_sets
from solvers.selection.sets.set_curve import Curve, log_loss
from solvers.selection.sets.set_model import SetPoolModel, node_scores
from solvers.selection.sets.set_thresholds import SetThresholds
from solvers.selection.tasks import Choice, Scores


class CalibratedSets(NamedTuple):
    """What follows on the scores of the rows held out where rows have sets, shape (n_rows, n_nodes_of_part).

    Attributes
    ----------
    calibration : NodeCalibration
        For a model of all rows, with the threshold of the best micro F1.
    log_odds : float64 array, shape (n_rows, n_nodes_of_part)
        By calibrations that are fitted to other rows.
    rest : Rest
        The nodes that no row has.
    values : list of float
        The measures.
    """

    calibration: NodeCalibration
    log_odds: Floats
    rest: Rest
    pairs: Pairs
    values: list[float]


class LabelSets:
    """Sets of labels: one model, a sigmoid for each node, and one threshold for all or for each.

    Scores are those of the nodes that some row has; measures are over all nodes of the tree.

    Parameters
    ----------
    part : TreePart
        The nodes that some row has, and the whole tree.
    labels : csr_matrix of bool, shape (n_rows, n_nodes_of_part)
        Of the rows held out, in the order of the folds.
    ranked : bool array, shape (n_nodes_of_part,), optional
        The nodes that some row has as its own label; left out, all.
    flat : bool
        Scores are of own labels: a node is in a set as far as the best own label at or below it is.
    """

    measures: tuple[Measure, ...] = SET_MEASURES

    def __init__(
        self,
        part: TreePart,
        labels: sp.csr_matrix,
        thresholds: SetThresholds,
        trained: Trained,
        ranked: Bools | None = None,
        *,
        flat: bool = False,
    ) -> None:
        self._part, self._labels, self._thresholds = part, labels, thresholds
        self._trained, self._flat = trained, flat
        self._ranked = np.ones(len(part.nodes), bool) if ranked is None else ranked

    def member(self, solver: Solver[Any], problem: Problem, state: State) -> Model:
        return light_member(solver, problem, state)

    def scores(self, model: Model, X: sp.csr_matrix, fold: int) -> AnyFloats:
        return node_scores(model, X)

    def n_scores(self, n_rows: int) -> int:
        return n_rows * len(self._part.nodes)

    def measured(self, scores: Scores) -> list[float]:
        return self._calibrated(scores).values

    def choose(self, scores: Mapping[int, Scores], best: int, measure: Measure, most: int) -> Choice:
        part, (calibration, log_odds, rest, pairs, values) = self._part, self._calibrated(scores[best])
        found = {f"held_out_{name}": value for name, value in zip(self.measures, values, strict=True)}
        found["held_out_log_loss"] *= -1.0
        reliability = SetReliability.from_pairs(pairs)
        if self._thresholds != SetThresholds():
            common = self._thresholds.common(pairs)
            each = self._thresholds.of_each(log_odds, self._labels, common) if self._thresholds.each else None
            calibration = calibration._replace(threshold=np.array([common]) if each is None else each)
            averages = self._table(calibration, log_odds, rest, common).averages()
            found |= {f"held_out_{name}": averages[name] for name in ("micro_f1", "precision", "recall")}
            if each is not None:
                calibration = calibration._replace(threshold=part.spread(each, common))
        pool = Pool((best,), np.ones(1), found["held_out_log_loss"])
        whole = calibration.spread(part, NodeCalibration.of_rest(len(log_odds)))
        return Choice(pool, found, {"calibration": whole.arrays(), "set_reliability": reliability.arrays()})

    def model(self, members: Sequence[Model], pool: Pool, kept: Mapping[str, State]) -> Model:
        fitted, held_out, part = kept.get("calibration"), kept.get("set_reliability"), self._part
        if fitted is None:
            # a single row, which cannot be held out
            fitted = NodeCalibration.none(len(part.nodes)).spread(part, NodeCalibration.of_rest(1)).arrays()
        return SetPoolModel(
            part.whole,
            members[0],
            NodeCalibration.from_arrays(fitted),
            SetReliability.from_arrays(held_out) if held_out else None,
            None if part.is_whole else part.nodes,
            part.nodes[self._ranked] if part.tree.depth > 1 else None,
            flat=self._flat,
        )

    def _calibrated(self, scores: Scores) -> CalibratedSets:
        parents, labels = self._part.tree.parents, self._labels
        if self._flat:
            labels, parents = own_labels(labels, parents), Taxonomy.flat(self._part.tree.names).parents
        calibration, log_odds, ndcg = fit_sets(scores, labels, self._trained, parents, self._ranked)
        if self._flat:
            log_odds = closed(log_odds, self._ranked, self._part.tree.parents)
        of_rest = calibration.curve(np.array([NodeCalibration.of_rest(len(scores))]))
        rest = Rest(float(of_rest[0]), self._part.n_hanging)
        pairs = Pairs.from_log_odds(log_odds, self._labels, rest)
        curve = Curve.from_pairs(pairs)
        calibration = calibration._replace(threshold=np.array([curve.threshold]))
        values = [curve.micro_f1, curve.average_precision, ndcg, -log_loss(pairs)]
        return CalibratedSets(calibration, log_odds, rest, pairs, values)

    def _table(self, calibration: NodeCalibration, log_odds: Floats, rest: Rest, common: float) -> LabelTable:
        """Counts of the sets by label, last those of the labels that no row has, all together."""
        predicted = calibration.margins(log_odds, self._part.tree.parents) > 0
        counts, n_named = table(self._labels, sp.csr_matrix(predicted)), 0
        if rest.log_odds > common:
            below = (predicted & (log_odds > common)).sum(axis=0) @ rest.n_hanging[1:]
            n_named = len(log_odds) * int(rest.n_hanging[0]) + int(below)
        return LabelTable(*(np.append(*each) for each in zip(counts, (0, 0, n_named), strict=True)))
