"""Shards that keep weights of rare features in lists of classes: the bits of dense shards, in less memory."""

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import training
from gangs import in_shards, model_of

import solvers.linear.layouts.hybrid_layout
import solvers.linear.sharded.training
from solvers.core.linear_model import LinearModel
from solvers.core.memory import TooLargeError
from solvers.core.problem import Problem
from solvers.core.sharded_linear_model import ShardedLinearModel
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.core.stored_models import load_model
from solvers.labels.stored_arrays import ArrayFault
from solvers.linear.layouts import class_lists, hybrid_layout
from solvers.linear.layouts.hybrid_layout import HybridLayout, weights_in
from solvers.linear.sharded.linear_shards import forecast
from solvers.linear.sharded.shard_weights import sparse_model
from solvers.sharding.shardable import shardable

machines = pytest.mark.parametrize("name", ["weston_watkins", "crammer_singer"])
# to compile the loops of a training with lists takes a quarter of a minute
trains = pytest.mark.slow
# dense features, no fewer than there are
ALL = 99
Hot = Callable[..., None]


@pytest.fixture
def hot(monkeypatch: pytest.MonkeyPatch) -> Hot:
    """Sets how many features are dense, and begins with a pool so small that it has to grow."""
    within = HybridLayout.within

    def choose(n_hot: int, n_entries: int = 40) -> None:
        def fixed(*arguments: Any) -> HybridLayout:
            layout = within(*arguments)
            return dataclasses.replace(layout, n_hot=min(n_hot, len(layout.features)), n_entries=n_entries)

        monkeypatch.setattr(HybridLayout, "within", fixed)
        monkeypatch.setattr(solvers.linear.layouts.hybrid_layout, "ROOM", 64)

    return choose


def many(n: int = 480, k: int = 120) -> Problem:
    """Rows so short and classes so many that some lists are long, and others short; one row is empty."""
    rng = np.random.default_rng(1)
    columns = (60 * rng.random((n, 9)) ** 3).astype(int)
    X = sp.csr_matrix((rng.standard_normal(columns.size), columns.ravel(), np.arange(n + 1) * 9), (n, 60))
    X = sp.csr_matrix(X.multiply((np.arange(n) != 7)[:, None]))
    X.eliminate_zeros()
    return Problem.check(X, np.concatenate([np.arange(k), rng.integers(k, size=n - k)]))


def machine(name: str, threads: int = 1, **params: Any) -> Any:
    return training.machine(name, threads=threads, **({"tol": 1e-3, "max_epochs": 12, "bias": 1.0} | params))


def weights_of(state: dict[str, Any]) -> Any:
    """The weights of a shard, shape (n_features, n_own), dense or of lists."""
    n_own = len(state["own"])
    if "list_start" not in state:
        return state["W"][:, :n_own]
    n_features = len(state["W"]) + len(state["list_start"])
    every, columns = np.arange(n_features), np.arange(n_own, dtype=np.int32)
    return hybrid_layout.to_csr(weights_in(state), every, n_features, n_own, columns).toarray()


def assert_alike(shards: Any, references: Any) -> None:
    """Every step of every shard has the same bits; of weights, whatever features are dense."""
    for steps, expected in zip(shards, references, strict=True):
        for (step, state), (other, reference) in zip(steps, expected, strict=True):
            assert repr((step.epoch, step.primal, step.dual)) == repr((other.epoch, other.primal, other.dual))
            np.testing.assert_array_equal(weights_of(state), weights_of(reference))
            for key in reference.keys() - {"W"}:
                if not key.startswith("list_"):
                    np.testing.assert_array_equal(state[key], reference[key], err_msg=key)


@trains
@machines
@pytest.mark.parametrize(
    ("dtype", "size", "n_hot", "bias"),
    [("float32", 2, 0, 1.0), ("float32", 3, 5, 1.0), ("float64", 2, 5, 0.0)],
)
def test_which_features_are_dense_changes_no_bit_of_a_shard(
    name: str, dtype: str, size: int, n_hot: int, bias: float, hot: Hot
) -> None:
    problem, solver = many(), machine(name, dtype=dtype, bias=bias, tol=1e-4)
    dense = in_shards(solver, problem, size)
    hot(n_hot)
    shards = in_shards(solver, problem, size)
    assert max(steps[-1][1]["list_length"].max() for steps in shards) > class_lists.LONG
    assert len(shards[0][-1][1]["W"]) == n_hot
    assert_alike(shards, dense)


