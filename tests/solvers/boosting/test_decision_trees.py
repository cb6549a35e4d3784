"""Small decision trees as weak learners."""

import numpy as np
import pytest
import scipy.sparse as sp
from test_binning import codes_of, mixed
from test_stumps import filled

from solvers.boosting.weak_learners.binning import Bins
from solvers.boosting.weak_learners.decision_trees import DecisionTrees
from solvers.numerics.thread_pool import ThreadPool

STORES = [0, 1 << 30]


def grown(codes: np.ndarray, u: np.ndarray, depth: int) -> tuple[list, np.ndarray]:
    """The tree of one channel by its definition: splits as (feature, bin) or None, and the leaf values by row."""
    nodes = np.zeros(len(u), int)
    splits = []
    for level in range(depth):
        after = nodes.copy()
        for node in range(1 << level):
            mine = nodes == node
            best, split = abs(u[mine].sum()), None
            for f in range(len(codes)):
                for b in range(codes[f].max()):
                    value = abs(u[mine & (codes[f] <= b)].sum() - u[mine & (codes[f] > b)].sum())
                    if value > best:
                        best, split = value, (f, b)
            splits.append(split)
            if split is not None:
                after[mine & (codes[split[0]] > split[1])] = node + (1 << level)
        nodes = after
    sums = np.bincount(nodes, u, 1 << depth)
    return splits, np.where(sums >= 0, 1, -1)[nodes]


def trees_of(X: sp.csr_matrix, depth: int, store: int = 1 << 30, held: sp.csr_matrix | None = None) -> DecisionTrees:
    bins = Bins.from_matrix(X)
    return DecisionTrees(bins, bins.encode(X if held is None else held), depth, store)


# whole numbers, so that no sum is rounded and ties are ties
def weights(m: int, n: int) -> np.ndarray:
    return np.random.default_rng(m).integers(-50, 50, (m, n)).astype(float)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("depth", "m"), [(2, 3), (3, 18)])
def test_a_tree_is_grown_by_the_best_stump_of_each_node(depth, m, store):
    X = mixed(120)[:, [0, 1, 4, 6]]
    trees = trees_of(X, depth, store)
    u = weights(m, 120)
    channels = filled(u)
    channels.fit(np.full(m, channels.top))
    for j in range(m):
        channels.U[j // 16, j % 16 :: 16] = u[j]
    channels.totals.reshape(-1)[:m] = u.sum(axis=1)
    with ThreadPool(1) as thread_pool:
        found = trees.find(channels, thread_pool, [0])
    codes = codes_of(trees.bins)
    responses = trees.responses(found.learners)
    for j in range(m):
        splits, said = grown(codes, u[j], depth)
        places = trees.splits[found.learners[j]]
        reported = [
            None if p < 0 else (int(trees.bins.feature_of(p)), int(p - trees.bins.first[trees.bins.feature_of(p)]))
            for p in places
        ]
        assert reported == splits
        np.testing.assert_array_equal(responses[j], said)
        assert found.values[j] == pytest.approx(u[j] @ said)


# bins are stored in one byte, or by two where there are more than 256
@pytest.mark.parametrize("n", [240, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("store", STORES)
def test_threads_change_no_bit(store, n, monkeypatch):
    monkeypatch.setattr("solvers.boosting.weak_learners.stumps.PIECE", 100)
    monkeypatch.setattr("solvers.boosting.weak_learners.decision_trees.ROWS", 100)
    X = sp.csr_matrix(sp.hstack([mixed(n, seed=seed) for seed in range(4)]))
    channels = filled(np.random.default_rng(0).standard_normal((20, n)))
    grown = []
    for size in (1, 3):
        trees = trees_of(X, 3, store)
        with ThreadPool(size) as thread_pool:
            found = trees.find(channels, thread_pool, [0])
        grown.append((trees.arrays(), found))
    for key, array in grown[0][0].items():
        np.testing.assert_array_equal(array, grown[1][0][key])
    np.testing.assert_array_equal(grown[0][1].values, grown[1][1].values)


def test_trees_are_kept_once_and_come_back():
    X, other = mixed(200), mixed(30, seed=1)
    trees = trees_of(X, 2, held=other)
    u = weights(5, 200)
    with ThreadPool(1) as thread_pool:
        first, again = (trees.find(filled(u), thread_pool, [0]) for _ in range(2))
        np.testing.assert_array_equal(first.learners, again.learners)
        assert len(trees.arrays()["tree_splits"]) == 5
        copy = trees_of(X, 2, held=other)
        copy.restore({name: np.array(array) for name, array in trees.arrays().items()})
        learners = np.append(first.learners, -1)
        for held in (False, True):
            responses = trees.responses(learners, held=held)
            np.testing.assert_array_equal(copy.responses(learners, held=held), responses)
            assert (responses[-1] == 1).all()
        assert copy.find(filled(u), thread_pool, [0]).learners.tolist() == first.learners.tolist()
        more = copy.find(filled(weights(3, 200)), thread_pool, [0])
    assert more.learners.tolist() == [5, 6, 7]


def test_weights_of_one_sign_ask_nothing():
    trees = trees_of(mixed(50), 3)
    with ThreadPool(1) as thread_pool:
        found = trees.find(filled(-np.ones((2, 50))), thread_pool, [0])
    assert (trees.arrays()["tree_splits"] == -1).all()
    assert (trees.responses(found.learners) == -1).all()
