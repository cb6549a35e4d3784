"""Trees over the classes, made by clustering their centroids.

The centroid of a class is the sum of its rows, at unit length. Two ways to divide a set of classes: balanced spherical
2-means, which halves it (Prabhu et al. 2018, Parabel, section 4.1), and spherical k-means with many clusters of any
size (Khandagale et al. 2020, Bonsai, section 3.2). A set that is small enough is divided no further: its classes are
leaves below one node.
"""

from collections import deque
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from solvers.numerics.array_types import Floats, Floats32, Ints, Ints32

Clustering = Literal["balanced", "kmeans"]
ROUNDS = 20


class LabelTree(NamedTuple):
    """A tree whose leaves are classes; nodes are ordered level by level, the root first, siblings side by side.

    Attributes
    ----------
    parent : int32 array, shape (n_nodes,)
        -1 of the root.
    label : int32 array, shape (n_nodes,)
        The class of a leaf; -1 of all other nodes.
    """

    parent: Ints32
    label: Ints32

    def child_of_class(self, n_classes: int) -> Ints32:
        """For each level below the root and each class the node on its path there; -1 below its leaf."""
        leaf = np.empty(n_classes, np.int32)
        leaf[self.label[self.label >= 0]] = np.flatnonzero(self.label >= 0)
        levels = []
        for node in leaf.tolist():
            path = []
            while self.parent[node] >= 0:
                path.append(node)
                node = int(self.parent[node])
            levels.append(path[::-1])
        depth = max(map(len, levels))
        return np.array([[*path, *[-1] * (depth - len(path))] for path in levels], np.int32).T


def centroids(X: sp.csr_matrix, y: Ints32, n_classes: int, weights: Floats) -> sp.csr_matrix:
    """The centroids of the classes, shape (n_classes, n_features), rows of unit length or zero.

    Parameters
    ----------
    X : csr_matrix, shape (n_samples, n_features)
    y : int32 array, shape (n_samples,)
    n_classes : int
    weights : float64 array, shape (n_samples,)
    """
    members = sp.csr_matrix((weights, (y, np.arange(len(y)))), shape=(n_classes, len(y)))
    sums = sp.csr_matrix(members @ X)
    row = np.repeat(np.arange(n_classes), np.diff(sums.indptr))
    lengths = np.sqrt(np.bincount(row, sums.data * sums.data, n_classes))
    sums.data /= np.where(lengths > 0, lengths, 1.0)[row]
    return sums


def learn_tree(
    centers: sp.csr_matrix, clustering: Clustering, branches: int, most_leaves: int, rng: np.random.Generator
) -> LabelTree:
    """Divide all classes, then their parts, until at most ``most_leaves`` are left in each.

    Parameters
    ----------
    centers : csr_matrix, shape (n_classes, n_features)
        Of unit length.
    clustering : str
        ``balanced`` halves a set; ``kmeans`` makes up to ``branches`` clusters of it.
    branches : int
    most_leaves : int
    rng : Generator
        Draws the first centres of the clusters.
    """
    n_classes = centers.shape[0]
    parent, label = [-1], [-1]
    open_nodes = deque([(0, np.arange(n_classes))])
    while open_nodes:
        node, classes = open_nodes.popleft()
        parts = [classes] if len(classes) <= most_leaves else _divide(centers, classes, clustering, branches, rng)
        if len(parts) == 1:
            parent.extend([node] * len(classes))
            label.extend(classes.tolist())
            continue
        for part in parts:
            if len(part) > 1:
                open_nodes.append((len(parent), part))
            parent.append(node)
            label.append(int(part[0]) if len(part) == 1 else -1)
    return LabelTree(np.array(parent, np.int32), np.array(label, np.int32))


def _divide(
    centers: sp.csr_matrix, classes: Ints, clustering: Clustering, branches: int, rng: np.random.Generator
) -> list[Ints]:
    rows = sp.csr_matrix(centers[classes])
    used = np.flatnonzero(np.bincount(rows.indices, minlength=rows.shape[1]))
    if len(used) == 0:
        return np.array_split(classes, 2)
    rows = sp.csr_matrix(rows[:, used], dtype=np.float32)
    n_clusters = 2 if clustering == "balanced" else min(branches, len(classes))
    means = rows[np.sort(rng.choice(len(classes), n_clusters, replace=False))].toarray()
    found = np.full(len(classes), -1)
    for _ in range(ROUNDS):
        likeness = np.asarray(rows @ means.T)
        clusters = _halves(likeness) if clustering == "balanced" else likeness.argmax(axis=1)
        if (clusters == found).all():
            break
        found = clusters
        means = cluster_means(rows, found)
    return [classes[found == cluster] for cluster in np.unique(found)]


def cluster_means(rows: sp.csr_matrix, clusters: Ints) -> Floats32:
    """The sums of the rows of each cluster, at unit length or zero, float32, shape (n_clusters, n_features)."""
    order, ends = np.argsort(clusters, kind="stable"), np.cumsum(np.bincount(clusters))
    members = (np.ones(len(order), np.float32), order, np.append(0, ends))
    sums = (sp.csr_matrix(members, shape=(len(ends), len(order))) @ rows).toarray()
    lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))
    return np.asarray(sums / np.where(lengths > 0, lengths, np.float32(1.0))[:, None])


def _halves(likeness: Floats32) -> Ints:
    """1 for the half that is more like the second mean, 0 for the other, which has one more where they are odd."""
    order = np.argsort(likeness[:, 1] - likeness[:, 0], kind="stable")
    halves = np.zeros(len(order), np.int64)
    halves[order[(len(order) + 1) // 2 :]] = 1
    return halves
