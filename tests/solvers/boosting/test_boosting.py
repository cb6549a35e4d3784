"""What all boosting methods share: rows held out, bags, limits of memory, measures."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems import settings, small
from test_binning import mixed
from training import fitted, machine

from solvers.boosting.boosting import Boosting, split
from solvers.boosting.weak_learners.binning import Bins
from solvers.core.base import ParamsError
from solvers.core.problem import Problem, ProblemError
from solvers.estimator import PolymarginClassifier
from solvers.numerics.thread_pool import ThreadPool
from solvers.registry import SOLVERS, parse_params

METHODS = [name for name, method in SOLVERS.items() if issubclass(method, Boosting)]
everywhere = pytest.mark.parametrize("name", METHODS)


def boost(name: str, seed: int = 0, **params) -> Boosting:
    return machine(name, seed=seed, **params)


def noisy(n: int = 300, k: int = 4) -> Problem:
    """Labels that no feature explains well, so that too much training does harm."""
    rng = np.random.default_rng(0)
    X = mixed(n)
    y = np.digitize(X[:, [0]].toarray()[:, 0] + 1.5 * rng.standard_normal(n), [-1.2, 0, 1.2][: k - 1])
    y[:k] = np.arange(k)
    return Problem.check(X, y)


def test_a_share_of_each_class_is_held_out_but_never_all_of_it():
    y = np.repeat([0, 1, 2, 3], [100, 10, 1, 2]).astype(np.int32)
    kept, held = split(y, 0.25, 0)
    assert np.bincount(y[held], minlength=4).tolist() == [25, 2, 0, 0]
    assert sorted([*kept, *held]) == list(range(113))
    assert np.bincount(y[split(y, 0.99, 0)[0]], minlength=4).tolist() == [1, 1, 1, 1]
    assert not np.array_equal(split(y, 0.25, 1)[1], held)
    np.testing.assert_array_equal(split(y, 0.25, 0)[1], held)
    assert len(split(y, 0.0, 0)[1]) == 0


@everywhere
@pytest.mark.parametrize("depth", [1, 3])
def test_steps_tell_errors_on_rows_trained_on_and_held_out(name, depth):
    problem = noisy()
    method = boost(name, validation=0.3, max_epochs=15, patience=100, depth=depth)
    kept, held = split(problem.y, 0.3, 0)
    states = []
    for step in method.steps(problem):
        model = method.model(problem, {**step.state, "best_epoch": np.array(step.epoch)})
        for rows, measure in ((kept, "train_error"), (held, "validation_error")):
            error = np.mean(model.predict(problem.X[rows]) != problem.y[rows])
            assert step.measures[measure] == pytest.approx(error, abs=1e-12)
        states.append(step.measures)
    assert len(states) == 15
    assert states[-1]["train_error"] < states[0]["train_error"]


@everywhere
def test_training_stops_when_the_error_held_out_falls_no_more_and_the_best_model_is_kept(name):
    problem = noisy()
    method = boost(name, validation=0.3, max_epochs=400, patience=10)
    steps = [(s.epoch, s.measures["validation_error"], s.converged) for s in method.steps(problem)]
    errors = np.array([error for _, error, _ in steps])
    best = int(errors.argmin()) + 1
    assert steps[-1] == (best + 10, errors[-1], True)
    assert all(type(converged) is bool for _, _, converged in steps)
    assert not any(converged for _, _, converged in steps[:-1])
    _, model = fitted(method, problem)
    assert model.n_rounds == best
    held = split(problem.y, 0.3, 0)[1]
    assert np.mean(model.predict(problem.X[held]) != problem.y[held]) == pytest.approx(errors.min())


@everywhere
def test_a_finished_run_goes_on_when_it_is_given_more_rounds(name):
    problem = noisy()
    *_, short = boost(name, max_epochs=5).steps(problem)
    assert short.epoch == 5
    *_, gone_on = boost(name, max_epochs=9).steps(problem, {k: np.array(v) for k, v in short.state.items()})
    *_, straight = boost(name, max_epochs=9).steps(problem)
    for key, array in straight.state.items():
        np.testing.assert_array_equal(gone_on.state[key], array, err_msg=key)
    assert list(boost(name, max_epochs=5).steps(problem, short.state)) == []


@everywhere
@pytest.mark.parametrize("params", [{}, {"depth": 2}, {"bins": 3}, {"bag": 0.5}])
def test_the_objective_never_rises_and_threads_change_no_bit(name, params, monkeypatch):
    monkeypatch.setattr("solvers.boosting.weak_learners.stumps.PIECE", 100)
    problem = noisy()
    ends = []
    for threads in (1, 3):
        method = machine(name, threads=threads, **({"max_epochs": 20} | params))
        steps = [(s.primal, {k: np.array(v) for k, v in s.state.items()}) for s in method.steps(problem)]
        primal = np.array([value for value, _ in steps])
        assert (np.diff(primal) <= 1e-9 * primal[:-1]).all()
        assert primal[-1] < 0.97 * primal[0]
        ends.append(steps[-1][1])
    for key, array in ends[0].items():
        np.testing.assert_array_equal(ends[1][key], array, err_msg=key)


def test_a_model_is_made_of_the_bins_that_training_has_used(monkeypatch):
    problem, made = noisy(), []
    method, other = boost("multiboost_cw", max_epochs=5), noisy(k=3)
    from_matrix = Bins.from_matrix
    monkeypatch.setattr(Bins, "from_matrix", lambda X, limit: made.append(X.shape[0]) or from_matrix(X, limit))
    step, model = fitted(method, problem)
    assert made == [300]
    *_, last = method.steps(other)
    assert made == [300, 300]
    assert method.model(other, last.state).scores(other.X).shape == (300, 3)
    afresh = boost("multiboost_cw", max_epochs=5).model(problem, step.state)
    np.testing.assert_array_equal(afresh.scores(problem.X), model.scores(problem.X))


@pytest.mark.parametrize("C", [1e2, 1e6])
def test_corrective_sweeps_never_raise_the_objective_and_gain_on_stage_wise_rounds(C):
    problem, ends = noisy(), {}
    for tau_max in (1, 2, 8):
        primal = np.array(
            [s.primal for s in boost("multiboost_cw", C=C, tau_max=tau_max, max_epochs=25, tol=1e-9).steps(problem)]
        )
        assert (np.diff(primal) <= 1e-9 * primal[:-1]).all()
        ends[tau_max] = primal[-1]
    assert ends[8] < ends[2] < ends[1]


@everywhere
def test_a_bag_without_a_class_and_constant_features_are_no_trouble(name):
    X = np.hstack([np.random.default_rng(0).standard_normal((40, 2)), np.ones((40, 3)), np.zeros((40, 1))])
    y = np.arange(40) % 3
    y[0], y[1:] = 3, np.arange(39) % 3
    problem = Problem.check(X, y)
    for weak in ({}, {"weak_learner": "one_vs_rest"}):
        *_, last = boost(name, bag=0.1, max_epochs=8, **weak).steps(problem)
        assert np.isfinite(last.primal)
    method = boost(name, max_epochs=8)
    *_, last = method.steps(problem)
    assert not method.model(problem, last.state).importances[2:].any()


@everywhere
def test_without_any_feature_to_ask_the_frequent_class_is_predicted(name):
    y = np.repeat([0, 1, 2], [3, 12, 4])
    problem = Problem.check(np.ones((19, 2)), y)
    _, model = fitted(boost(name, max_epochs=30), problem)
    assert (model.predict(problem.X) == 1).all()
    assert not model.importances.any()


@everywhere
def test_too_much_memory_is_refused_with_an_estimate(name):
    n = 4000
    problem = Problem.check(sp.random(n, 5, density=0.5, random_state=0, format="csr"), np.arange(n) // 2)
    # the outputs of adaboost_mo are the bits of a code, fewer than the classes
    limit = 10 if name == "adaboost_mo" else 50
    with pytest.raises(ProblemError, match=rf"4000 examples of 2000 classes needs .* MB; memory_mb allows {limit}"):
        next(iter(boost(name, memory_mb=limit).steps(problem)))


def test_a_code_that_would_outgrow_the_memory_is_refused_before_it_is_made():
    n = 4000
    problem = Problem.check(sp.random(n, 5, density=0.5, random_state=0, format="csr"), np.arange(n) // 2)
    with pytest.raises(ProblemError, match=r"needs at least \d{3},\d{3} MB; memory_mb allows 1,000 MB"):
        next(iter(boost("adaboost_mo", code="all_pairs", memory_mb=1000).steps(problem)))


@everywhere
@pytest.mark.parametrize(
    "params",
    [
        {"max_epochs": 0},
        {"bins": 1},
        {"bins": "some"},
        {"validation": 1.0},
        {"bag": 0.0},
        {"depth": 0},
        {"patience": 0},
    ],
)
def test_parameters_out_of_range_are_named(name, params):
    with pytest.raises(ParamsError, match=next(iter(params))):
        parse_params(name, params)


@pytest.mark.parametrize(
    "params", [{"C": 0.0}, {"C": 1e31}, {"C": float("nan")}, {"tol": 0.0}, {"tau_max": 0}, {"eps": 2.0}]
)
def test_parameters_of_the_master_problem_out_of_range_are_named(params):
    with pytest.raises(ParamsError, match=next(iter(params))):
        parse_params("multiboost_cw", params)


def test_text_like_data_are_never_made_dense():
    n, d = 400, 200_000
    rng = np.random.default_rng(0)
    words = rng.integers(0, d, (n, 30))
    y = np.arange(n) % 4
    words[:, 0] = y
    X = sp.csr_matrix((np.ones(words.size), words.ravel(), np.arange(n + 1) * 30), (n, d))
    problem = Problem.check(X, y)
    for depth in (1, 2):
        method = boost("multiboost_cw", max_epochs=3, depth=depth)
        task = method.task(problem)
        assert task.learners.bins.dense.size < n * 10
        *_, last = method.steps(problem)
        assert last.measures["train_error"] == 0.0


def test_settings_of_the_contract_reach_the_optimum():
    problem = small(n=30)
    *_, last = boost("multiboost_cw", **settings("multiboost_cw", tol=1e-6)).steps(problem)
    assert last.converged
    assert last.gap <= 1e-6


@pytest.mark.parametrize("depth", [1, 2])
def test_scikit_learn_sees_stages_importances_and_measures(depth):
    problem = noisy()
    names = np.array(["pear", "apple", "fig", "kiwi"])[problem.y]
    made = PolymarginClassifier("multiboost_cw", depth=depth, max_epochs=12).fit(problem.X, names)
    stages = list(made.staged_predict(problem.X))
    assert len(stages) == made.model_.n_rounds == 12
    np.testing.assert_array_equal(stages[-1], made.predict(problem.X))
    assert not np.array_equal(stages[0], stages[-1])
    assert made.feature_importances_.sum() == pytest.approx(1.0)
    made.set_params(validation=0.2).fit(problem.X, names)
    errors = [record.measures["validation_error"] for record in made.history_]
    assert made.model_.n_rounds == 1 + int(np.argmin(errors))
    linear = PolymarginClassifier("one_vs_rest").fit(problem.X, names)
    for ask in (lambda: linear.feature_importances_, lambda: next(linear.staged_predict(problem.X))):
        with pytest.raises(AttributeError, match="one_vs_rest"):
            ask()


@pytest.mark.parametrize("C", [1e4, 1e10])
def test_a_round_resumed_between_its_iterations_goes_on_bit_by_bit(C, monkeypatch):
    monkeypatch.setattr("solvers.methods.multiboost_cw.SLICE_PRODUCTS", 1)
    method, thread_pool = boost("multiboost_cw", C=C, tau_max=8, eps=1e-3, max_epochs=12, tol=1e-9), ThreadPool(1)
    task = method.task(noisy())
    straight, resumed = method.run(task), method.run(task)
    pauses = 0
    while straight.epoch < 12:
        straight.advance(thread_pool)
        resumed.advance(thread_pool)
        state = {key: np.array(array) for key, array in resumed.arrays().items()}
        epoch, resumed = resumed.epoch, method.run(task)
        resumed.restore(state)
        resumed.epoch = epoch
        pauses += resumed.under_way
    assert pauses > 20
    for key, array in straight.arrays().items():
        np.testing.assert_array_equal(resumed.arrays()[key], array, err_msg=key)
