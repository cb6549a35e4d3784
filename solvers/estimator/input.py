"""Labels, weights and label trees as scikit-learn's users give them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from solvers.labels.taxonomy import Taxonomy
from solvers.numerics.array_types import Array, Bools, Floats

Hierarchy = Sequence[tuple[Any, Any]] | None


def tree_of(hierarchy: Hierarchy) -> Taxonomy:
    """The label tree of edges (parent, child)."""
    return Taxonomy.from_edges([(str(parent), str(child)) for parent, child in hierarchy or ()])


def node_labels(tree: Taxonomy, hierarchy: Hierarchy, known: Mapping[str, Any]) -> Array:
    """The nodes as they were given: as the labels ``known`` by their names, or else in the tree."""
    given = {str(node): node for edge in hierarchy or () for node in edge} | dict(known)
    nodes = [given[name] for name in tree.names]
    # labels of several kinds stay what they are
    return np.array(nodes, None if len({type(node) for node in nodes}) == 1 else object)


def are_sets(y: Any) -> bool:
    """Whether labels come as a collection for each example."""
    if isinstance(y, np.ndarray) and (y.dtype != object or y.ndim != 1):
        return False
    given = list(y) if isinstance(y, np.ndarray | list | tuple) else []
    return bool(given) and all(isinstance(labels, list | tuple | set | frozenset) for labels in given)


def kept_weights(sample_weight: ArrayLike | None, shape: tuple[int, ...]) -> tuple[Bools, Floats | None]:
    """Which examples count, and the weights of those."""
    if sample_weight is None:
        return np.ones(shape, bool), None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != shape:
        raise ValueError(f"sample_weight has shape {weights.shape}; y has {shape}")
    keep = weights != 0
    if not keep.any():
        raise ValueError("every sample_weight is zero; at least two examples need a positive weight")
    return keep, weights[keep]


def plain(value: Any) -> Any:
    """A number of numpy's as one of Python's; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value
