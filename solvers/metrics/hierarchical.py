"""Measures of single labels predicted in a label tree."""

import numpy as np
from numpy.typing import NDArray

from solvers.labels.taxonomy import Taxonomy


def hierarchical(tree: Taxonomy, y_true: NDArray[np.integer], y_pred: NDArray[np.integer]) -> dict[str, float]:
    """Error rate, tree-induced loss and F1 of predicted nodes; Zhou et al. 2011, sections 2 and 6.

    Parameters
    ----------
    tree : Taxonomy
    y_true, y_pred : int arrays, shape (n_samples,)
        Nodes; a true label that the tree does not have is -1, the root: it counts as an error, as far away as the
        prediction is deep.

    Returns
    -------
    dict
        ``error``, the share of rows whose true label is neither the predicted node nor above it; ``tree_loss``, the
        mean of half the length of the path between the two; ``micro_f1``, that of all labels on the paths, the
        root left out; ``macro_f1``, the mean over the nodes that are on some path, and nothing for labels that the
        tree does not have. For every level l: ``error_l``, the share of rows whose true path has another node there
        than the predicted one, of those that come so far; ``precision_l``, ``recall_l``, ``f1_l`` and ``macro_f1_l``
        of the labels of that level; 0 where there is nothing to divide by.

    Raises
    ------
    ValueError
        There are no rows.
    """
    if len(y_true) == 0:
        raise ValueError("no rows to measure; at least one was expected")
    true, predicted = _ancestry(tree, y_true), _ancestry(tree, y_pred)
    hits, has_true, has_predicted = (true == predicted) & (true >= 0), true >= 0, predicted >= 0
    own_level = np.where(y_true >= 0, tree.level[y_true], 0)
    right = (y_true >= 0) & (hits.sum(axis=1) == own_level)
    measures = {
        "error": float(1 - right.mean()),
        "tree_loss": float(tree.distance(y_true, y_pred).mean()),
        "micro_f1": ratio(2 * hits.sum(), has_true.sum() + has_predicted.sum()),
    }
    on_path = [
        np.bincount(of[where], minlength=tree.n_nodes) for of, where in ((true, has_true), (predicted, has_predicted))
    ]
    common, total = np.bincount(true[hits], minlength=tree.n_nodes), on_path[0] + on_path[1]
    measures["macro_f1"] = mean_f1(common, total)
    for level in range(tree.depth):
        hit, real, said = (int(part[:, level].sum()) for part in (hits, has_true, has_predicted))
        measures[f"precision_{level + 1}"] = ratio(hit, said)
        measures[f"recall_{level + 1}"] = ratio(hit, real)
        measures[f"f1_{level + 1}"] = ratio(2 * hit, real + said)
        measures[f"error_{level + 1}"] = ratio(real - hit, real)
        nodes = tree.level_range(level + 1)
        measures[f"macro_f1_{level + 1}"] = mean_f1(common[nodes.start : nodes.stop], total[nodes.start : nodes.stop])
    return measures


def _ancestry(tree: Taxonomy, nodes: NDArray[np.integer]) -> NDArray[np.int32]:
    """The node of every level on the path to each of these, shape (n, depth); -1 below them."""
    paths = np.full((tree.n_nodes + 1, tree.depth), -1, np.int32)
    owner = np.repeat(np.arange(tree.n_nodes), tree.level)
    paths[owner, tree.level[tree.path_nodes] - 1] = tree.path_nodes
    return np.asarray(paths[nodes])


def mean_f1(common: NDArray[np.integer], total: NDArray[np.integer]) -> float:
    """The mean F1 of labels that occur, of how often each is hit and is in either; 0 where none does."""
    seen = total > 0
    return float((2 * common[seen] / total[seen]).mean()) if seen.any() else 0.0


def ratio(part: int, whole: int) -> float:
    """What part is of the whole, 0 of nothing."""
    return float(part / whole) if whole else 0.0
