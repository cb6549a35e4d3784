"""What features bring to a score adds up to it, for every kind of model that weighs features."""

from typing import Any, get_args

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from problems import random_tree

from solvers.boosting.weak_learners.binary_machines import CommitteeModel
from solvers.boosting.weak_learners.boosted_model import Ensemble
from solvers.boosting.weak_learners.decision_trees_model import DecisionTreesModel
from solvers.boosting.weak_learners.stumps_model import StumpsModel
from solvers.boosting.weak_learners.votes import Votes
from solvers.core.linear_model import LinearModel
from solvers.core.model import Model
from solvers.core.sharded_linear_model import ShardedLinearModel
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.hierarchical import subtrees
from solvers.hierarchical.kernel_taxonomy_model import KernelTaxonomyModel
from solvers.hierarchical.learnt_trees.centroid_model import CentroidModel
from solvers.hierarchical.learnt_trees.label_tree_model import LabelTreeModel
from solvers.hierarchical.learnt_trees.secants import hinge_secants, mean_secants
from solvers.hierarchical.subtree_model import Rule, SubtreeModel
from solvers.hierarchical.taxonomy_model import TaxonomyModel
from solvers.kernel_svm.kernel_function import KernelFunction
from solvers.kernel_svm.kernel_model import KernelModel
from solvers.labels.taxonomy import Taxonomy
from solvers.labels.tree_part import TreePart
from solvers.numerics.array_types import Floats32
from solvers.output_codes.code_model import CodeModel, LinearCodeModel
from solvers.output_codes.columns.models import SIDES, ColumnModel, ColumnModels
from solvers.output_codes.decoding import Loss, decode, loss_secants
from solvers.selection.later_places import LaterPlaces
from solvers.selection.pool_model import PoolModel
from solvers.selection.sets.node_calibration import NodeCalibration
from solvers.selection.sets.set_model import SetPoolModel
from solvers.selection.temperature_scaling import TemperatureScaling

N, K = 9, 6
LOSSES = get_args(Loss)
NONE = sp.csr_matrix((4, 0))
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
    tempered = PoolModel(curved.members, curved.coefficients, tempering=TemperatureScaling(-0.2, 0.1))
    later = LaterPlaces(np.array([0.2, 2.0, 0.7]))
    both = PoolModel(curved.members, curved.coefficients, tempering=tempered.tempering, later=later)
    alone = PoolModel(pool.members, pool.coefficients, later=later)
    kernels = [
        KernelModel(classes, N, KernelFunction("linear"), some, sp.csr_matrix(W[some].T[:5]), rng.normal(size=(5, K))),
        KernelModel(classes, N, KernelFunction("precomputed"), some, NONE, rng.normal(size=(4, K)), b.astype(float)),
    ]
    weighing = [dense, few, sparse, sharded, code, pool, flat, *codes(rng, "inner_product"), *kernels]
    curved_codes = [one for loss in LOSSES for one in codes(rng, "loss", loss)]
    return [
        *weighing,
        *[centroids, trees, curved, tempered, both, alone],
        *[*curved_codes, *stumps(rng), *models_of_sets(rng, W, b)],
    ]


def codes(rng: np.random.Generator, decoding: str, loss: Any = "hinge") -> list[Model]:
    """Of one linear machine for all columns, and of one of two sides for some."""
    W, code = rng.normal(size=(N, 4)).astype(np.float32), rng.integers(-1, 2, (K, 4)).astype(np.int8)
    whole = LinearModel(tuple("0123"), N, np.arange(N), W, rng.normal(size=4).astype(np.float32))
    sides = [ColumnModel(LinearModel(SIDES, N, np.arange(N), W[:, [c, 3]]), np.array([c]), 2.0) for c in (2, 0)]
    banks = ColumnModels(N, 4, (ColumnModel(whole, np.arange(4), 0),)), ColumnModels(N, 4, tuple(sides))
    return [CodeModel(tuple("abcdef"), bank, code, decoding, loss, 0.5) for bank in banks]


def stumps(rng: np.random.Generator) -> list[Model]:
    features, thresholds = rng.integers(-1, N, 30), rng.normal(size=30)
    made: list[Model] = []
    for code in (None, rng.choice(np.array([-1, 1], np.int8), (K, 4))):
        n_outputs = K if code is None else 4
        outputs = rng.integers(0, n_outputs, 30).astype(np.int32)
        votes = Votes(np.arange(30), outputs, 0.3 * rng.normal(size=30), np.array([30]))
        made.append(StumpsModel.of_stumps(features, thresholds, Ensemble(tuple("abcdef"), N, votes, code)))
    return made


