"""What features bring to a score adds up to it, for every kind of model that weighs features."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.core.linear_model import LinearModel
from solvers.core.model import Model
from solvers.core.sharded_linear_model import ShardedLinearModel
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.hierarchical.learnt_trees.centroid_model import CentroidModel
from solvers.hierarchical.learnt_trees.label_tree_model import LabelTreeModel
from solvers.hierarchical.learnt_trees.secants import hinge_secants, mean_secants
from solvers.hierarchical.taxonomy_model import TaxonomyModel
from solvers.kernel_svm.kernel_function import KernelFunction
from solvers.kernel_svm.kernel_model import KernelModel
from solvers.labels.taxonomy import Taxonomy
from solvers.output_codes.linear_code_model import LinearCodeModel
from solvers.selection.later_places import LaterPlaces
from solvers.selection.pool_model import PoolModel
from solvers.selection.tempering import Tempering

N, K = 9, 6
TREE = Taxonomy.from_edges([("root", "a"), ("root", "b"), ("a", "c"), ("a", "d"), ("b", "e"), ("d", "f")])


def models(seed: int) -> list[Model]:
    rng = np.random.default_rng(seed)
    classes, some = tuple("abcdef"), np.array([0, 2, 3, 7])
    W, b = rng.normal(size=(N, K)).astype(np.float32), rng.normal(size=K).astype(np.float32)
    dense = LinearModel(classes, N, np.arange(N), W)
    few = LinearModel(classes, N, some, W[some], b)
    sparse = SparseLinearModel(classes, sp.csr_matrix(W * (W > 0)), b)
    owner = np.array([1, 0, 1, 0, 0, 1], np.int32)
    features = np.append(some, N)
    blocks = [rng.normal(size=(len(features), 3)).astype(np.float32) for _ in range(2)]
    sharded = ShardedLinearModel(classes, N, features, owner, blocks, 2.0)
    code = LinearCodeModel(classes, N, np.arange(N), W, np.eye(K), b)
    pool = PoolModel([dense, few, sparse], np.array([0.5, 1.5, 1.0]))
    flat = TaxonomyModel(TREE, N, np.arange(N), W, b, np.arange(K, dtype=np.int32))
    centroids = CentroidModel(classes, sp.csr_matrix(W * (W > 0)), 0.05)
    trees = label_trees(rng)
    curved = PoolModel([trees, centroids, dense], np.array([1.5, 0.5, 1.0]))
    tempered = PoolModel(curved.members, curved.coefficients, tempering=Tempering(-0.2, 0.1))
    later = LaterPlaces(np.array([0.2, 2.0, 0.7]))
    both = PoolModel(curved.members, curved.coefficients, tempering=tempered.tempering, later=later)
    alone = PoolModel(pool.members, pool.coefficients, later=later)
    return [dense, few, sparse, sharded, code, pool, flat, centroids, trees, curved, tempered, both, alone]


def label_trees(rng: np.random.Generator) -> LabelTreeModel:
    """Two trees over the six classes: three pairs, and one class at the side of all others."""
    parent = np.array([-1, 0, 0, 0, 1, 1, 2, 2, 3, 3, -1, 10, 10, 12, 12, 12, 12, 12], np.int32)
    label = np.array([-1, -1, -1, -1, 0, 5, 1, 2, 4, 3, -1, 3, -1, 0, 1, 2, 4, 5], np.int32)
    W = rng.normal(size=(N, len(parent))).astype(np.float32)
    return LabelTreeModel(
        tuple("abcdef"), sp.csr_matrix(W), rng.normal(size=len(parent)).astype(np.float32), parent, label
    )


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.lists(st.integers(0, N - 1), unique=True), *[st.integers(0, K - 1)] * 2)
def test_parts_add_up_to_the_score_and_to_the_lead(seed: int, features: list[int], best: int, rival: int) -> None:
    indices = np.array(sorted(features), np.int32)
    values = np.random.default_rng(seed).normal(size=len(indices))
    for model in models(seed):
        scores = model.score_one(indices, values).astype(np.float64)
        for other, expected in ((None, scores[best]), (rival, scores[best] - scores[rival])):
            found = model.contributions(indices, values, best, other)
            assert found is not None
            assert found.parts.shape == indices.shape
            assert found.parts.sum() + found.intercept == pytest.approx(expected, rel=1e-6, abs=1e-5)


@given(st.integers(0, 10_000))
def test_along_a_tree_the_parts_of_each_step_add_up_to_its_margin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = len(TREE.names)
    W, b = rng.normal(size=(N, nodes)).astype(np.float32), rng.normal(size=nodes).astype(np.float32)
    model = TaxonomyModel(TREE, N, np.arange(N), W, b)
    indices, values = np.arange(N, dtype=np.int32), rng.normal(size=N)
    (best, *_), _ = model.top(indices, values, 2)
    contests = model.contests(indices, values, int(best), None)
    assert [model.classes[node] for node, _ in contests] == model.path(int(best))
    for (node, rival), margin in zip(contests, model.level_margins(indices, values, int(best)), strict=True):
        assert (rival is None) == np.isinf(margin)
        if rival is not None:
            assert TREE.parent[rival] == TREE.parent[node]
            found = model.contributions(indices, values, node, rival)
            assert found.parts.sum() + found.intercept == pytest.approx(margin, abs=1e-5)


@given(st.floats(-8, 8), st.floats(-8, 8))
def test_a_secant_of_the_hinge_is_the_quotient_of_differences(margin: float, intercept: float) -> None:
    (slope,) = hinge_secants(np.array([margin]), np.array([intercept]))
    rise = max(0.0, 1 - intercept) ** 2 - max(0.0, 1 - margin) ** 2
    assert slope * (margin - intercept) == pytest.approx(rise, abs=1e-12)
    assert 0.0 <= slope <= 2.0 * max(0.0, 1 - min(margin, intercept)) + 1e-12


terms = st.lists(st.tuples(st.floats(-300, 0), st.floats(-300, 0)), min_size=1, max_size=5)


@given(terms, st.sampled_from([-69.0, -1000.0]))
def test_secants_of_a_mean_of_exponentials_add_up_to_its_difference(
    both: list[tuple[float, float]], floor: float
) -> None:
    after, before = np.array(both).T
    slopes = mean_secants(after, before, floor)
    values = [max(np.logaddexp.reduce(at) - np.log(len(at)), floor) for at in (after, before)]
    assert slopes @ (after - before) == pytest.approx(values[0] - values[1], abs=1e-8)
    assert slopes.min() >= 0.0


def test_only_what_a_feature_brings_to_every_row_alike_counts_as_its_weight() -> None:
    indices, values = np.arange(N, dtype=np.int32), np.ones(N)
    said = [model.contributions(indices, values, 0, None).additive for model in models(0)]
    assert said == [True] * 7 + [False] * 6


def test_a_model_without_weights_of_features_says_so() -> None:
    function = KernelFunction("rbf", gamma=1.0)
    model = KernelModel(("a", "b"), 3, function, np.arange(3), sp.csr_matrix(np.eye(3)), np.ones((3, 2)))
    indices, values = np.array([0], np.int32), np.array([1.0])
    assert model.contributions(indices, values, 0, 1) is None
    assert PoolModel([model], np.array([1.0])).contributions(indices, values, 0, 1) is None
