"""Models over a label tree: how scores name a label, and how they are asked through the estimator."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from problems import TREES, small, with_tree
from sklearn.base import clone

from solvers.core.problem import ProblemError
from solvers.core.stored_models import load_model
from solvers.estimator import PolymarginClassifier
from solvers.hierarchical.taxonomy_model import TaxonomyModel
from solvers.labels.taxonomy import Taxonomy


def made(seed, m=20, d=6, bias=False, candidates=None):
    """A random model of a random tree, some of whose features weigh nothing, and rows to score."""
    rng = np.random.default_rng(seed)
    tree = Taxonomy.from_parents([f"n{i}" for i in range(m)], [-1] + [int(rng.integers(-1, i)) for i in range(1, m)])
    features = np.array([0, 2, 3, 5])
    W = rng.standard_normal((4, m))
    intercept = rng.standard_normal(m) if bias else None
    X = sp.random(15, d, density=0.7, random_state=rng, data_rvs=rng.standard_normal, format="csr")
    return TaxonomyModel(tree, d, features, W, intercept, candidates), X


def walk(model, scores):
    """The recursive rule and the margins it met."""
    node, margins = -1, []
    while len(model.tree.children(node)):
        group = list(model.tree.children(node))
        ranked = sorted((scores[j] for j in group), reverse=True)
        margins.append(ranked[0] - ranked[1] if len(ranked) > 1 else np.inf)
        node = max(group, key=lambda j: scores[j])
    return node, margins


@pytest.mark.parametrize(("seed", "bias"), list(itertools.product(range(4), [False, True])))
def test_prediction_goes_down_the_tree(seed, bias):
    model, X = made(seed, bias=bias)
    leaves, margins = model.descend(X)
    np.testing.assert_array_equal(model.predict(X), leaves)
    for scores, leaf, met in zip(model.scores(X), leaves, margins, strict=True):
        expected, expected_margins = walk(model, scores)
        assert leaf == expected
        np.testing.assert_allclose(met[: len(expected_margins)], expected_margins)
        assert np.isnan(met[len(expected_margins) :]).all()


@pytest.mark.parametrize(("seed", "bias"), list(itertools.product(range(4), [False, True])))
def test_the_best_leaves_are_those_of_the_largest_smallest_margin(seed, bias):
    model, X = made(seed, bias=bias)
    for i in range(X.shape[0]):
        row = X[i]
        scores = model.scores(row)[0]
        worth = {}
        for leaf in model.tree.leaves.tolist():
            margins, lag = [np.inf], 0.0
            for node in model.tree.path(leaf).tolist():
                group = [scores[j] for j in model.tree.children(int(model.tree.parent[node]))]
                rivals = [scores[j] for j in model.tree.children(int(model.tree.parent[node])) if j != node]
                margins.append(scores[node] - max(rivals) if rivals else np.inf)
                lag += max(group) - scores[node]
            worth[leaf] = (-min(margins), lag)
            np.testing.assert_allclose(model.level_margins(row.indices, row.data, leaf), margins[1:])
        best, values = model.top(row.indices, row.data, 5)
        ranked = sorted(worth, key=lambda leaf: worth[leaf])[:5]
        assert best.tolist() == ranked
        np.testing.assert_allclose(values, [-worth[leaf][0] for leaf in ranked])
        assert best[0] == model.predict(row)[0]


def test_all_leaves_are_found_when_more_are_asked_for():
    model, X = made(1)
    best, _ = model.top(X[0].indices, X[0].data, 100)
    assert sorted(best.tolist()) == model.tree.leaves.tolist()


def test_the_flat_rule_chooses_among_its_candidates():
    candidates = np.array([1, 4, 7, 11], np.int32)
    model, X = made(2, candidates=candidates)
    scores = model.scores(X)[:, candidates]
    np.testing.assert_array_equal(model.predict(X), candidates[scores.argmax(axis=1)])
    np.testing.assert_array_equal(model.predict(X, chunk_bytes=1), model.predict(X))
    best, values = model.top(X[0].indices, X[0].data, 3)
    np.testing.assert_array_equal(best, candidates[np.argsort(-scores[0])[:3]])
    np.testing.assert_allclose(values, np.sort(scores[0])[::-1][:3])


def test_an_empty_row_goes_to_the_first_child_everywhere_by_either_way():
    model, _ = made(3)
    empty = sp.csr_matrix((1, 6))
    assert model.top(empty.indices, empty.data)[0][0] == model.predict(empty)[0] == walk(model, np.zeros(20))[0]
    assert model.predict(sp.csr_matrix((0, 6))).shape == (0,)


def test_rows_of_another_width_are_refused():
    model, _ = made(0)
    with pytest.raises(ValueError, match="X has 3 features; the model has 6"):
        model.predict(sp.csr_matrix((1, 3)))


@pytest.mark.parametrize("candidates", [None, np.array([1, 4, 7], np.int32)])
def test_a_saved_model_is_the_same(tmp_path, candidates):
    model, X = made(0, bias=True, candidates=candidates)
    model.save(tmp_path / "m")
    loaded, _ = load_model(tmp_path / "m", verify=True)
    assert isinstance(loaded, TaxonomyModel)
    assert loaded.tree == model.tree
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.scores(X), model.scores(X))
    assert loaded.path(12) == [model.classes[i] for i in model.tree.path(12)]


@pytest.mark.parametrize("method", TREES)
def test_the_estimator_takes_edges_and_speaks_in_the_callers_labels(method):
    problem = with_tree(small(n=40))
    edges = [(int(p) if p.isdigit() else p, int(c) if c.isdigit() else c) for p, c in problem.taxonomy.edges]
    fitted = PolymarginClassifier(method, hierarchy=edges, tol=1e-3).fit(problem.X, problem.y)
    assert fitted.gap_ <= 1e-3
    assert fitted.classes_.tolist() == [int(name) if name.isdigit() else name for name in problem.taxonomy.names]
    assert fitted.coef_.shape == (problem.taxonomy.n_nodes, problem.n_features)
    predicted = fitted.predict(problem.X)
    np.testing.assert_array_equal(fitted.classes_[fitted.model_.predict(problem.X)], predicted)
    again = clone(fitted).fit(problem.X.toarray(), problem.y)
    np.testing.assert_array_equal(again.predict(problem.X), predicted)
    named = PolymarginClassifier(method, hierarchy=problem.taxonomy.edges, tol=1e-3)
    named.fit(problem.X, problem.y.astype(str))
    assert named.predict(problem.X).tolist() == [str(label) for label in predicted]
    weights = {2: 3.0}
    assert clone(fitted).set_params(class_weight=weights).fit(problem.X, problem.y).history_[
        -1
    ].primal != pytest.approx(fitted.history_[-1].primal)


def test_the_estimator_names_what_is_wrong_with_a_tree():
    problem = small(n=40)
    with pytest.raises(ProblemError, match="needs a label tree"):
        PolymarginClassifier("transfer").fit(problem.X, problem.y)
    with pytest.raises(ProblemError, match=r"no node for 4 labels"):
        PolymarginClassifier("transfer", hierarchy=[("root", 0)]).fit(problem.X, problem.y)
    edges = [*(("root", label) for label in range(5)), (0, 1), (2, 1)]
    with pytest.raises(ProblemError, match="needs a label tree, but '1' has 2 parents"):
        PolymarginClassifier("transfer", hierarchy=edges).fit(problem.X, problem.y)


def test_methods_without_a_tree_leave_it_aside():
    problem = with_tree(small(n=40))
    plain = PolymarginClassifier("crammer_singer").fit(problem.X, problem.y)
    given = PolymarginClassifier("crammer_singer", hierarchy=problem.taxonomy.edges).fit(problem.X, problem.y)
    np.testing.assert_array_equal(plain.coef_, given.coef_)
    assert given.classes_.tolist() == [0, 1, 2, 3, 4]


def test_a_path_in_c_is_there_for_trees_too():
    problem = with_tree(small(n=40))
    made = PolymarginClassifier("orthogonal_transfer", hierarchy=problem.taxonomy.edges)
    fitted = made.path(problem.X, problem.y.astype(str), [0.1, 1.0])
    assert [one.C for one in fitted] == [0.1, 1.0]
    assert all(one.gap_ <= 1e-2 for one in fitted)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_ranking_of_rows_is_the_order_of_the_best_labels(seed, flat):
    candidates = np.array([1, 4, 7, 8, 15], np.int32) if flat else None
    model, X = made(seed, candidates=candidates)
    X = sp.vstack([X, sp.csr_matrix(np.ones((1, X.shape[1]))), sp.csr_matrix((1, X.shape[1]))], format="csr")
    ranking = model.ranking(X)
    np.testing.assert_array_equal(ranking.first(), model.predict(X))
    for i in range(X.shape[0]):
        ties = np.zeros(len(model.classes)) if ranking.ties is None else ranking.ties[i]
        order = np.lexsort((np.arange(len(ties)), -ties, -ranking.values[i]))
        listed = order[ranking.values[i][order] > -np.inf]
        np.testing.assert_array_equal(listed, model.top(X[i].indices, X[i].data, 100)[0])
