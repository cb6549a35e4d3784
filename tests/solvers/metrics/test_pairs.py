"""Labels that no row has count in all measures as if each were listed."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems import random_graph, random_sets, random_tree

from solvers.hierarchical.subtrees import least_above
from solvers.labels.tree_part import TreePart
from solvers.metrics.confidence.pairs import Pairs, Rest
from solvers.metrics.confidence.set_reliability import SetReliability
from solvers.selection.sets.set_curve import Curve, log_loss
from solvers.selection.sets.set_thresholds import least_precise


def both(seed: int, rest: float) -> tuple[Pairs, Pairs]:
    """The pairs of a few rows with the nodes of a tree, most of which no row has: those counted, and all listed.

    Of odd seeds it is a graph.
    """
    rng = np.random.default_rng(seed)
    tree = random_graph(rng, 40, 0.05) if seed % 2 else random_tree(rng, 40)
    sets = random_sets(rng, tree, 12, share=0.4)
    sets[0, 0] = True
    part = TreePart.of_sets(tree, sp.csr_matrix(sets))
    log_odds = rng.standard_normal((12, len(part.nodes))).round(1) - 1.0
    least_above(part.tree.parents, log_odds)
    every = part.spread(log_odds, rest)
    least_above(tree.parents, every)
    labels = sp.csr_matrix(sets)
    counted = Pairs.from_log_odds(log_odds, sp.csr_matrix(labels[:, part.nodes]), Rest(rest, part.n_hanging))
    return counted, Pairs.from_log_odds(every, labels)


@pytest.mark.parametrize("rest", [-9.0, -2.0, -1.0, 0.0, 5.0])
def test_measures_are_those_of_all_pairs(rest):
    for seed in range(12):
        counted, listed = both(seed, rest)
        assert counted.counts.sum() == len(listed.true) == 12 * 40
        assert len(counted.true) < len(listed.true)
        np.testing.assert_array_equal(counted.best, listed.best)
        assert Curve.from_pairs(counted) == pytest.approx(Curve.from_pairs(listed))
        assert log_loss(counted) == pytest.approx(log_loss(listed))
        for precision in (0.1, 0.3, 0.6):
            assert least_precise(counted, precision) == least_precise(listed, precision)


@pytest.mark.parametrize("rest", [-9.0, -1.0, 5.0])
def test_what_labels_are_worth_is_that_of_all_pairs(rest):
    for seed in range(12):
        counted, listed = both(seed, rest)
        found, expected = SetReliability.from_pairs(counted).arrays(), SetReliability.from_pairs(listed).arrays()
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_without_other_labels_every_pair_counts_once():
    log_odds, labels = np.array([[0.5, -1.0], [2.0, -3.0]]), sp.csr_matrix(np.array([[1, 0], [1, 1]], bool))
    alone, none = (
        Pairs.from_log_odds(log_odds, labels),
        Pairs.from_log_odds(log_odds, labels, Rest(-4.0, np.zeros(3, np.int64))),
    )
    for found in (alone, none):
        assert found.log_odds.tolist() == [0.5, -1.0, 2.0, -3.0]
        assert found.true.tolist() == [True, False, True, True]
        assert found.counts.tolist() == [1, 1, 1, 1]
        assert found.best.tolist() == [0.5, 2.0]