def models_of_sets(rng: np.random.Generator, W: Floats32, b: Floats32) -> list[Model]:
    parts = LinearModel(TREE.names, N, np.arange(N), W, b)
    fitted = NodeCalibration(*np.abs(rng.normal(size=(4, K))) + 0.1)
    both: list[Model] = [SubtreeModel(TREE, parts, rule) for rule in get_args(Rule)]
    known = TreePart(TREE, np.setdiff1d(np.arange(K, dtype=np.int32), TREE.leaves[:2]))
    few = LinearModel(known.tree.names, N, np.arange(N), np.ascontiguousarray(W[:, known.nodes]), b[known.nodes])
    spread = NodeCalibration(*(values[known.nodes] for values in fitted[:4])).spread(known, -0.3)
    scored = SetPoolModel(TREE, SubtreeModel(known.tree, few, "path"), spread, None, known.nodes)
    return [*both, *(SetPoolModel(TREE, member, fitted) for member in both), scored]


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
@example(282, [0, 1, 3, 4, 5, 6, 7, 8], 2, 4)
def test_parts_add_up_to_the_score_and_to_the_lead(seed: int, features: list[int], best: int, rival: int) -> None:
    indices = np.array(sorted(features), np.int32)
    values = np.random.default_rng(seed).normal(size=len(indices))
    for model in models(seed):
        scores = model.score_one(indices, values).astype(np.float64)
        for other, expected in ((None, scores[best]), (rival, scores[best] - scores[rival])):
            found = model.contributions(indices, values, best, other)
            assert found is not None
            assert found.parts.shape == indices.shape
            # scores are sums in single precision, and their difference may be much smaller than they are
            rounding = 1e-5 + 1e-6 * float(np.abs(scores[[best, rival]]).max())
            assert found.parts.sum() + found.intercept == pytest.approx(expected, abs=rounding)


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
    assert said == [True] * 11 + [False] * (len(said) - 11)


@given(st.sampled_from(LOSSES), st.lists(st.tuples(*[st.floats(-5, 5)] * 2, st.sampled_from([-1, 0, 1])), min_size=1))
def test_secants_of_a_loss_add_up_to_the_difference_of_scores(loss: Any, columns: list[Any]) -> None:
    after, before, row = np.array(columns, np.float64).T
    code = row.astype(np.int8)[None]
    slopes = loss_secants(after, before, code[0], loss)
    scores = decode(np.stack([after, before]), code, "loss", loss)[:, 0]
    rounding = 1e-5 + 1e-6 * float(np.abs(scores).max())
    assert slopes @ (after - before) == pytest.approx(scores[0] - scores[1], abs=rounding)


@given(st.integers(0, 10_000))
def test_every_node_of_a_predicted_set_is_explained_by_its_margin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    W, b = rng.normal(size=(N, K)).astype(np.float32), rng.normal(size=K).astype(np.float32)
    indices, values = np.arange(N, dtype=np.int32), rng.normal(size=N)
    for model in models_of_sets(rng, W, b):
        nodes = [node for node, _, _ in model.explain(indices, values, 0).subtree or []]
        contests = model.contests(indices, values, 3, None)
        assert [(model.classes[node], rival) for node, rival in contests] == [(node, None) for node in nodes or ["d"]]


@given(st.integers(0, 10_000), st.integers(1, 40))
def test_the_nodes_of_a_margin_of_the_best_set_have_its_sum(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    tree, scores = random_tree(rng, n), rng.normal(size=n)
    for decide, find, above in (
        (subtrees.best_set, subtrees.nodes_of_best_set, tree.parent),
        (subtrees.least_above, lambda parents, *rest: subtrees.nodes_of_least(tree, *rest), tree.parents),
    ):
        margins = scores[None].copy()
        decide(above, margins)
        sums = [scores[find(above, scores, node)].sum() for node in range(n)]
        assert sums == pytest.approx(margins[0].tolist())


def unexplained(rng: np.random.Generator) -> dict[str, Model]:
    function = KernelFunction("rbf", gamma=1.0)
    kernel = KernelModel(tuple("abcdef"), 6, function, np.arange(6), sp.csr_matrix(np.eye(6)), np.ones((6, 6)))
    code = rng.integers(-1, 2, (6, 4)).astype(np.int8)
    columns = ColumnModels(
        N, 4, (ColumnModel(LinearModel(tuple("0123"), N, np.arange(N), np.ones((N, 4))), np.arange(4), 0),)
    )
    votes = Ensemble(tuple("ab"), N, Votes(np.arange(1), np.zeros(1, np.int32), np.ones(1), np.array([1])))
    trees = DecisionTreesModel(np.zeros((1, 3), np.int64), np.zeros((1, 3)), np.ones((1, 4), np.int8), votes)
    return {
        "kernel": kernel,
        "kernel over a tree": KernelTaxonomyModel(TREE, kernel),
        "pool": PoolModel([kernel], np.array([1.0])),
        "set": SubtreeModel(TREE, kernel, "path"),
        "signs": CodeModel(tuple("abcdef"), columns, code, "hamming"),
        "votes": CodeModel(tuple("abcdef"), columns, code, "votes"),
        "head": CodeModel(tuple("abcdef"), columns, code, head=kernel),
        "trees": trees,
        "committee": CommitteeModel(columns, np.array([0]), votes),
    }


def test_a_model_whose_scores_are_not_shared_out_says_why() -> None:
    indices, values = np.array([0], np.int32), np.array([1.0])
    for name, model in unexplained(np.random.default_rng(0)).items():
        assert model.unexplained, name
        assert model.contributions(indices, values, 0, 1) is None, name
    assert {model.unexplained for model in models(0)} == {""}
