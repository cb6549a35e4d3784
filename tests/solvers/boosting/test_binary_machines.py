"""BinaryMachines of other methods as weak learners."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems import small
from test_stumps import filled
from training import fitted, machine

import solvers.boosting.weak_learners.binary_machines
from solvers.boosting.weak_learners.binary_machines import BinaryMachines
from solvers.core.base import ParamsError
from solvers.core.problem import Problem
from solvers.core.stored_models import load_model
from solvers.numerics.thread_pool import ThreadPool
from solvers.registry import SOLVERS, parse_params

BASES = {"one_vs_rest": {"bias": 1.0, "tol": 1e-6}, "spoc": {"kernel": "rbf"}, "lee_lin_wahba": {}}


def machines(problem: Problem, name: str = "one_vs_rest", held: sp.csr_matrix | None = None) -> BinaryMachines:
    params = parse_params(name, BASES[name])
    return BinaryMachines(problem.X, problem.X[:7] if held is None else held, SOLVERS[name], params)


def boost(task: Problem, name: str, seed: int = 0, **params):
    given = {"weak_learner": name, "weak_params": BASES[name], "max_epochs": 6, "C": 1e4}
    return machine("multiboost_cw", seed=seed, **(given | params))


# those that are trained for long are tried once quickly
some = pytest.mark.parametrize("name", ["one_vs_rest", "spoc", pytest.param("lee_lin_wahba", marks=pytest.mark.slow)])


@pytest.mark.parametrize("name", BASES)
def test_a_machine_learns_the_signs_of_its_channel_by_their_weights(name):
    problem = small(n=60)
    made = machines(problem, name)
    u = np.random.default_rng(0).standard_normal((3, 60)) * np.random.default_rng(1).choice([0.0, 1.0, 50.0], (3, 60))
    with ThreadPool(1) as thread_pool:
        found = made.find(filled(u), thread_pool, [0])
    responses = made.responses(found.learners)
    for j in range(3):
        rows = np.flatnonzero(u[j])
        sizes = np.abs(u[j, rows])
        task = Problem.check(problem.X[rows], (u[j, rows] > 0).astype(int), weights=sizes / sizes.mean())
        solver = machine(name, **BASES[name])
        *_, last = solver.steps(task)
        scores = solver.model(task, last.state).scores(problem.X)
        np.testing.assert_array_equal(responses[j], np.where(scores[:, 1] > scores[:, 0], 1, -1))
        assert found.values[j] == pytest.approx(u[j] @ responses[j], rel=1e-6)
        assert found.values[j] > 0.3 * sizes.sum()
    np.testing.assert_array_equal(made.responses(found.learners, held=True), responses[:, :7])


def test_where_one_side_is_missing_the_constant_is_taken():
    problem = small(n=30)
    made = machines(problem)
    u = np.stack([np.ones(30), -np.ones(30), np.where(np.arange(30) < 9, 1.0, 0.0), np.zeros(30)])
    with ThreadPool(1) as thread_pool:
        found = made.find(filled(u), thread_pool, [0])
    assert found.learners.tolist() == [-1] * 4
    np.testing.assert_allclose(found.values, [30, -30, 9, 0], rtol=1e-6)


def test_weights_of_any_size_are_taken():
    problem = small(n=30)
    u = np.where(np.arange(30) % 2 == 0, 1.0, -1.0) * 10.0 ** np.linspace(-9, 0, 30)
    with ThreadPool(1) as thread_pool:
        found = machines(problem).find(filled(u[None] * 1e-200), thread_pool, [0])
    assert found.values[0] > 0


@some
@pytest.mark.parametrize("slices", [1, 1 << 40])
def test_a_resumed_run_repeats_the_uninterrupted_one_even_from_within_a_round(name, slices, monkeypatch):
    monkeypatch.setattr(solvers.boosting.weak_learners.binary_machines, "SLICE_PRODUCTS", slices)
    problem = small(n=60, k=3)
    params = {"validation": 0.2, "tau_max": 2}
    states = [{k: np.array(v) for k, v in s.state.items()} for s in boost(problem, name, **params).steps(problem)]
    assert len(states) == (18 if slices == 1 else 6)
    for stop in (0, 1, 4):
        *_, last = boost(problem, name, **params).steps(problem, states[stop])
        for key, array in states[-1].items():
            np.testing.assert_array_equal(last.state[key], array, err_msg=key)


@some
def test_the_committee_scores_as_in_training_on_disk_and_off(name, tmp_path):
    problem = small(n=60, k=3)
    last, model = fitted(boost(problem, name), problem)
    order = np.argsort(problem.y, kind="stable")
    np.testing.assert_allclose(model.scores(problem.X)[order], last.state["loss_F"].T, atol=1e-9)
    model.save(tmp_path / "m")
    loaded, _ = load_model(tmp_path / "m")
    np.testing.assert_array_equal(loaded.scores(problem.X), model.scores(problem.X))
    row = problem.X[3]
    np.testing.assert_allclose(loaded.score_one(row.indices, row.data), model.scores(row)[0])
    *_, final = loaded.staged_scores(problem.X)
    np.testing.assert_allclose(final, model.scores(problem.X), atol=1e-9)
    assert loaded.n_rounds == 6


def test_linear_committees_know_what_features_weigh():
    base = small(n=60, k=3)
    problem = Problem.check(sp.hstack([base.X, sp.csr_matrix((60, 2))], format="csr"), base.y)
    method = boost(problem, "one_vs_rest")
    *_, last = method.steps(problem)
    importances = method.model(problem, last.state).importances
    assert importances.sum() == pytest.approx(1.0)
    assert (importances[:-2] > 0).all()
    assert not importances[-2:].any()
    method = boost(problem, "spoc")
    *_, last = method.steps(problem)
    with pytest.raises(AttributeError, match="linear"):
        _ = method.model(problem, last.state).importances


@pytest.mark.slow
def test_threads_change_no_bit():
    problem = small(n=60, k=3)
    ends = []
    for threads in (1, 3):
        method = SOLVERS["multiboost_cw"](boost(problem, "one_vs_rest").params, threads=threads)
        *_, last = method.steps(problem)
        ends.append(last.state)
    for key, array in ends[0].items():
        np.testing.assert_array_equal(ends[1][key], array, err_msg=key)


def test_only_methods_without_parts_are_taken_and_their_parameters_are_checked():
    cases = [
        ({"weak_learner": "one_vs_rst"}, r"weak_learner: .*did you mean 'one_vs_rest'"),
        ({"weak_learner": "multiboost_cw"}, "weak_learner: multiboost_cw cannot be"),
        ({"weak_learner": "one_vs_rest", "weak_params": {"C": -1.0}}, "weak_params/C: Input should be greater"),
        ({"weak_params": {"C": 1.0}}, "weak_params: weak_learner tree has no weak_params"),
    ]
    for params, message in cases:
        with pytest.raises(ParamsError, match=message):
            parse_params("multiboost_cw", params)
