"""Evaluations in blocks against measures of all rows at once, on random models' answers."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import random_sets, random_tree
from sklearn.metrics import precision_recall_fscore_support

from solvers.labels.costs import Costs
from solvers.labels.label_sets import of_nodes
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics import intervals
from solvers.metrics.calibration import expected_calibration_error, log_losses
from solvers.metrics.evaluation import Evaluation, Labels, Truth
from solvers.metrics.flat import flat
from solvers.metrics.hierarchical import hierarchical
from solvers.metrics.label_table import AVERAGES, HIERARCHICAL
from solvers.metrics.multilabel import multilabel
from solvers.metrics.outcomes import Outcomes
from solvers.metrics.ranking import Ranking
from solvers.metrics.tree_places import tree_places

N = 40


def taken(labels, truth, values, sets=None, size=7, costs=None):
    """The evaluation of rankings, block by block."""
    evaluation = Evaluation(labels, truth, sets is not None, costs=costs)
    for begin in range(0, len(values), size):
        rows = slice(begin, begin + size)
        evaluation.add(Ranking(values[rows], sets=None if sets is None else sets[rows]))
    return evaluation


def reported(outcomes, level=0):
    return {each.name: each.value for each in outcomes.measures(0) if each.level == level}


def flat_case(seed):
    rng = np.random.default_rng(seed)
    labels = Labels(tuple("abcdeXY"), 5, np.arange(5))
    y = rng.integers(0, 7, N)
    return labels, Truth(labels.close(y), y), rng.normal(size=(N, 5))


def tree_case(seed, names_sets):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 12)
    labels = Labels((*tree.names, "X"), tree.n_nodes, np.arange(tree.n_nodes) if names_sets else tree.leaves, tree)
    values = rng.normal(size=(N, len(labels.class_labels)))
    if not names_sets:
        y = rng.integers(0, tree.n_nodes + 1, N)
        return labels, Truth(labels.close(y), y), values, None
    for node in range(tree.n_nodes):
        if tree.parent[node] >= 0:
            values[:, node] = np.minimum(values[:, node], values[:, tree.parent[node]])
    true = sp.csr_matrix(np.column_stack([random_sets(rng, tree, N), rng.random(N) < 0.1]))
    return labels, Truth(true), values, sp.csr_matrix(values > 0)


@pytest.mark.parametrize("seed", range(4))
def test_measures_of_single_labels_are_those_of_all_rows_and_unknown_labels_are_wrong(seed):
    labels, truth, values = flat_case(seed)
    outcomes = Outcomes(taken(labels, truth, values))
    predicted, y = values.argmax(axis=1), truth.single
    measures = reported(outcomes)
    assert measures["error"] == pytest.approx(np.mean(predicted != y))
    assert measures["accuracy@1"] == pytest.approx(1 - measures["error"])
    assert measures["micro_f1"] == pytest.approx(flat(np.where(y < 5, y, -1), predicted, 5)["micro_f1"])
    due = precision_recall_fscore_support(y, predicted, labels=range(7), zero_division=0)
    table = outcomes.table()
    for mine, theirs in zip((table.precision, table.recall, table.f1, table.true), due, strict=True):
        assert mine == pytest.approx(theirs)
    seen = np.union1d(y, predicted)
    for average in ("macro", "weighted"):
        f1 = precision_recall_fscore_support(y, predicted, labels=seen, average=average, zero_division=0)[2]
        assert measures[f"{average}_f1"] == pytest.approx(f1)
    pairs = dict(outcomes.confusions(100))[0]
    assert pairs.n_rows.sum() == (predicted != y).sum()


@pytest.mark.parametrize("seed", range(4))
def test_measures_of_single_labels_along_a_tree_are_those_of_all_rows(seed):
    labels, truth, values, _ = tree_case(seed, names_sets=False)
    tree, y = labels.tree, np.where(truth.single < labels.n_known, truth.single, -1)
    costs = Costs.of_tree([tree.names[leaf] for leaf in tree.leaves.tolist()], tree)
    outcomes = Outcomes(taken(labels, truth, values, costs=costs))
    predicted = labels.class_labels[values.argmax(axis=1)]
    due = hierarchical(tree, y, predicted)
    measures = reported(outcomes)
    # inner nodes are labels that only the tree knows, as training rows have leaves
    assert measures["cost"] == measures["tree_loss"]
    for name in ("error", "tree_loss", "hierarchical_precision", "micro_f1"):
        assert measures[name] == pytest.approx(due[name])
    # a true inner node is right where the first answer is at or below it
    assert measures["accuracy@1"] == pytest.approx(1 - due["error"])
    for level in range(1, tree.depth + 1):
        of_level = reported(outcomes, level)
        assert of_level["error"] == pytest.approx(due[f"error_{level}"])
        for name in AVERAGES:
            key = {"micro_f1": "f1"}.get(name, name)
            assert of_level[name] == pytest.approx(due[f"{key}_{level}"])
        # answers that end above the level are not in its list
        assert of_level["accuracy@1"] > 1 - due[f"error_{level}"] - 1e-6 or not of_level["mrr"]


@pytest.mark.parametrize("seed", range(4))
def test_measures_of_sets_are_those_of_all_rows(seed):
    labels, truth, values, sets = tree_case(seed, names_sets=True)
    tree = labels.tree
    outcomes = Outcomes(taken(labels, truth, values, sets))
    measures, whole = reported(outcomes), truth.sets.toarray()
    due = multilabel(tree, sp.csr_matrix(whole[:, :-1]), sets)
    for name in ("h_uniform", "h_sibling", "h_subtree", "hierarchical_precision", "precision"):
        assert measures[name] == pytest.approx(due[name])
    strange = whole[:, -1]
    different = (whole != np.column_stack([sets.toarray(), np.zeros(N, bool)])).sum(axis=1)
    assert measures["error"] == pytest.approx((different > 0).mean())
    for name in ("symmetric_difference", "hierarchical_symmetric_difference"):
        assert measures[name] == pytest.approx(due[name] + strange.mean())
    for level in range(1, tree.depth + 1):
        of_level = reported(outcomes, level)
        for name in ("error", "macro_f1", "weighted_f1"):
            assert of_level[name] == pytest.approx(due[f"{name}_{level}"])


@pytest.mark.parametrize("names_sets", [False, True])
def test_measures_of_own_labels_are_the_same_with_and_without_a_tree(names_sets):
    # rows have leaves alone, as all answers do
    rng = np.random.default_rng(11)
    tree = random_tree(rng, 12)
    n = len(tree.leaves)
    names = tuple(tree.names[leaf] for leaf in tree.leaves)
    flat_labels, tree_labels = Labels(names, n, np.arange(n)), Labels(tree.names, tree.n_nodes, tree.leaves, tree)
    values = rng.normal(size=(N, n))
    if names_sets:
        tree_labels = Labels(tree.names, tree.n_nodes, np.arange(tree.n_nodes), tree)
        own, said = rng.random((N, n)) < 0.3, rng.random((N, n)) < 0.3
        up = sp.csr_matrix(of_nodes(tree, tree.leaves), dtype=int)
        close = [sp.csr_matrix(sp.csr_matrix(each, dtype=int) @ up, dtype=bool) for each in (own, said)]
        for each in close:
            each.sort_indices()
        # nodes above the leaves come last, as a model that ranks own labels has them
        ranked = np.full((N, tree.n_nodes), -np.inf)
        ranked[:, tree.leaves] = values
        along = Evaluation(tree_labels, Truth(close[0]), True, ranks_own=True)
        along.add(Ranking(ranked, sets=close[1]))
        alone = taken(flat_labels, Truth(sp.csr_matrix(own)), values, sp.csr_matrix(said))
    else:
        y = rng.integers(0, n, N)
        along = taken(tree_labels, Truth(tree_labels.close(tree.leaves[y]), tree.leaves[y]), values)
        alone = taken(flat_labels, Truth(flat_labels.close(y), y), values)
    expected, found = reported(Outcomes(alone)), reported(Outcomes(along))
    assert set(AVERAGES) <= set(expected)
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert {HIERARCHICAL[name] for name in AVERAGES} <= set(found) - set(expected)


def test_models_that_rank_all_nodes_are_measured_by_own_labels_and_under_other_names_by_all():
    tree = Taxonomy.from_edges([("root", "a"), ("root", "b"), ("a", "c"), ("a", "d")])
    labels = Labels(tree.names, 4, np.arange(4), tree)
    true = sp.csr_matrix(np.array([[1, 0, 1, 0]], bool))
    # a comes before its child c
    found = reported(Outcomes(taken(labels, Truth(true), np.array([[3.0, -1.0, 2.0, 1.0]]), true)))
    assert (found["precision@1"], found["mrr"], found["recall@3"]) == (0.0, 0.5, 1.0)
    assert (found["hierarchical_precision@1"], found["hierarchical_mrr"]) == (1.0, 1.0)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_node_is_where_the_best_answer_at_or_below_it_is(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(2, 14)))
    nodes = np.sort(rng.choice(tree.n_nodes, int(rng.integers(1, tree.n_nodes + 1)), replace=False))
    n = 3
    scores = rng.integers(0, 3, (n, len(nodes))).astype(float)
    ties = rng.integers(0, 2, (n, len(nodes))).astype(float)
    scores[:, rng.random(len(nodes)) < 0.2] = -np.inf
    every = np.tile(np.arange(-1, tree.n_nodes + 1), n)
    indptr = np.arange(n + 1) * (tree.n_nodes + 2)
    whole, level = tree_places(tree, nodes, scores, ties, indptr, every)
    for i in range(n):
        order = sorted(range(len(nodes)), key=lambda c: (-scores[i, c], -ties[i, c], c))
        answers = [nodes[c] for c in order if scores[i, c] > -np.inf]
        mine = slice(indptr[i], indptr[i + 1])
        for node, place, among in zip(every[mine], whole[mine], level[mine], strict=True):
            if not 0 <= node < tree.n_nodes:
                assert (place, among) == (0, 0)
                continue
            at = [number for number, answer in enumerate(answers, 1) if node in tree.path(answer)]
            assert place == (at[0] if at else 0)
            listed = list(
                dict.fromkeys(
                    tree.path(answer)[tree.level[node] - 1]
                    for answer in answers
                    if tree.level[answer] >= tree.level[node]
                )
            )
            assert among == (listed.index(node) + 1 if at else 0)


def test_nodes_of_a_level_do_not_share_a_place_where_an_answer_is_below_several():
    edges = [("root", "a"), ("root", "b"), ("root", "c"), ("a", "d"), ("b", "d"), ("c", "e"), ("a", "f"), ("c", "f")]
    graph = Taxonomy.from_graph(edges)
    nodes = graph.find(["d", "e", "f"])
    above = graph.find(["a", "b", "c"])
    for values, expected in (([3.0, 2.0, 1.0], (1, 2, 3)), ([1.0, 2.0, 3.0], (1, 3, 2)), ([2.0, 3.0, 1.0], (2, 3, 1))):
        _, level = tree_places(graph, nodes, np.array([values]), None, np.array([0, 3]), above)
        assert tuple(level) == expected


@pytest.mark.parametrize("case", ["flat", "tree", "sets"])
def test_intervals_are_those_of_rows_drawn_again(case, monkeypatch):
    if case == "flat":
        (labels, truth, values), sets = flat_case(0), None
    else:
        labels, truth, values, sets = tree_case(0, case == "sets")
    inverse = 1 + np.random.default_rng(1).random(labels.n)
    outcomes = Outcomes(taken(labels, truth, values, sets), inverse)
    due = []
    for counts in intervals.drawn(N, 30, 7):
        for row in counts.astype(int):
            drawn = np.repeat(np.arange(N), row)
            again = Truth(truth.sets[drawn], None if truth.single is None else truth.single[drawn])
            evaluation = taken(labels, again, values[drawn], None if sets is None else sets[drawn])
            due.append([each.value for each in Outcomes(evaluation, inverse).measures(0)])
    low, high = np.quantile(np.array(due), [0.05, 0.95], axis=0)
    shares = []
    measures = outcomes.measures(30, 0.9, 7, shares.append)
    assert [each.low for each in measures] == pytest.approx(low.tolist(), rel=1e-4, abs=1e-7)
    assert [each.high for each in measures] == pytest.approx(high.tolist(), rel=1e-4, abs=1e-7)
    assert shares[0] == 0
    assert "psp@5" in {each.name for each in measures}


@pytest.mark.parametrize("names_sets", [False, True])
def test_an_evaluation_goes_on_from_its_state(names_sets):
    labels, truth, values, sets = tree_case(2, names_sets)
    whole = taken(labels, truth, values, sets)
    half = Evaluation(labels, truth, names_sets)
    for begin in (0, 11):
        half.add(Ranking(values[begin : begin + 11], sets=None if sets is None else sets[begin : begin + 11]))
    later = Evaluation(labels, truth, names_sets)
    later.resume({name: array.copy() for name, array in half.state().items()})
    assert later.done == 22
    later.add(Ranking(values[22:], sets=None if sets is None else sets[22:]))
    assert Outcomes(later).measures(0) == Outcomes(whole).measures(0)
    with pytest.raises(ValueError, match="other rows"):
        Evaluation(labels, Truth(truth.sets[:3]), names_sets).resume(half.state())


def test_one_answer_to_a_set_is_measured_as_a_set_and_its_ranking_by_the_deepest_labels():
    tree = Taxonomy.from_edges([("root", "a"), ("root", "b"), ("a", "c"), ("a", "d")])
    labels = Labels(tree.names, 4, tree.leaves, tree)
    true = sp.csr_matrix(np.array([[1, 1, 1, 0], [1, 0, 1, 0]], bool))
    # answers are b, c, d
    outcomes = Outcomes(taken(labels, Truth(true), np.array([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0]])))
    measures = reported(outcomes)
    assert measures["error"] == 0.5
    assert measures["recall@3"] == 1.0
    assert measures["recall@1"] == pytest.approx((0.5 + 1) / 2)
    assert measures["precision@3"] == pytest.approx((2 / 3 + 1 / 3) / 2)


def test_unseen_rare_and_frequent_labels_are_measured_apart():
    rng = np.random.default_rng(0)
    labels = Labels(
        (*(f"l{c:02}" for c in range(20)), "X"), 20, np.arange(20), Taxonomy.flat([f"l{c:02}" for c in range(20)])
    )
    true, values = rng.random((N, 21)) < 0.15, rng.normal(size=(N, 20))
    true[0] = False
    n_training = np.array([0, 0, 1, 1, 2, 9, 10, 99, 100, 500] * 2 + [0])
    sets = sp.csr_matrix(true[:, :20])
    outcomes = Outcomes(taken(labels, Truth(sp.csr_matrix(true)), values, sets), n_training=n_training)
    found = {each.name: each for each in outcomes.measures(20)}
    first = np.argsort(-values, axis=1)
    for name, least, most in (("unseen", 0, 0), ("rows_1", 1, 1), ("rows_2_to_9", 2, 9), ("rows_100", 100, 1000)):
        band = np.flatnonzero((n_training >= least) & (n_training <= most))
        each = []
        for i in range(N):
            own = set(np.flatnonzero(true[i])) & set(band)
            if own:
                hits = [c in own for c in first[i, :10]]
                gain = sum(hit / np.log2(2 + place) for place, hit in enumerate(hits))
                ideal = sum(1 / np.log2(2 + place) for place in range(min(10, len(own))))
                short = sum(hits[:5])
                each.append((2 * short / (5 + len(own)), short / 5, sum(hits) / len(own), gain / ideal))
        due = np.mean(each, axis=0)
        for measure, value in zip(("f1@5", "precision@5", "recall@10", "ndcg@10"), due, strict=True):
            reported_one = found[f"{name}_{measure}"]
            assert reported_one.value == pytest.approx(value, rel=1e-5)
            assert reported_one.low <= reported_one.value <= reported_one.high
        assert found[f"{name}_share"].value == pytest.approx(true[:, band].sum() / true.sum())
    assert not any(name.startswith("unseen") for name in reported(Outcomes(outcomes.evaluation)))


def test_measures_by_row_have_the_told_means():
    labels, truth, values, _ = tree_case(3, names_sets=False)
    outcomes = Outcomes(taken(labels, truth, values))
    measures, by_row = reported(outcomes), outcomes.by_row()
    assert {"error", "tree_loss", "mrr", "accuracy@5", "ndcg@10"} <= set(by_row)
    for name, row in by_row.items():
        assert np.nanmean(row) == pytest.approx(measures[name], rel=1e-5)


def test_probabilities_are_measured_where_they_are_told():
    rng = np.random.default_rng(5)
    labels, truth, _ = flat_case(5)
    p = rng.dirichlet(np.ones(5), N)
    whole, half = Evaluation(labels, truth, False), Evaluation(labels, truth, False)
    for begin in range(0, N, 10):
        whole.add(Ranking(np.log(p[begin : begin + 10]), tells_probabilities=True))
        if begin == 10:
            half.resume({name: array.copy() for name, array in whole.state().items()})
    half.add(Ranking(np.log(p[20:]), tells_probabilities=True))
    y = truth.single
    of_true = np.where(y < 5, p[np.arange(N), np.minimum(y, 4)], 0.0)
    ece, curve = expected_calibration_error(p.max(axis=1), p.argmax(axis=1) == y)
    for evaluation in (whole, half):
        outcomes = Outcomes(evaluation)
        measures = reported(outcomes)
        assert measures["log_loss"] == pytest.approx(log_losses(of_true).mean(), rel=1e-5)
        true = np.eye(7)[y][:, :5]
        rest = y >= 5
        assert measures["brier"] == pytest.approx((((p - true) ** 2).sum(axis=1) + rest).mean(), rel=1e-5)
        assert measures["calibration_error"] == pytest.approx(ece)
        assert outcomes.calibration()[1].n_rows.tolist() == curve.n_rows.tolist()
    found = {each.name: each for each in Outcomes(whole).measures(20)}
    assert found["log_loss"].low < found["log_loss"].value < found["log_loss"].high
    assert found["calibration_error"].low is None
    assert Outcomes(taken(labels, truth, p)).calibration() is None
