"""Measures of sets of labels predicted in a label tree."""

from typing import get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.labels.taxonomy import Taxonomy, Weighting
from solvers.metrics.hierarchical import mean_f1, ratio


def multilabel(tree: Taxonomy, true: sp.csr_matrix, predicted: sp.csr_matrix) -> dict[str, float]:
    """The measures of Rousu et al. 2005, sections 2.1 and 4.

    Parameters
    ----------
    tree : Taxonomy
    true, predicted : csr_matrix of bool, shape (n_samples, n_nodes)
        Closed upwards. For such sets the paper's two hierarchical losses, H and its simpler form over edges, are one:
        a label whose parents agree on "no" is in neither set.

    Returns
    -------
    dict
        Means over the examples: ``error``, 1 where the two sets are not the same; ``symmetric_difference``, the number
        of labels in one of them alone; ``h_uniform``, ``h_sibling`` and ``h_subtree``, the weights of the highest
        labels that differ (:meth:`Taxonomy.loss_weights`). Over all labels of all examples ``precision``, ``recall``
        and ``micro_f1``; ``macro_f1``, the mean over the nodes that occur in either. For every level l ``error_l``,
        the share of examples whose labels of that level are not the same, and ``precision_l``, ``recall_l``, ``f1_l``
        and ``macro_f1_l`` of the labels of that level; 0 where there is nothing to divide by.

    Raises
    ------
    ValueError
        There are no rows, or the shapes do not fit.
    """
    shape = (predicted.shape[0], tree.n_nodes)
    if true.shape != shape or predicted.shape != shape:
        raise ValueError(f"sets have shapes {true.shape} and {predicted.shape}; two of (n_samples, {tree.n_nodes}) fit")
    if shape[0] == 0:
        raise ValueError("no rows to measure; at least one was expected")
    real_keys, said_keys = _keys(true), _keys(predicted)
    differing = np.setxor1d(real_keys, said_keys, assume_unique=True)
    row, node = np.divmod(differing, tree.n_nodes)
    n_different = np.bincount(row, minlength=shape[0])
    # where a parent differs too, it comes first on the path, and the loss is its
    under = np.isin(row * tree.n_nodes + tree.parent[node], differing)
    highest = node[(tree.parent[node] < 0) | ~under]
    measures = {"error": float((n_different > 0).mean()), "symmetric_difference": float(n_different.mean())}
    measures |= {f"h_{kind}": float(tree.loss_weights(kind)[highest].sum() / shape[0]) for kind in get_args(Weighting)}
    hits = np.intersect1d(real_keys, said_keys, assume_unique=True)
    hit, real, said = (
        np.bincount(keys % tree.n_nodes, minlength=tree.n_nodes) for keys in (hits, real_keys, said_keys)
    )
    measures |= {
        "precision": ratio(hit.sum(), said.sum()),
        "recall": ratio(hit.sum(), real.sum()),
        "micro_f1": ratio(2 * hit.sum(), real.sum() + said.sum()),
        "macro_f1": mean_f1(hit, real + said),
    }
    for level in range(1, tree.depth + 1):
        nodes = tree.level_range(level)
        there = slice(nodes.start, nodes.stop)
        right, labels, answers = (int(part[there].sum()) for part in (hit, real, said))
        wrong = np.unique(row[(node >= nodes.start) & (node < nodes.stop)])
        measures[f"error_{level}"] = ratio(len(wrong), shape[0])
        measures[f"precision_{level}"] = ratio(right, answers)
        measures[f"recall_{level}"] = ratio(right, labels)
        measures[f"f1_{level}"] = ratio(2 * right, labels + answers)
        measures[f"macro_f1_{level}"] = mean_f1(hit[there], real[there] + said[there])
    return measures


def _keys(sets: sp.csr_matrix) -> NDArray[np.int64]:
    """One number for each label of each row, ascending."""
    entries = sp.coo_matrix(sets)
    held = entries.data != 0
    return np.unique(entries.row[held].astype(np.int64) * sets.shape[1] + entries.col[held])
