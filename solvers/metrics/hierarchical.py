"""Measures of single labels predicted in a label tree."""

import numpy as np
from numpy.typing import NDArray

from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.flat import flat
from solvers.metrics.label_table import LabelTable, hierarchical_names, ratio
from solvers.numerics.array_types import Bools, Ints32


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
        mean of half the length of the path between the two. Of all labels on the paths, the root left out,
        ``hierarchical_precision``, ``hierarchical_recall`` and ``hierarchical_f1`` of Kiritchenko et al. 2006;
        ``hierarchical_macro_f1``, the mean over the nodes that are on some path, and nothing for labels that the tree
        does not have; ``hierarchical_weighted_f1``, that by the nodes' numbers of rows. ``precision``, ``recall``,
        ``micro_f1``, ``macro_f1`` and ``weighted_f1`` are of the labels themselves, as without a tree
        (:func:`solvers.metrics.flat.flat`); a node predicted below the true one counts as the true one there. For every
        level l ``error_l``, the share of rows whose true path has another node there than the predicted one, of those
        that come so far; ``precision_l``, ``recall_l``, ``f1_l``, ``macro_f1_l`` and ``weighted_f1_l`` of the labels of
        that level; 0 where there is nothing to divide by.

    Raises
    ------
    ValueError
        There are no rows.
    """
    if len(y_true) == 0:
        raise ValueError("no rows to measure; expected at least one")
    true, predicted = ancestry(tree, y_true), ancestry(tree, y_pred)
    hits, has_true = (true == predicted) & (true >= 0), true >= 0
    measures = {
        "error": float(1 - right(tree, y_true, y_pred).mean()),
        "tree_loss": float(tree.distance(y_true, y_pred).mean()),
    }
    counts = LabelTable(
        *(
            np.bincount(nodes, minlength=tree.n_nodes)
            for nodes in (true[hits], true[has_true], predicted[predicted >= 0])
        )
    )
    measures |= hierarchical_names(tree, counts.averages())
    reached = right(tree, y_true, y_pred)
    own = flat(y_true, np.where(reached, y_true, y_pred), tree.n_nodes)
    measures |= {"precision": own["micro_f1"], "recall": own["micro_f1"]}
    measures |= {name: own[name] for name in ("micro_f1", "macro_f1", "weighted_f1")}
    for level in range(1, tree.depth + 1):
        nodes = tree.level_range(level)
        hit, real = (int(part[:, level - 1].sum()) for part in (hits, has_true))
        measures[f"error_{level}"] = ratio(real - hit, real)
        measures |= of_level(counts.at(slice(nodes.start, nodes.stop)), level)
    return measures


def right(tree: Taxonomy, y_true: NDArray[np.integer], y_pred: NDArray[np.integer]) -> Bools:
    """Whether the true label of each row is the predicted node or above it; -1, the root, never is."""
    true = np.asarray(y_true)
    level = np.where(true >= 0, tree.level[true], 1)
    return np.asarray((true >= 0) & (ancestry(tree, y_pred)[np.arange(len(true)), level - 1] == true))


def ancestry(tree: Taxonomy, nodes: NDArray[np.integer]) -> Ints32:
    """The node of every level on the path to each of these, shape (n, depth); -1 below them."""
    paths = np.full((tree.n_nodes + 1, tree.depth), -1, np.int32)
    owner = np.repeat(np.arange(tree.n_nodes), tree.level)
    paths[owner, tree.level[tree.path_nodes] - 1] = tree.path_nodes
    return np.asarray(paths[nodes])


def of_level(counts: LabelTable, level: int) -> dict[str, float]:
    """The averages of the labels of one level under their names there: precision_1, f1_1, macro_f1_1."""
    return {name_at_level(name, level): value for name, value in counts.averages().items()}


def name_at_level(name: str, level: int) -> str:
    """What a measure of the labels of one level is called among those of a version; level 0 has all labels."""
    if level == 0:
        return name
    return f"{'f1' if name == 'micro_f1' else name}_{level}"
