"""The method "subjects": its optimum by another solver, what a leak would do, resumption, stored models."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from scipy.special import expit
from sklearn.kernel_ridge import KernelRidge

from solvers.core.problem import Problem
from solvers.core.stored_models import load_model
from solvers.labels.label_sets import closed
from solvers.labels.name_block import N_COLUMNS, NameBlock
from solvers.labels.taxonomy import Taxonomy
from solvers.methods import subjects
from solvers.methods.subjects import Subjects, SubjectsParams
from solvers.metrics.confidence.reliability import threshold_for
from solvers.subjects.answers import Calibration, set_size
from solvers.subjects.candidates import Counts
from solvers.subjects.lexicon import Lexicon, Name
from solvers.subjects.name_columns import MatchRows, alike_names
from solvers.subjects.ranker import Lists, logistic_steps, softmax_steps
from solvers.subjects.sources import neighbours, ridge


def lists(seed: int = 0, rows: int = 12, each: int = 9, d: int = 5) -> Lists:
    rng = np.random.default_rng(seed)
    phi = rng.standard_normal((rows * each, d)).astype(np.float32)
    true = phi[:, 0] + rng.standard_normal(rows * each) > 1.2
    return Lists(phi, np.arange(0, rows * each + 1, each), true)


def by_rows(of: Lists, w: np.ndarray, strength: float) -> float:
    """The objective of the softmax form, term by term."""
    scores, total = of.phi.astype(np.float64) @ w, 0.0
    for i, j in zip(of.begin[:-1], of.begin[1:], strict=True):
        true, s = of.true[i:j], scores[i:j]
        if true.any() and not true.all():
            total += np.mean([np.log1p(np.exp(s[~true] - y).sum()) for y in s[true]])
    return total / (len(of.begin) - 1) + strength / 2 * float(w @ w)


@pytest.mark.parametrize("strength", [0.01, 1.0])
def test_the_ranker_reaches_the_optimum_of_another_solver_and_its_gap_is_a_bound(strength: float) -> None:
    of = lists()
    best = scipy.optimize.minimize(
        lambda w: by_rows(of, w, strength), np.zeros(5), method="BFGS", options={"gtol": 1e-9}
    )
    iterates = []
    for iterate in softmax_steps(of, strength):
        iterates.append(iterate)
        if iterate.gap < 1e-12 or len(iterates) > 50:
            break
    assert iterates[-1].gap < 1e-12
    assert iterates[-1].primal == pytest.approx(best.fun, rel=1e-8)
    np.testing.assert_allclose(iterates[-1].w, best.x, atol=1e-4)
    for iterate in iterates:
        assert iterate.primal == pytest.approx(by_rows(of, iterate.w, strength), rel=1e-6)
        assert iterate.dual <= best.fun * (1 + 1e-9) <= iterate.primal * (1 + 2e-9)


def test_the_logistic_form_reaches_its_optimum_too() -> None:
    of = lists()
    sign = np.where(of.true, 1.0, -1.0)

    def objective(w: np.ndarray) -> float:
        return float(np.logaddexp(0, -sign * (of.phi.astype(np.float64) @ w)).sum() / 12 + 0.05 * w @ w)

    best = scipy.optimize.minimize(objective, np.zeros(5), method="BFGS")
    for iterate in logistic_steps(of, 0.1):
        if iterate.gap < 1e-10:
            break
    assert iterate.primal == pytest.approx(best.fun, rel=1e-7)


def test_scores_of_rows_that_are_left_out_are_those_of_a_machine_without_them() -> None:
    rng = np.random.default_rng(0)
    X = sp.random(30, 12, density=0.5, random_state=rng, format="csr")
    Y = sp.csr_matrix(rng.random((30, 4)) < 0.3)
    fold = rng.permutation(30) % 5
    coefficients, scores = ridge.fit(X, Y, 0.5, fold, np.ones(30))
    whole = KernelRidge(alpha=0.5).fit(X.toarray(), Y.toarray().astype(float))
    np.testing.assert_allclose(coefficients, whole.dual_coef_, atol=1e-5)
    for number in range(5):
        out = fold == number
        alone = KernelRidge(alpha=0.5).fit(X.toarray()[~out], Y.toarray()[~out].astype(float))
        np.testing.assert_allclose(scores[out], alone.predict(X.toarray()[out]), atol=1e-5)


def test_counts_leave_out_the_rows_of_a_fold() -> None:
    Y = sp.csr_matrix(np.array([[1, 0], [1, 1], [0, 1]], np.int8))
    named = sp.csr_matrix(np.array([[1, 1], [0, 1], [0, 0]], np.int8))
    counts = Counts.from_labels(Y, named, np.array([0, 1, 0]))
    assert [each.tolist() for each in counts.without(0)] == [[1, 1], [0, 1], [0, 1]]
    assert [each.tolist() for each in counts.without(None)] == [[2, 2], [1, 2], [1, 1]]


def test_a_set_is_as_large_as_its_expected_f1_is_best() -> None:
    assert set_size(np.array([0.9, 0.8, 0.1, 0.01]), 0.0, 1.0) == 2
    assert set_size(np.array([0.001, 0.0005]), 0.0, 1.0) == 0
    assert set_size(np.empty(0), 0.0, 1.0) == 0


def test_sets_are_empty_only_as_rows_for_training_are() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=3000) - 3.0
    true = rng.random(3000) < expit(scores)
    begin, seen = np.arange(0, 3001, 10), np.ones(3000, np.int64)
    n_true = np.add.reduceat(true, begin[:-1])
    assert 0.3 < np.mean(n_true == 0) < 0.7
    found = {}
    for empty in (0.0, 0.2, float(np.mean(n_true == 0))):
        fitted = Calibration.fit(scores, seen, true, begin, np.zeros(2), empty)
        log_odds = -np.sort(-fitted.log_odds(scores, seen).reshape(-1, 10), axis=1)
        sizes = [set_size(row, fitted.kappa, fitted.nothing) for row in expit(log_odds)]
        found[empty] = fitted.nothing, np.mean(np.array(sizes) == 0)
    (never, none), (seldom, few), (often, many) = found.values()
    assert (never, none) == (0.0, 0.0)
    assert 0.0 < seldom < often
    assert 0.0 < few < many
    # all rows of a sample of independent labels: none are added
    assert often == pytest.approx(1.0, abs=0.1)


WORDS = [f"w{number}" for number in range(60)]


CONCEPTS = [f"c{c:02}" for c in range(20)]


def corpus(n: int = 160, seed: int = 0, tree: Taxonomy | None = None) -> Problem:
    """Texts of random words; a row has the concepts two of whose three words it has. The last third have no row."""
    rng = np.random.default_rng(seed)
    k, n_trained = len(CONCEPTS), 14
    tree = tree or Taxonomy.flat(CONCEPTS)
    nodes = tree.find(CONCEPTS)
    lexicon = Lexicon.build(Name(int(nodes[c]), WORDS[3 * c : 3 * c + 2]) for c in range(k))
    rows = MatchRows(lexicon, tree.n_nodes)
    texts, labels = [], np.zeros((n, tree.n_nodes), bool)
    for i in range(n):
        own = rng.choice(n_trained if i < 120 else k, 2, replace=False)
        labels[i, nodes[own]] = True
        words = [WORDS[3 * c + j] for c in own for j in (0, 1)] + list(rng.choice(WORDS[2::3], 6))
        texts.append(words)
    terms = sp.csr_matrix(np.array([[words.count(word) for word in WORDS] for words in texts], float))
    found = []
    for words in texts:
        numbers = lexicon.number(words)
        place = np.arange(len(words), dtype=np.int32)
        matches = lexicon.match(numbers, place // 2, np.zeros(len(words), bool), place)
        found.append(rows.row(matches, len(words), 2))
    width = N_COLUMNS * tree.n_nodes + 1
    names = sp.vstack([sp.csr_matrix((v, c, [0, len(c)]), shape=(1, width)) for c, v in found])
    X = sp.csr_matrix(sp.hstack([terms, names]))
    sets, _ = closed(tree, sp.csr_matrix(labels).indptr, sp.csr_matrix(labels).indices)
    problem = Problem.check_sets(X, sets, tree)
    return replace(problem, names=NameBlock(len(WORDS), tree.n_nodes, alike_names(lexicon, tree.n_nodes)))


def trained(problem: Problem, **params: float):  # type: ignore[no-untyped-def]
    solver = Subjects(SubjectsParams.model_validate(params), seed=0)
    for step in solver.steps(problem):
        last = step
    assert last.converged
    return solver.model(problem, last.state)


@pytest.fixture(scope="module")
def whole() -> Problem:
    return corpus()


@pytest.fixture(scope="module")
def training(whole: Problem) -> Problem:
    assert whole.labels is not None
    return replace(whole, X=whole.X[:120], labels=whole.labels[:120], weights=np.ones(120))


def test_concepts_that_no_row_has_are_found_by_name(whole: Problem, training: Problem) -> None:
    model = trained(training)
    assert whole.labels is not None
    scores, labels = model.scores(whole.X[120:]), whole.labels[120:].toarray()
    unseen = [c for c in range(20) if c not in model.learnt]
    assert len(unseen) >= 5
    first = np.argsort(-scores, axis=1)[:, :2]
    hit = np.take_along_axis(labels, first, axis=1)
    assert hit.mean() > 0.9
    assert labels[:, unseen].sum() > 10
    assert (np.take_along_axis(labels, first, axis=1) & np.isin(first, unseen)).sum() >= 0.8 * labels[:, unseen].sum()
    sets = model.predict_sets(whole.X[120:]).toarray()
    assert (sets == labels).mean() > 0.95
    probabilities = 1 / (1 + np.exp(-scores))
    assert abs(probabilities[labels].mean() - 1) < 0.3
    assert model.set_reliability is not None
    assert threshold_for(model.set_reliability.curve, 0.5) is not None


def test_counts_with_the_row_in_them_would_leak(
    training: Problem, whole: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    unseen = np.array([c for c in range(20) if c not in trained(training).learnt])
    assert whole.labels is not None
    rows = np.flatnonzero(whole.labels.toarray()[:, unseen].any(axis=1))
    honest = trained(training).scores(whole.X[rows])
    plain = Counts.without
    monkeypatch.setattr(Counts, "without", lambda counts, fold: plain(counts, None))
    leaking = trained(training).scores(whole.X[rows])
    true = whole.labels.toarray()[rows][:, unseen]
    assert honest[:, unseen][true].mean() > leaking[:, unseen][true].mean()


def test_more_rows_than_a_matrix_of_all_may_have_are_learnt_by_the_nearest_ones(
    whole: Problem, training: Problem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(subjects, "_MOST_EXACT", 100)
    monkeypatch.setattr(subjects, "_MOST_RANKED", 90)
    monkeypatch.setattr(neighbours, "N_NEAREST", 20)
    model = trained(training)
    assert model.sources[0].kind == "neighbours"
    assert whole.labels is not None
    first = np.argsort(-model.scores(whole.X[120:]), axis=1)[:, :2]
    assert np.take_along_axis(whole.labels[120:].toarray(), first, axis=1).mean() > 0.9
    model.save(tmp_path / "model")
    again, _ = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.scores(whole.X[120:]), model.scores(whole.X[120:]))


def test_the_memory_of_100_000_rows_and_300_000_concepts_is_below_3_gb() -> None:
    solver = Subjects(SubjectsParams(memory_mb=3000), seed=0)
    assert solver.bytes_needed(100_000, 50_000, 300_000) < 3000 << 20


def test_a_resumed_training_takes_the_same_steps(training: Problem) -> None:
    def run(state=None):  # type: ignore[no-untyped-def]
        solver = Subjects(SubjectsParams(), seed=3)
        return [
            (step.epoch, step.primal, {k: v.copy() for k, v in step.state.items()})
            for step in solver.steps(training, state)
        ]

    every = run()
    for stop in range(len(every) - 1):
        rest = run(every[stop][2])
        assert [(epoch, primal) for epoch, primal, _ in rest] == [(e, p) for e, p, _ in every[stop + 1 :]]
        np.testing.assert_array_equal(rest[-1][2]["w"], every[-1][2]["w"])


def test_a_stored_model_answers_the_same_and_explanations_add_up(training: Problem, tmp_path: Path) -> None:
    model = trained(training)
    model.save(tmp_path / "model")
    again, _ = load_model(tmp_path / "model")
    X = training.X[:5]
    np.testing.assert_array_equal(again.scores(X), model.scores(X))
    assert again.set_reliability is not None
    for i in range(5):
        row = X[i]
        best, second = np.argsort(-model.scores(row)[0])[:2]
        np.testing.assert_allclose(model.score_one(row.indices, row.data), model.scores(X)[i], atol=1e-4)
        for rival in (None, int(second)):
            parts = model.contributions(row.indices, row.data, int(best), rival)
            assert parts is not None
            scores = model.score_one(row.indices, row.data)
            lead = scores[best] - (0 if rival is None else scores[rival])
            assert parts.parts.sum() + parts.intercept == pytest.approx(lead, abs=1e-4)


def test_concepts_with_several_parents_are_found_and_sets_have_all_of_these(tmp_path: Path) -> None:
    edges = [("root", f"g{g}") for g in range(4)]
    edges += [(f"g{(at + more) % 4}", concept) for at, concept in enumerate(CONCEPTS) for more in (0, 1)]
    graph = Taxonomy.from_graph(edges)
    assert not graph.is_tree
    problem = corpus(tree=graph)
    assert problem.labels is not None
    first = replace(problem, X=problem.X[:120], labels=problem.labels[:120], weights=np.ones(120))
    model = trained(first)
    ranked = model.ranking(problem.X[120:])
    assert ranked.sets is not None
    sets, nodes = ranked.sets.toarray().astype(bool), graph.find(CONCEPTS)
    for at, node in enumerate(nodes):
        above = graph.find([f"g{at % 4}", f"g{(at + 1) % 4}"])
        assert sets[sets[:, node]][:, above].all()
    true = problem.labels[120:].toarray()
    assert (sets & true)[:, nodes].sum() > 0.6 * true[:, nodes].sum()
    assert (sets & true)[:, nodes[14:]].any()  # a concept of no row is found by its name
    model.save(tmp_path / "model")
    again, _ = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.scores(problem.X), model.scores(problem.X))


def test_along_a_tree_concepts_that_have_the_log_odds_of_those_below_are_not_explained(training: Problem) -> None:
    above = {f"c{c:02}": f"c{(c - 5) // 3:02}" if c >= 5 else "root" for c in range(20)}
    tree = Taxonomy.from_edges([(parent, concept) for concept, parent in above.items()])
    assert tree.names == training.classes
    flat = trained(training)
    model = flat.with_concepts(tree, flat.names, np.arange(20))
    n_left_out = 0
    for i in range(20):
        row = training.X[i]
        scores, (nodes, _) = model.score_one(row.indices, row.data), model.subtree(row.indices, row.data)
        explained = [concept for concept, _ in model.contests(row.indices, row.data, int(scores.argmax()), None)]
        n_left_out += len(nodes) - len(explained)
        assert set(explained) <= set(nodes.tolist())
        assert {node for node in nodes.tolist() if not set(np.flatnonzero(tree.parent == node)) & set(nodes)} <= set(
            explained
        )
        for concept in explained:
            parts = model.contributions(row.indices, row.data, concept, None)
            assert parts is not None
            assert parts.parts.sum() + parts.intercept == pytest.approx(scores[concept], abs=1e-4)
    assert n_left_out > 0


def test_without_names_the_learnt_scores_alone_rank(training: Problem) -> None:
    bare = replace(training, X=sp.csr_matrix(training.X[:, : len(WORDS)]), names=None)
    model = trained(bare)
    assert bare.labels is not None
    first = np.argsort(-model.scores(bare.X), axis=1)[:, :2]
    assert np.take_along_axis(bare.labels.toarray(), first, axis=1).mean() > 0.9
