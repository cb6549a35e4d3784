"""Weights kept as lists of classes where features are rare: the same bits as dense ones, in less memory."""

import dataclasses
from collections import deque

import numpy as np
import pytest
import scipy.sparse as sp
import test_contract
from problems import small
from training import machine

import solvers.linear.driver.ascent
import solvers.linear.layouts.hybrid_layout
from solvers.core.base import Step
from solvers.core.linear_model import LinearModel
from solvers.core.machine import Machine
from solvers.core.memory import TooLargeError
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.core.stored_models import load_model
from solvers.linear.layouts import class_lists, hybrid_layout
from solvers.linear.layouts.hybrid_layout import HybridLayout
from solvers.numerics import coefficients
from solvers.numerics.rows import arrange, score, weights

METHODS = ("weston_watkins", "crammer_singer")
methods = pytest.mark.parametrize("name", METHODS)
precisions = pytest.mark.parametrize("dtype", ["float32", "float64"])
# to compile the loops of a training with lists takes a quarter of a minute
trains = pytest.mark.slow


@pytest.fixture
def hot(monkeypatch):
    """Sets how many features are dense, and begins with a pool so small that it has to grow."""
    within = HybridLayout.within

    def choose(n_hot):
        def fixed(*arguments):
            layout = within(*arguments)
            return dataclasses.replace(layout, n_hot=min(n_hot, len(layout.features)), n_entries=40)

        monkeypatch.setattr(HybridLayout, "within", fixed)
        monkeypatch.setattr(solvers.linear.layouts.hybrid_layout, "ROOM", 64)

    return choose


def trained(name: str, problem: Problem, **params) -> tuple[list[Step], Model]:
    method = machine(name, **params)
    steps = list(method.steps(problem))
    return steps, method.model(problem, steps[-1].state)


def many(k: int = 60) -> Problem:
    """Rows so short and classes so many that some lists are long, and others short."""
    rng = np.random.default_rng(1)
    columns = (60 * rng.random((400, 9)) ** 3).astype(int)
    X = sp.csr_matrix((rng.standard_normal(columns.size), columns.ravel(), np.arange(401) * 9), (400, 60))
    return Problem.check(X, np.concatenate([np.arange(k), rng.integers(k, size=400 - k)]))


@trains
@methods
@precisions
@pytest.mark.parametrize("n_hot", [0, 5])
@pytest.mark.parametrize("costs", [{}, {"costs": {"0": {"1": 7.0, "40": 0.5}, "9": {"0": 3.0}}, "other_cost": 2.0}])
def test_which_features_are_dense_changes_no_bit(name, dtype, n_hot, costs, hot):
    problem = many()
    params = {"tol": 1e-5, "dtype": dtype, "max_epochs": 25, "bias": 1.0, **costs}
    dense, expected = trained(name, problem, **params)
    hot(n_hot)
    steps, model = trained(name, problem, **params)
    assert isinstance(expected, LinearModel)
    assert isinstance(model, SparseLinearModel)
    assert steps[-1].state["list_length"].max() > class_lists.LONG
    for step, other in zip(steps, dense, strict=True):
        reported = [(s.epoch, s.primal, s.dual, s.violation) for s in (step, other)]
        np.testing.assert_array_equal(*reported)
    np.testing.assert_array_equal(model.scores(problem.X), expected.scores(problem.X))
    np.testing.assert_array_equal(model.W.toarray(), expected.coef.T)
    assert model.report == expected.report


