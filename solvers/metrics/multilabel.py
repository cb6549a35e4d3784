"""Measures of sets of labels predicted in a label tree."""

from typing import get_args

import numpy as np
import scipy.sparse as sp

from solvers.labels.label_sets import edges_up, own_labels
from solvers.labels.taxonomy import Taxonomy, Weighting
from solvers.metrics.hierarchical import of_level
from solvers.metrics.label_table import LabelTable, hierarchical_names
from solvers.numerics.array_types import Floats, Ints


def multilabel(tree: Taxonomy, true: sp.csr_matrix, predicted: sp.csr_matrix) -> dict[str, float]:
    """The measures of Rousu et al. 2005, sections 2.1 and 4.

    Parameters
    ----------
    tree : Taxonomy
    true, predicted : csr_matrix of bool, shape (n_samples, n_nodes)
        Closed upwards. For such sets the paper's two hierarchical losses, H and its simpler form over edges, are one:
        a label whose parents agree on "no" is in neither set. In a graph a label counts by the share of its parents on
        which both sets agree.

    Returns
    -------
    dict
        Means over the examples: ``error``, 1 where the two sets are not the same; the number of labels in one of them
        alone, ``hierarchical_symmetric_difference``; ``h_uniform``, ``h_sibling`` and ``h_subtree``, the weights of the
        highest labels that differ (:meth:`Taxonomy.loss_weights`). Over all labels of all examples
        ``hierarchical_precision``, ``hierarchical_recall`` and ``hierarchical_f1`` of Kiritchenko et al. 2006;
        ``hierarchical_macro_f1``, the mean over the nodes that occur in either; ``hierarchical_weighted_f1``, that by
        the nodes' numbers of examples. ``symmetric_difference``, ``precision``, ``recall``, ``micro_f1``, ``macro_f1``
        and ``weighted_f1`` are of own labels, those without another label of the set below them; a tree of one level
        has these alone. For every level l
        ``error_l``, the share of examples whose labels of that level are not the same, and ``precision_l``,
        ``recall_l``, ``f1_l``, ``macro_f1_l`` and ``weighted_f1_l`` of the labels of that level; 0 where there is
        nothing to divide by.

    Raises
    ------
    ValueError
        There are no rows, or the shapes do not fit.
    """
    shape = (predicted.shape[0], tree.n_nodes)
    if true.shape != shape or predicted.shape != shape:
        raise ValueError(
            f"sets have shapes {true.shape} and {predicted.shape}; expected (n_samples, {tree.n_nodes}) for both"
        )
    if shape[0] == 0:
        raise ValueError("no rows to measure; expected at least one")
    losses, own = set_losses(tree, true, predicted), [own_labels(sets, tree.parents) for sets in (true, predicted)]
    measures = {name: float(values.mean()) for name, values in losses.items()}
    counts = table(true, predicted)
    of_closed = counts.averages() | {"symmetric_difference": measures["symmetric_difference"]}
    measures["symmetric_difference"] = float(n_different(*own).mean())
    measures |= table(*own).averages() | hierarchical_names(tree, of_closed)
    for level in range(1, tree.depth + 1):
        nodes = tree.level_range(level)
        there = slice(nodes.start, nodes.stop)
        measures[f"error_{level}"] = float((n_different(true[:, there], predicted[:, there]) > 0).mean())
        measures |= of_level(counts.at(there), level)
    return measures


def set_losses(tree: Taxonomy, true: sp.csr_matrix, predicted: sp.csr_matrix) -> dict[str, Floats]:
    """The losses of each example, shape (n_samples,): ``error``, ``symmetric_difference`` and the three H-losses.

    Parameters
    ----------
    tree : Taxonomy
    true, predicted : csr_matrix of bool, shape (n_samples, n_nodes)
        Closed upwards.
    """
    row, node = np.divmod(np.setxor1d(_keys(true), _keys(predicted), assume_unique=True), tree.n_nodes)
    # where a parent differs too, the loss is its; of several parents each has its part of the node's
    place, above = edges_up(node, tree.parents)
    differs = np.isin(row[place] * tree.n_nodes + above, row * tree.n_nodes + node)
    n_parents = np.diff(tree.parents.start)[node]
    share = 1.0 - np.bincount(place, differs, minlength=len(node)) / np.maximum(n_parents, 1)
    row_count = predicted.shape[0]
    different = np.bincount(row, minlength=row_count).astype(np.float64)
    losses = {"error": (different > 0).astype(np.float64), "symmetric_difference": different}
    for kind in get_args(Weighting):
        weights = share * tree.loss_weights(kind)[node]
        losses[f"h_{kind}"] = np.bincount(row, weights, minlength=row_count).astype(np.float64)
    return losses


def table(true: sp.csr_matrix, predicted: sp.csr_matrix) -> LabelTable:
    """Counts by label, of sets as csr_matrices of bool, shape (n_samples, n_labels)."""
    n_labels = true.shape[1]
    each = (common(true, predicted), true, predicted)
    return LabelTable(*(np.bincount(sets.indices, sets.data, n_labels).astype(np.int64) for sets in each))


def n_different(true: sp.csr_matrix, predicted: sp.csr_matrix) -> Ints:
    """How many labels are in one of both sets alone, shape (n_samples,)."""
    sizes = [np.asarray(sets.sum(axis=1)).ravel().astype(np.int64) for sets in (true, predicted)]
    both = np.asarray(common(true, predicted).sum(axis=1)).ravel().astype(np.int64)
    return np.asarray(sizes[0] + sizes[1] - 2 * both)


def common(true: sp.csr_matrix, predicted: sp.csr_matrix) -> sp.csr_matrix:
    """The labels that are in both sets."""
    return sp.csr_matrix(true.multiply(predicted))


def _keys(sets: sp.csr_matrix) -> Ints:
    """One number for each label of each row, ascending."""
    entries = sp.coo_matrix(sets)
    held = entries.data != 0
    return np.unique(entries.row[held].astype(np.int64) * sets.shape[1] + entries.col[held])
