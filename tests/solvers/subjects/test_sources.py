"""Sources of learnt scores: machines without a fold, merged concepts, stored arrays, and what they bring the ranker."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import LinearSVC
from test_subjects import WORDS, corpus, trained

from solvers.core.problem import Problem
from solvers.methods import subjects
from solvers.methods.subjects import Subjects, SubjectsParams
from solvers.subjects.model import SubjectModel
from solvers.subjects.sources import SCORERS, SOURCES, binary_machines, neighbours
from solvers.subjects.sources.source import Task


def task(n: int = 60, d: int = 20, k: int = 4, folds: int = 6) -> Task:
    rng = np.random.default_rng(0)
    X = sp.random(n, d, density=0.4, random_state=rng, format="csr")
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = sp.csr_matrix(sp.diags(1 / np.maximum(lengths, 1e-9)) @ X)
    Y = sp.csr_matrix(np.asarray(X[:, :k].toarray() > 0.25) | (np.arange(n) < k)[:, None])
    fold = np.arange(n) % folds
    return Task(X, sp.csr_matrix(Y, dtype=np.int8), np.ones(n), fold, 0.3, seed=0, threads=1)


def independent(X: sp.csr_matrix, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    given = sp.csr_matrix(sp.hstack([X, np.ones((X.shape[0], 1))]))
    machine = LinearSVC(C=1.0, loss="squared_hinge", fit_intercept=False, tol=1e-8, max_iter=100_000)
    return machine.fit(given[rows], y[rows]).decision_function(given)


def test_binary_machines_of_a_fold_are_those_of_another_solver_without_its_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(binary_machines.PARAMS, "tol", 1e-9)
    monkeypatch.setattr(binary_machines, "SHARE", 0.0)
    given = task()
    learnt, y = binary_machines.learn(given), given.Y.toarray() > 0
    for concept in range(y.shape[1]):
        every = independent(given.terms, y[:, concept], np.arange(60))
        np.testing.assert_allclose(learnt.scorer.scores(given.terms)[:, concept], every, atol=1e-3)
    for number in range(6):
        rows = np.flatnonzero(given.fold == number)
        without = np.flatnonzero(given.fold // 2 != number // 2)  # six folds in three parts
        found = learnt.without(number, rows)
        for concept in range(y.shape[1]):
            alone = independent(given.terms, y[:, concept], without)
            np.testing.assert_allclose(found[:, concept], alone[rows], atol=1e-3)


def test_neighbours_are_the_machine_of_the_nearest_rows_by_another_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "N_NEAREST", 7)
    given = task()
    given = given._replace(weights=np.random.default_rng(1).uniform(0.5, 2.0, 60))
    learnt, X, Y = neighbours.learn(given), given.terms.toarray(), given.Y.toarray().astype(float)
    every, products = learnt.scorer.scores(given.terms), X @ X.T
    for number in range(6):
        rows = np.flatnonzero(given.fold == number)
        found = learnt.without(number, rows)
        for which, row in enumerate(rows):
            for scores, out in ((every[row], np.zeros(60, bool)), (found[which], given.fold == number)):
                near = np.argsort(-np.where(out, -1.0, products[row]))[:7]
                machine = KernelRidge(alpha=0.3).fit(X[near], Y[near], sample_weight=given.weights[near])
                np.testing.assert_allclose(scores, machine.predict(X[[row]])[0], atol=1e-4)


def test_all_rows_as_neighbours_are_kernel_ridge_regression_over_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "N_NEAREST", 1000)
    given = task()
    found, expected = neighbours.learn(given), SOURCES["kernel_ridge"](given)
    np.testing.assert_allclose(found.scorer.scores(given.terms), expected.scorer.scores(given.terms), atol=4e-3)
    rows = np.flatnonzero(given.fold == 2)
    np.testing.assert_allclose(found.without(2, rows), expected.without(2, rows), atol=1e-4)


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_a_scorer_is_the_same_from_its_arrays_and_parts_are_what_terms_add(name: str) -> None:
    given = task()
    scorer = SOURCES[name](given).scorer
    again = SCORERS[scorer.kind].from_arrays(dict(scorer.arrays()), 4, 20)
    scores = scorer.scores(given.terms)
    np.testing.assert_array_equal(again.scores(given.terms), scores)
    row, empty = sp.csr_matrix(given.terms[3]), sp.csr_matrix((1, 20))
    for concept in range(4):
        added = scorer.scores(row)[0, concept] - scorer.scores(empty)[0, concept]
        assert scorer.parts(row, concept).sum() == pytest.approx(added, abs=1e-4)
    with pytest.raises(ValueError, match="out of range"):
        SCORERS[scorer.kind].from_arrays(dict(scorer.arrays()), 5, 20)


def test_concepts_that_become_one_have_the_sum_of_kernels_and_the_best_of_binary_machines() -> None:
    given = task()
    kept, of = np.array([True, False, True, True]), np.array([1, 0, 1])
    for name, together in (("kernel_ridge", np.sum), ("neighbours", np.sum), ("binary_machines", np.max)):
        scorer = SOURCES[name](given).scorer
        scores, merged = scorer.scores(given.terms), scorer.merged(kept, of)
        assert merged.scores(given.terms).shape == (60, 2)
        np.testing.assert_allclose(merged.scores(given.terms)[:, 0], scores[:, 2], atol=2e-3)
        np.testing.assert_allclose(merged.scores(given.terms)[:, 1], together(scores[:, [0, 3]], axis=1), atol=4e-3)
        # once more, as an edition follows another
        once_more = merged.merged(np.ones(2, bool), np.array([0, 0]))
        expected = together(merged.scores(given.terms), axis=1)
        np.testing.assert_allclose(once_more.scores(given.terms)[:, 0], expected, atol=4e-3)


@pytest.fixture(scope="module")
def training() -> Problem:
    whole = corpus()
    assert whole.labels is not None
    return replace(whole, X=whole.X[:120], labels=whole.labels[:120], weights=np.ones(120))


def test_both_sources_are_taken_where_concepts_have_rows_and_both_are_not_too_many(
    training: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kinds(**params: object) -> list[str]:
        return [scorer.kind for scorer in trained(training, **params).sources]

    assert kinds() == ["neighbours", "linear"]
    assert kinds(sources=["binary_machines"]) == ["linear"]
    assert kinds(sources=["binary_machines", "kernel_ridge"]) == ["kernel", "linear"]
    assert kinds(sources=["kernel_ridge", "kernel_ridge"]) == ["kernel"]
    assert kinds(sources=["binary_machines", "neighbours"]) == ["neighbours", "linear"]
    monkeypatch.setattr(subjects, "_MOST_PRODUCTS", 1000.0)
    assert kinds() == ["neighbours"]
    assert kinds(sources=["kernel_ridge", "binary_machines"]) == ["kernel", "linear"]
    monkeypatch.setattr(subjects, "_MOST_PRODUCTS", 2e10)
    monkeypatch.setattr(subjects, "_FEWEST_ROWS", 30)
    assert kinds() == ["kernel"]
    monkeypatch.setattr(subjects, "_MOST_EXACT", 100)
    assert kinds() == ["neighbours"]
    monkeypatch.setattr(subjects, "_MOST_EXACT", 20_000)
    monkeypatch.setattr(subjects, "_FEWEST_ROWS", 5)
    monkeypatch.setattr(binary_machines, "bytes_needed", lambda *_: 1 << 50)
    assert kinds() == ["neighbours"]


def test_a_model_of_one_kernel_machine_as_it_was_stored_before_answers_the_same(training: Problem) -> None:
    model = trained(training, sources=["kernel_ridge"])
    arrays = dict(model.arrays())
    for name in [name for name in arrays if name.startswith("source0.")]:
        arrays[name.removeprefix("source0.")] = arrays.pop(name)
    del arrays["sources"]
    again = SubjectModel.from_arrays(model.classes, model.n_features, arrays)
    np.testing.assert_array_equal(again.scores(training.X), model.scores(training.X))


def test_a_row_without_its_fold_has_no_score_of_a_concept_that_only_the_fold_has() -> None:
    given = task()
    alone = np.zeros((60, 1), np.int8)
    alone[0] = 1
    learnt = binary_machines.learn(given._replace(Y=sp.csr_matrix(sp.hstack([given.Y, alone]))))
    assert learnt.without(0, np.array([0]))[0, 4] == -1.0
    assert learnt.without(5, np.array([5]))[0, 4] != -1.0


def test_steps_before_the_ranker_say_how_far_the_training_is(training: Problem) -> None:
    solver = Subjects(SubjectsParams(folds=4), seed=0)
    bare = replace(training, X=sp.csr_matrix(training.X[:, : len(WORDS)]), names=None)
    fractions = [step.fraction for step in solver.steps(bare) if not np.isnan(step.fraction)]
    assert fractions == pytest.approx([0.0, 0.2, 0.4, 0.525, 0.65, 0.775, 0.9])