@trains
@methods
@pytest.mark.parametrize("slices", [1 << 27, 3000])
def test_a_run_with_lists_resumes_bit_for_bit(name, slices, hot, monkeypatch):
    monkeypatch.setattr(solvers.linear.driver.ascent, "SLICE_OPERATIONS", slices)
    hot(3)
    problem = many()
    method = machine(name, tol=1e-3, max_epochs=8)
    n_steps = sum(1 for _ in method.steps(problem))
    stops, states = (0, n_steps // 2, n_steps - 2), {}
    for place, step in enumerate(method.steps(problem)):
        if place in (*stops, n_steps - 1):
            states[place] = test_contract.copied(step.state)
    for stop in stops:
        ((left, last),) = deque(enumerate(method.steps(problem, states[stop]), 1), maxlen=1)
        assert left == n_steps - stop - 1
        for key, array in states[n_steps - 1].items():
            np.testing.assert_array_equal(last.state[key], array, err_msg=key)


CLAIMS = [
    test_contract.test_a_tighter_tolerance_gives_a_smaller_gap,
    test_contract.test_permuting_the_classes_permutes_the_scores,
    test_contract.test_the_limit_of_epochs_ends_training_unconverged_with_a_measured_gap,
    test_contract.test_the_certificate_belongs_to_the_model_that_is_handed_out,
    test_contract.test_empty_rows_duplicate_rows_unused_features_and_two_classes_are_no_trouble,
    test_contract.test_one_example_a_class_converges,
    test_contract.test_the_same_seed_gives_the_same_bits_and_another_seed_another_path_where_there_is_chance,
]


@trains
@methods
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
def test_what_every_method_promises_holds_with_lists_too(name, claim, hot):
    hot(0)
    claim(name)


@trains
@methods
@precisions
@pytest.mark.parametrize("C", [1e-8, 1e8])
def test_an_extreme_weight_of_the_losses_ends_with_true_bounds_with_lists_too(name, dtype, C, hot):
    hot(0)
    test_contract.test_an_extreme_weight_of_the_losses_ends_with_true_bounds(name, C, dtype)


def duals_of(state, i):
    """Classes and values of the list of example i, wherever in the pool it is."""
    place = slice(state["dual_start"][i], state["dual_start"][i] + state["dual_length"][i])
    return state["dual_classes"][place], state["dual_values"][place]


@trains
@methods
def test_a_state_made_for_another_weight_of_the_losses_begins_where_the_dense_one_does(name, hot):
    problem, states = many(), []
    for n_hot in (60, 4):
        hot(n_hot)
        method = machine(name, tol=1e-2)
        *_, last = method.steps(problem)
        assert isinstance(method, Machine)
        state = method.at(10.0).rescaled(problem, last.state, 1.0)
        states.append(next(iter(method.at(10.0).steps(problem, state))).state)
    for i in range(problem.n_samples):
        (classes, values), (same_classes, same_values) = (duals_of(state, i) for state in states)
        np.testing.assert_array_equal(classes, same_classes)
        np.testing.assert_array_equal(values, same_values)


@trains
@methods
def test_a_certificate_by_lists_tells_which_examples_the_model_answers_rightly(name, hot):
    problem = many()
    hot(5)
    steps, model = trained(name, problem, tol=0.3)
    assert isinstance(model, SparseLinearModel)
    np.testing.assert_array_equal(steps[-1].right, model.predict(problem.X) == problem.y)
    assert np.count_nonzero(steps[-1].right) > 0


@trains
@methods
def test_memory_decides_how_many_features_are_dense_and_nothing_else(name):
    rng = np.random.default_rng(0)
    X = sp.random(900, 9000, density=0.0015, random_state=rng, format="csr")
    problem = Problem.check(X, np.arange(900) % 300)
    results, kept = [], []
    for memory_mb in (64, 8):
        method = machine(name, max_epochs=1, memory_mb=memory_mb)
        *_, last = method.steps(problem)
        results.append((last.epoch, last.primal, last.dual))
        kept.append(len(last.state["W"]))
    assert results[0] == results[1]
    assert kept[0] == len(np.unique(X.indices)) > kept[1] > 0


@trains
@methods
def test_lists_that_outgrow_the_memory_allowed_are_told_with_an_estimate(name):
    # rows have nothing in common, so that every class comes to weigh something for every feature of its examples
    rng = np.random.default_rng(0)
    X = sp.random(1500, 6000, density=0.02, random_state=rng, format="csr")
    problem = Problem.check(X, np.arange(1500) % 500)
    method = machine(name, tol=1e-4, memory_mb=4, C=0.01)
    with pytest.raises(TooLargeError, match=r"weights of 6,000 x 500 so far needs at least \d+ MB; .* allows 4 MB"):
        list(method.steps(problem))


def test_rare_features_of_very_many_classes_have_lists_whatever_the_memory():
    n, k = 6000, 10_000
    common = sp.csr_matrix((np.ones(n), (np.arange(n), np.arange(n) % 3)), (n, 3))
    X = sp.hstack([common, sp.random(n, 500, density=0.004, random_state=0)], format="csr")
    layout = HybridLayout.within(X, k, np.dtype(np.float32), 1 << 16)
    assert layout.n_hot == 3
    assert (layout.full < 5 * k).all()
    few = HybridLayout.within(X, k // 2, np.dtype(np.float32), 1 << 16)
    assert few.n_hot == 503
    assert few.weights().lists is None


@precisions
def test_lists_hold_what_was_added_through_growth_moves_and_holes(dtype):
    rng, n_features, k, n_hot = np.random.default_rng(0), 12, 700, 2
    problem = small(n=40, d=n_features, k=5, density=0.6)
    rows, _ = arrange(problem.X, np.dtype(dtype))
    lists = class_lists.empty(rows, n_features, n_hot, k, 1 << 15)
    expected = np.zeros((n_features, k), dtype)
    slots = np.empty(12 * 20, np.int64)
    fixed, bits = (n_hot, lists.start, lists.length, lists.cells), int(lists.counters["bits"][0])
    for turn in range(2000):
        i, n = int(rng.integers(40)), int(rng.integers(1, 20))
        low, high = lists.middle[i], rows.indptr[i + 1]
        moved = rng.permutation(int(rng.choice([30, k])))[:n].astype(np.int32)
        n, steps = len(moved), rng.standard_normal(len(moved)).astype(dtype)
        for p in range(low, high):
            expected[rows.indices[p], moved] += steps * rows.data[p]
        lists.counters["lacking"] = class_lists.lacking(rows.indices, low, high, n_hot, lists.length, n)
        assert class_lists.room_needed(lists, 10) <= lists.n_entries
        class_lists.sort_steps(moved, steps, n)
        assert (np.diff(moved) > 0).all()
        class_lists.place(rows.indices, low, high, *fixed, bits, moved, n, slots)
        class_lists.update(rows.indices, rows.data, low, high, n_hot, lists, moved, steps, n, slots)
        if turn % 200 == 0:
            found = class_lists.place(rows.indices, low, high, *fixed, bits, moved, n, slots)
            assert found
            missing = np.array([k - 1], np.int32)
            if not expected[rows.indices[low:high], k - 1].any():
                assert not class_lists.place(rows.indices, low, high, *fixed, bits, missing, 1, slots) or low == high
    assert lists.counters["end"][0] < 2.2 * lists.length.sum()
    W, dense = weights(n_hot, k, np.dtype(dtype)), weights(n_features, k, np.dtype(dtype))
    dense[:, :k] = expected
    got, want = np.empty(W.shape[1], dtype), np.empty(W.shape[1], dtype)
    dense[:n_hot] = 0
    for i in range(40):
        hybrid_layout.score(rows, i, W, lists, got)
        score(rows, i, dense, want)
        np.testing.assert_array_equal(got, want)


@precisions
def test_weights_made_afresh_equal_dense_ones_and_need_no_more_room(dtype, monkeypatch):
    monkeypatch.setattr(hybrid_layout, "BATCH", 50)
    rng, n, k, d = np.random.default_rng(0), 80, 120, 30
    rows, features = arrange(small(n=n, d=d, k=5).X, np.dtype(dtype))
    pool = coefficients.empty(n, n * 40)
    for i in range(0, n, 2):
        m = int(rng.integers(1, 40))
        coefficients.put(pool, i, rng.permutation(k)[:m].astype(np.int32), rng.standard_normal(m), m)
    dense = weights(d, k, np.dtype(dtype))
    coefficients.rebuild(rows, pool, dense)
    lists, W = class_lists.empty(rows, d, 4, k, 1 << 14), weights(4, k, np.dtype(dtype))
    for _ in range(2):
        assert hybrid_layout.rebuild(rows, pool, W, lists)
        order = rng.permutation(k).astype(np.int32)
        csr = hybrid_layout.to_csr(hybrid_layout.Weights(W, lists), features, d + 5, k, order)
        assert csr.has_canonical_format
        found = csr.toarray()[features][:, order]
        np.testing.assert_array_equal(found, dense[:, :k])
    assert class_lists.square_norm(lists, 0.0) == pytest.approx(float((dense[4:].astype(float) ** 2).sum()), rel=1e-12)
    too_small = class_lists.empty(rows, d, 4, k, 100)
    assert not hybrid_layout.rebuild(rows, pool, W, too_small)


@trains
@methods
def test_a_sparse_model_is_saved_and_scores_single_examples(name, hot, tmp_path):
    hot(5)
    problem = many()
    _, model = trained(name, problem, bias=1.0)
    model.save(tmp_path / "m")
    loaded, _ = load_model(tmp_path / "m", verify=True)
    row = problem.X[7]
    np.testing.assert_array_equal(loaded.scores(row), model.scores(row))
    np.testing.assert_allclose(loaded.score_one(row.indices, row.data), model.scores(row)[0], rtol=1e-5, atol=1e-6)
    assert not (model.W.data == 0).any()


@trains
@pytest.mark.parametrize("name", ["weston_watkins", "crammer_singer"])
def test_a_sparse_model_is_the_multiple_that_its_certificate_is_of(name, hot):
    hot(5)
    method = machine(name, C=30.0)
    *_, last = method.steps(many())
    once, twice = (method.model(many(), last.state | {"scale": np.array([s])}).W for s in (1.0, 2.0))
    np.testing.assert_array_equal(twice.toarray(), 2.0 * once.toarray())


@pytest.mark.parametrize(("memory_mb", "n_classes"), [(None, 3), (1, 3), (1, 4000), (1, 9000), (None, 9000)])
def test_whether_weights_take_lists_is_told_as_the_layout_has_it(memory_mb: int | None, n_classes: int) -> None:
    X = sp.csr_matrix(sp.random(60, 300, 0.05, format="csr", random_state=0))
    layout = HybridLayout.within(X, n_classes, np.dtype(np.float32), memory_mb)
    takes_lists = HybridLayout.takes_lists(X, n_classes, np.dtype(np.float32), memory_mb)
    assert takes_lists == (layout.n_hot < len(layout.features))
    if n_classes < 9000:
        assert takes_lists == (memory_mb == 1 and n_classes == 4000)