@trains
@machines
def test_neither_threads_nor_the_size_of_the_pool_change_a_bit(name: str, hot: Hot) -> None:
    problem = many()
    hot(3)
    expected = in_shards(machine(name), problem, 2)
    assert_alike(in_shards(machine(name, threads=2), problem, 2), expected)
    hot(3, 1 << 16)
    shards = in_shards(machine(name), problem, 2)
    assert_alike(shards, expected)
    for steps, references in zip(shards, expected, strict=True):
        np.testing.assert_array_equal(steps[-1][1]["list_clock"], references[-1][1]["list_clock"])


@trains
@machines
@pytest.mark.parametrize("slices", [1 << 31, 20_000])
def test_shards_with_lists_resume_bit_for_bit(
    name: str, slices: int, hot: Hot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solvers.linear.sharded.training, "SLICE_PRODUCTS", slices)
    hot(3)
    problem, solver = many(), machine(name, max_epochs=6)
    whole = in_shards(solver, problem, 2)
    for stop in (0, len(whole[0]) // 2, len(whole[0]) - 2):
        states = [cut(solver, [steps[stop][1] for steps in whole], rank) for rank in range(2)]
        resumed = in_shards(solver, problem, 2, states)
        for steps, reference in zip(resumed, whole, strict=True):
            assert len(steps) == len(reference) - stop - 1
            for key, array in reference[-1][1].items():
                np.testing.assert_array_equal(steps[-1][1][key], array, err_msg=key)


def cut(solver: Any, states: Any, rank: int, own: Any = None) -> Any:
    """The state of a shard from a checkpoint of all of them."""
    own = states[rank]["own"] if own is None else own
    halves = [shardable(solver).split(state) for state in states]
    return {**halves[0][1], **shardable(solver).gathered([alone for alone, _ in halves], own)}


@cache
def primal_of_three_dense_shards(name: str) -> float:
    return float(in_shards(machine(name, tol=1e-2, max_epochs=100), many(), 3)[0][-1][0].primal)


@trains
@machines
@pytest.mark.parametrize(("before", "after"), [(5, 5), (5, ALL), (ALL, 5)])
def test_another_number_of_shards_goes_on_whatever_is_dense(name: str, before: int, after: int, hot: Hot) -> None:
    problem, solver = many(), machine(name, tol=1e-2, max_epochs=100)
    expected = primal_of_three_dense_shards(name)
    hot(before)
    begun = in_shards(solver, problem, 2, stop=2)
    hot(after)
    owner = shardable(solver).partition(problem, 3)
    states = [
        cut(solver, [steps[-1][1] for steps in begun], rank, np.flatnonzero(owner == rank).astype(np.int32))
        for rank in range(3)
    ]
    assert all(("W" in state) == (before == ALL) for state in states)
    ended = in_shards(solver, problem, 3, states)
    assert ended[0][-1][0].converged
    assert ended[0][-1][0].primal == pytest.approx(expected, rel=1e-2)
    assert ended[0][0][0].epoch >= begun[0][-1][0].epoch


@trains
@machines
def test_columns_that_would_take_too_much_memory_are_made_afresh(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, solver = many(), machine(name, tol=1e-2, max_epochs=100)
    begun = in_shards(solver, problem, 3, stop=2)
    monkeypatch.setattr(solvers.linear.layouts.hybrid_layout, "DENSE_CLASSES", 40)
    monkeypatch.setattr(solvers.linear.layouts.hybrid_layout, "FREQUENT", 2.0)
    owner = shardable(solver).partition(problem, 2)
    states = [
        cut(solver, [steps[-1][1] for steps in begun], rank, np.flatnonzero(owner == rank).astype(np.int32))
        for rank in range(2)
    ]
    assert not any("W" in state for state in states)
    ended = in_shards(solver, problem, 2, states)
    assert ended[0][-1][0].converged
    assert all("list_start" in steps[-1][1] for steps in ended)


@trains
@machines
def test_a_model_of_shards_with_lists_is_the_sparse_form_of_that_of_dense_ones(
    name: str, hot: Hot, tmp_path: Any
) -> None:
    problem = many()
    for bias in (0.0, 1.0):
        solver = machine(name, bias=bias)
        dense = model_of(solver, problem, in_shards(solver, problem, 3))
        assert isinstance(dense, ShardedLinearModel)
        hot(4)
        model = model_of(solver, problem, in_shards(solver, problem, 3))
        assert isinstance(model, SparseLinearModel)
        hot(ALL)
        whole = dense.gathered()
        assert isinstance(whole, LinearModel)
        np.testing.assert_array_equal(model.W.toarray(), whole.coef.T)
        assert model.W.has_canonical_format
        assert not (model.W.data == 0).any()
        assert dict(model.report) == dict(dense.report)
        model.save(tmp_path / f"m{bias}")
        loaded, _ = load_model(tmp_path / f"m{bias}", verify=True)
        np.testing.assert_array_equal(loaded.scores(problem.X), dense.scores(problem.X))
        row = problem.X[3]
        np.testing.assert_array_equal(loaded.score_one(row.indices, row.data), dense.score_one(row.indices, row.data))
        mine, other = (one.contributions(row.indices, row.data, 3, 5) for one in (loaded, dense))
        np.testing.assert_allclose(mine.parts, other.parts, rtol=1e-12)
        assert mine.intercept == pytest.approx(other.intercept, rel=1e-6)

        def prune(W: Any) -> Any:
            return np.where(np.abs(W) < 0.05, 0, W)

        smaller = [one.smaller(prune, False).scores(problem.X) for one in (loaded, dense)]
        np.testing.assert_allclose(smaller[0], smaller[1], rtol=1e-6, atol=1e-6)
        assert loaded.linear_weights() is not None


@trains
@machines
def test_a_state_without_weights_has_the_model_of_its_dual_variables(name: str, hot: Hot) -> None:
    problem, solver = many(), machine(name)
    hot(4)
    shards = in_shards(solver, problem, 2)
    expected = model_of(solver, problem, shards)
    bare = [
        [(step, {key: array for key, array in state.items() if key != "W" and not key.startswith("list_")})]
        for step, state in (steps[-1] for steps in shards)
    ]
    # the last step has been certified, which makes the weights afresh
    np.testing.assert_array_equal(model_of(solver, problem, bare).W.toarray(), expected.W.toarray())


@trains
def test_shards_of_which_one_has_lists_train_and_make_one_model(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, solver = many(k=121), machine("weston_watkins", max_epochs=4)
    dense = in_shards(solver, problem, 2)
    monkeypatch.setattr(solvers.linear.layouts.hybrid_layout, "DENSE_CLASSES", 60)
    monkeypatch.setattr(solvers.linear.layouts.hybrid_layout, "FREQUENT", 2.0)
    shards = in_shards(solver, problem, 2)
    assert [("list_start" in steps[-1][1]) for steps in shards] == [False, True]
    assert_alike(shards, dense)
    model = model_of(solver, problem, shards)
    np.testing.assert_array_equal(model.W.toarray(), model_of(solver, problem, dense).gathered().coef.T)


@trains
def test_lists_that_outgrow_the_memory_allowed_end_all_shards() -> None:
    rng = np.random.default_rng(0)
    X = sp.random(1500, 6000, density=0.02, random_state=rng, format="csr")
    problem = Problem.check(X, np.arange(1500) % 500)
    solver = machine("weston_watkins", tol=1e-4, memory_mb=2, C=0.01)
    with pytest.raises(TooLargeError, match=r"weights of 6,001 x 250 so far needs at least \d+ MB; .* allows 2 MB"):
        in_shards(solver, problem, 2)


def test_files_of_a_part_that_do_not_fit_are_refused() -> None:
    W = sp.csr_matrix(np.eye(3, 2, dtype=np.float32))
    files: dict[str, Any] = {"features": np.arange(3), "bias": np.zeros(1), "indptr-0": W.indptr, "data-0": W.data}
    owner = np.zeros(2, np.int32)
    model = sparse_model(("a", "b"), 3, owner, files | {"indices-0": W.indices})
    np.testing.assert_array_equal(model.W.toarray(), W.toarray())
    with pytest.raises(ArrayFault, match="indices"):
        sparse_model(("a", "b"), 3, owner, files | {"indices-0": W.indices + 2})


def test_the_memory_of_lists_is_forecast_where_classes_are_many_or_memory_is_short() -> None:
    counts = np.full(28_000, 13)
    few, many_shards = (forecast(counts, 600_000, 46_000_000, size, 4).shares[0].memory_bytes for size in (2, 4))
    dense = 4 * 600_000 * 14_000
    assert few < 0.4 * dense
    # a quarter of the classes is few enough for dense rows again
    assert many_shards > 4 * 600_000 * 7_000
    short = forecast(counts, 600_000, 46_000_000, 4, 4, memory_mb=8000).shares[0].memory_bytes
    assert short < few
