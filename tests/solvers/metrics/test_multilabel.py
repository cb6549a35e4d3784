"""Measures of sets of labels against their definitions."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems import random_sets, random_tree
from sklearn.metrics import f1_score

from solvers.labels.label_sets import of_names
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.multilabel import multilabel


def defined(tree, Y, U):
    """Losses as they are written down in the paper, H with all ancestors and with the parent alone."""
    reported = {"error": 0.0, "hierarchical_symmetric_difference": 0.0}
    for y, u in zip(Y, U, strict=True):
        reported["error"] += (y != u).any()
        reported["hierarchical_symmetric_difference"] += (y != u).sum()
        for kind in ("uniform", "sibling", "subtree"):
            c = tree.loss_weights(kind)
            reported[f"h_{kind}"] = reported.get(f"h_{kind}", 0.0) + sum(
                c[j] for j in range(tree.n_nodes) if y[j] != u[j] and all(y[h] == u[h] for h in tree.ancestors(j))
            )
            reported[f"edge_{kind}"] = reported.get(f"edge_{kind}", 0.0) + sum(
                c[j]
                for j in range(tree.n_nodes)
                if y[j] != u[j] and (tree.parent[j] < 0 or y[tree.parent[j]] == u[tree.parent[j]])
            )
    return {name: value / len(Y) for name, value in reported.items()}


@pytest.mark.parametrize("seed", range(5))
def test_losses_are_those_of_the_paper_whose_two_hierarchical_ones_agree_on_closed_sets(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 9)
    Y, U = random_sets(rng, tree, 20), random_sets(rng, tree, 20)
    reported, due = multilabel(tree, sp.csr_matrix(Y), sp.csr_matrix(U)), defined(tree, Y, U)
    for name, value in due.items():
        assert reported[name.replace("edge_", "h_")] == pytest.approx(value), name
    hit, real, said = (Y & U).sum(), Y.sum(), U.sum()
    found = (reported["hierarchical_precision"], reported["hierarchical_recall"], reported["hierarchical_f1"])
    assert found == pytest.approx((hit / said, hit / real, 2 * hit / (said + real)))
    for average in ("macro", "weighted"):
        seen = np.flatnonzero((Y | U).any(axis=0))
        due = f1_score(Y, U, labels=seen, average=average, zero_division=0)
        assert reported[f"hierarchical_{average}_f1"] == pytest.approx(due)


@pytest.mark.parametrize("seed", range(5))
def test_measures_of_a_level_are_those_of_its_labels_alone(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 12)
    Y, U = random_sets(rng, tree, 20), random_sets(rng, tree, 20)
    reported = multilabel(tree, sp.csr_matrix(Y), sp.csr_matrix(U))
    for level in range(1, tree.depth + 1):
        at = tree.level == level
        y, u = Y[:, at], U[:, at]
        f1 = [2 * (a & b).sum() / (a.sum() + b.sum()) for a, b in zip(y.T, u.T, strict=True) if a.any() or b.any()]
        assert reported[f"error_{level}"] == pytest.approx(np.mean([(a != b).any() for a, b in zip(y, u, strict=True)]))
        assert reported[f"macro_f1_{level}"] == pytest.approx(np.mean(f1) if f1 else 0.0)
        assert reported[f"f1_{level}"] == pytest.approx(2 * (y & u).sum() / max(1, y.sum() + u.sum()))


def test_a_table_worked_by_hand():
    tree = Taxonomy.from_edges([("root", "a"), ("root", "b"), ("a", "c"), ("a", "d")])
    true, _ = of_names(tree, [["c"], ["b"], []])
    said, _ = of_names(tree, [["d"], ["b"], ["b"]])
    reported = multilabel(tree, true, said)
    assert reported == pytest.approx(
        {
            "error": 2 / 3,
            "hierarchical_symmetric_difference": 1.0,
            "symmetric_difference": 1.0,
            "h_uniform": 1.0,
            "h_sibling": (0.25 + 0.25 + 0.5) / 3,
            "h_subtree": (0.2 + 0.2 + 0.2) / 3,
            "hierarchical_precision": 0.5,
            "hierarchical_recall": 2 / 3,
            "hierarchical_f1": 4 / 7,
            "hierarchical_macro_f1": (1.0 + 2 / 3 + 0 + 0) / 4,
            "hierarchical_weighted_f1": (1.0 + 2 / 3 + 0) / 3,
            # own labels: c and b; d, b and b
            "precision": 1 / 3,
            "recall": 0.5,
            "micro_f1": 0.4,
            "macro_f1": (2 / 3 + 0 + 0) / 3,
            "weighted_f1": (2 / 3 + 0) / 2,
            "precision_1": 2 / 3,
            "recall_1": 1.0,
            "f1_1": 0.8,
            "error_1": 1 / 3,
            "macro_f1_1": (1.0 + 2 / 3) / 2,
            "weighted_f1_1": (1.0 + 2 / 3) / 2,
            "precision_2": 0.0,
            "recall_2": 0.0,
            "f1_2": 0.0,
            "error_2": 1 / 3,
            "macro_f1_2": 0.0,
            "weighted_f1_2": 0.0,
        }
    )


def test_sets_that_do_not_fit_the_tree_or_no_rows_at_all_are_refused():
    tree = Taxonomy.flat(["a", "b"])
    with pytest.raises(ValueError, match="n_samples, 2"):
        multilabel(tree, sp.csr_matrix((3, 2)), sp.csr_matrix((3, 4)))
    with pytest.raises(ValueError, match="no rows"):
        multilabel(tree, sp.csr_matrix((0, 2)), sp.csr_matrix((0, 2)))
