"""The method "subjects" as a trial of "auto": how it is measured, what becomes of it, what others see of names."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from test_subjects import CONCEPTS, WORDS, corpus

from solvers.core.base import ParamsError
from solvers.core.memory import allowing
from solvers.core.problem import Problem
from solvers.labels.label_sets import own_labels
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.confidence.pairs import Pairs
from solvers.registry import make
from solvers.selection.held_out import Fold
from solvers.selection.sets.set_calibration import ndcg
from solvers.selection.sets.set_curve import Curve, log_loss
from solvers.selection.sets.vocabulary_sets import VocabularySets
from solvers.subjects.model import SubjectModel

LINEAR = {"solver": "node_svm", "params": {"loss": "squared_hinge"}, "grid": {"C": [0.1, 1.0]}}
CANDIDATES = [LINEAR, {"solver": "subjects"}]


@pytest.fixture(scope="module")
def named() -> Problem:
    """Rows whose concepts are known by the names alone: half of the texts lack the words of names among their terms."""
    whole = corpus()
    X = whole.X.tolil()
    X[::2, [at for at in range(len(WORDS)) if at % 3 < 2]] = 0
    return replace(whole, X=sp.csr_matrix(X))


@pytest.fixture(scope="module")
def bare(named: Problem) -> Problem:
    return replace(named, X=sp.csr_matrix(named.X[:, : len(WORDS)]), names=None)


def run(problem: Problem, **params):  # type: ignore[no-untyped-def]
    solver = make("auto", {"candidates": CANDIDATES, "measure": "ndcg"} | params, seed=1)
    return solver, list(solver.steps(problem))


def last_of(steps):  # type: ignore[no-untyped-def]
    *_, last = steps
    return last


def copied(state):  # type: ignore[no-untyped-def]
    return {name: np.array(state[name]) for name in state}


def test_the_ranker_of_all_concepts_wins_by_names_and_is_the_model(named: Problem) -> None:
    solver, steps = run(named)
    model = solver.model(named, steps[-1].state)
    assert isinstance(model, SubjectModel)
    assert steps[-1].converged
    assert steps[-1].gap <= 1e-2
    trials = model.record["trials"]
    assert [trial["solver"] for trial in trials] == ["subjects", "node_svm", "node_svm"]
    assert model.report["held_out_ndcg"] == trials[0]["measures"]["ndcg"] > trials[1]["measures"]["ndcg"]
    [member] = model.record["members"]
    assert (member["solver"], member["coefficient"]) == ("subjects", 1.0)
    alone = make("subjects", {"tol": 1e-2}, seed=1)
    other = alone.model(named, last_of(alone.steps(named)).state)
    for name, array in other.arrays().items():
        np.testing.assert_array_equal(model.arrays()[name], array, err_msg=name)


def test_it_is_tried_where_concepts_have_several_parents() -> None:
    edges = [("root", f"g{g}") for g in range(4)]
    edges += [(f"g{(at + more) % 4}", concept) for at, concept in enumerate(CONCEPTS) for more in (0, 1)]
    problem = corpus(tree=Taxonomy.from_graph(edges))
    solver = make("auto", {"measure": "ndcg"}, seed=1)
    last = last_of(solver.steps(problem))
    trials = solver.model(problem, last.state).record["trials"]
    assert trials[0]["solver"] == "subjects"
    assert {trial["solver"] for trial in trials} > {"subjects"}


def test_others_see_no_names(named: Problem, bare: Problem) -> None:
    models = []
    for problem in (named, bare):
        solver, steps = run(problem, candidates=[LINEAR], measure="micro_f1")
        models.append(solver.model(problem, steps[-1].state))
    with_names, without = models
    assert with_names.n_features == len(WORDS)
    for name, array in without.arrays().items():
        np.testing.assert_array_equal(with_names.arrays()[name], array, err_msg=name)


@pytest.mark.parametrize("deep", [False, True])
def test_the_table_of_pairs_has_the_measures_of_all_pairs(bare: Problem, deep: bool) -> None:
    """Along a tree, sets are closed, and rows' own labels are ranked."""
    k, problem = bare.n_classes, bare
    if deep:
        tree = Taxonomy.from_edges([("root", "t0"), ("root", "t1"), *((f"t{c % 2}", f"c{c:02}") for c in range(k))])
        labels = np.zeros((bare.n_samples, tree.n_nodes), bool)
        assert bare.labels is not None
        for column, node in enumerate(tree.find([f"c{c:02}" for c in range(k)])):
            labels[:, node] = bare.labels[:, [column]].toarray().ravel()
            labels[:, tree.parent[node]] |= labels[:, node]
        problem = Problem.check_sets(bare.X, labels, tree)
    train, out = np.arange(100), [np.arange(100, 140), np.arange(140, 160)]
    folds = [Fold(train, rows) for rows in out]
    solver = make("subjects", {})
    part = folds[0].problem(problem)
    model = solver.model(part, last_of(solver.steps(part)).state)
    task = VocabularySets(problem, folds)
    tables = [np.asarray(task.scores(model, problem.X[rows], at), np.float32) for at, rows in enumerate(out)]
    found = task.measured(np.concatenate(tables))
    assert sum(map(len, tables)) < 60 * problem.n_classes
    assert problem.labels is not None
    X, labels = problem.X[100:], sp.csr_matrix(problem.labels[100:])
    pairs, sets = Pairs.from_log_odds(np.float64(np.float32(model.scores(X))), labels), model.predict_sets(X)
    f1 = 2 * labels.multiply(sets).sum() / (labels.sum() + sets.sum())
    own = own_labels(labels, problem.tree.parents)
    expected = [f1, Curve.from_pairs(pairs).average_precision, ndcg(model.ranking(X).values, own), -log_loss(pairs)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_search_resumes_to_the_same_bits(named: Problem) -> None:
    solver, steps = run(named)
    whole = solver.model(named, steps[-1].state).arrays()
    during = [at for at, step in enumerate(steps) if step.setting.startswith("subjects")]
    # in the first fold, and in the training on all rows
    for stop in (during[1], len(steps) - 2):
        fresh = make("auto", {"candidates": CANDIDATES, "measure": "ndcg"}, seed=1)
        state = copied(list(islice(fresh.steps(named), stop + 1))[-1].state)
        again = make("auto", {"candidates": CANDIDATES, "measure": "ndcg"}, seed=1)
        resumed = again.model(named, last_of(again.steps(named, state)).state).arrays()
        for name, array in whole.items():
            np.testing.assert_array_equal(resumed[name], array, err_msg=name)


def test_the_chosen_ranker_is_trained_on_all_rows(named: Problem) -> None:
    assert named.labels is not None
    rows = np.arange(120)
    former = replace(named, X=named.X[rows], labels=named.labels[rows], weights=np.ones(120))
    solver, steps = run(former)
    state = copied(steps[-1].state)
    measured = solver.model(former, state)
    again, start = solver.on_all_rows(former, state, named, np.append(rows, np.full(40, -1)))
    every = list(again.steps(named, start))
    served = again.model(named, every[-1].state)
    assert served.record["trials"] == measured.record["trials"]
    assert len(served.learnt) > len(measured.learnt)
    alone = make("subjects", {"tol": 1e-2}, seed=1)
    other = alone.model(named, last_of(alone.steps(named)).state)
    np.testing.assert_array_equal(served.scores(named.X), other.scores(named.X))
    resumed, _ = solver.on_all_rows(former, state, named, np.append(rows, np.full(40, -1)))
    last = last_of(resumed.steps(named, copied(next(iter(again.steps(named, start))).state)))
    np.testing.assert_array_equal(resumed.model(named, last.state).scores(named.X), other.scores(named.X))


def test_a_ranker_that_does_not_fit_into_memory_is_left_out_with_a_word(named: Problem) -> None:
    params = [LINEAR, {"solver": "subjects", "params": {"memory_mb": 1}}]
    solver, steps = run(named, candidates=params)
    model = solver.model(named, steps[-1].state)
    [left] = model.record["left_out"]
    assert left["solver"] == "subjects"
    assert "1 MB" in left["reason"]
    with allowing(1 << 20):
        _, steps = run(named)
    assert {step.setting.partition(",")[0] for step in steps if step.setting} == {"node_svm"}


def test_names_are_wanted_where_the_ranker_is_tried(bare: Problem) -> None:
    def takes(*, sets: bool = True, named: bool = True, **params: object) -> bool:
        return make("auto", params).takes_names(sets=sets, named=named)

    assert takes()
    assert not takes(sets=False)
    assert not takes(named=False)
    assert not takes(set_precision=0.9)
    assert not takes(candidates=[LINEAR])
    assert takes(candidates=CANDIDATES)
    with pytest.raises(ParamsError) as refused:
        make("auto", {"candidates": CANDIDATES, "label_thresholds": True})
    assert refused.value.items[0][0] == "/candidates/1/solver"
    # without names the learnt scores alone rank all concepts
    solver, steps = run(bare, candidates=CANDIDATES[1:])
    assert isinstance(solver.model(bare, steps[-1].state), SubjectModel)
