"""Columns of an output code in shards: the machines of one worker, states that can be resharded, one model of all."""

import numpy as np
import pytest
import training
from gangs import in_shards
from problems import small
from training import fitted

from solvers.output_codes.columns import one_by_one, progress
from solvers.sharding.shardable import shardable


def machine(**params):
    return training.machine("output_code", **({"tol": 1e-2, "n_columns": None} | params))


def assembled(solver, problem, states):
    parts = [shardable(solver).part(problem, state) for state in states]
    owner, files = np.empty(sum(len(part.own) for part in parts), np.int32), {}
    for rank, part in enumerate(parts):
        owner[part.own] = rank
        given = part.files(rank)
        assert not files.keys() & given.keys()
        files |= given
    return shardable(solver).assembled(problem, owner, files, [part.report() for part in parts])


def cut_anew(solver, problem, states, size):
    parts = [shardable(solver).split(state) for state in states]
    owner = shardable(solver).partition(problem, size)
    owns = [np.flatnonzero(owner == rank).astype(np.int32) for rank in range(size)]
    return [{**parts[0][1], **shardable(solver).gathered([alone for alone, _ in parts], own)} for own in owns]


def same(model, other):
    arrays, others = model.arrays(), other.arrays()
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, others[name], err_msg=name)
    assert dict(model.report) == pytest.approx(dict(other.report), rel=1e-12)


@pytest.mark.parametrize(
    "params",
    [
        {"base": "weston_watkins", "code": "sparse_random", "bias": 1.0},
        {"base": "spoc", "code": "all_pairs", "base_params": {"kernel": "rbf"}},
    ],
)
def test_columns_one_by_one_make_the_model_of_a_single_worker_bit_by_bit(params):
    problem, solver = small(n=60, k=4), machine(**params)
    *_, alone = solver.steps(problem)
    for size in (1, 3):
        shards = in_shards(solver, problem, size)
        last = shards[0][-1][0]
        assert {len(steps) for steps in shards} == {len(shards[0])}
        assert (last.converged, last.epoch) == (alone.converged, alone.epoch)
        np.testing.assert_allclose([last.primal, last.dual], [alone.primal, alone.dual], rtol=1e-12)
        states = [steps[-1][1] for steps in shards]
        same(assembled(solver, problem, states), solver.model(problem, alone.state))


def test_a_training_of_columns_goes_on_in_another_number_of_shards(monkeypatch):
    monkeypatch.setattr(one_by_one, "SLICE_CELLS", 1)
    problem, solver = small(n=40, k=4), machine(base="weston_watkins", code="all_pairs", tol=0.05)
    whole = in_shards(solver, problem, 2)
    # columns that are done, others in work, and some not yet begun
    stop = next(t for t, (_, state) in enumerate(whole[0]) if (state["progress_status"] == progress.ENDED).any())
    begun = [steps[stop][1] for steps in whole]
    assert set(np.concatenate([state["progress_status"] for state in begun])) >= {
        progress.ENDED,
        progress.ELSEWHERE,
    }
    assert len(whole[0]) > stop + 1
    *_, alone = solver.steps(problem)
    for size in (1, 2, 3):
        ended = in_shards(solver, problem, size, cut_anew(solver, problem, begun, size))
        assert ended[0][-1][0].primal == pytest.approx(alone.primal, rel=1e-12)
        same(assembled(solver, problem, [steps[-1][1] for steps in ended]), solver.model(problem, alone.state))
    halfway = assembled(solver, problem, begun)
    assert halfway.predict(problem.X).shape == problem.y.shape


def test_a_shard_that_had_nothing_left_to_do_waits_for_the_others(monkeypatch):
    monkeypatch.setattr(one_by_one, "SLICE_CELLS", 1)
    problem, solver = small(n=40, k=3), machine(base="weston_watkins", code="all_pairs", tol=0.05)
    whole = in_shards(solver, problem, 2)
    # one shard at its end, the other at its beginning
    states = [whole[0][-1][1], whole[1][0][1]]
    ended = in_shards(solver, problem, 2, states)
    same(
        assembled(solver, problem, [steps[-1][1] for steps in ended]),
        assembled(solver, problem, [steps[-1][1] for steps in whole]),
    )


@pytest.mark.parametrize("code", ["dense_random", "all_pairs"])
def test_columns_at_once_reach_the_optimum_of_a_single_worker(code):
    problem, solver = small(n=60, k=5), machine(code=code, bias=1.0, tol=1e-3, base_params={"dtype": "float64"})
    alone, model = fitted(solver, problem)
    begun = in_shards(solver, problem, 2, stop=2)
    for shards in (
        in_shards(solver, problem, 3),
        in_shards(solver, problem, 3, cut_anew(solver, problem, [steps[-1][1] for steps in begun], 3)),
    ):
        last = shards[0][-1][0]
        assert last.converged
        assert last.dual <= alone.primal * (1 + 1e-12)
        assert alone.dual <= last.primal * (1 + 1e-12)
        found = assembled(solver, problem, [steps[-1][1] for steps in shards])
        assert type(found) is type(model)
        scores, expected = found.scores(problem.X), model.scores(problem.X)
        if code == "dense_random":
            np.testing.assert_allclose(scores, expected, atol=0.03 * np.abs(expected).max())
        assert (scores.argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.9
        assert found.report["nonzero_duals"] == pytest.approx(model.report["nonzero_duals"], abs=0.05)


def test_more_shards_than_columns_are_refused():
    problem = small(n=40, k=3)
    with pytest.raises(ValueError, match="4 shards for 3 columns"):
        shardable(machine(code="all_pairs", base="weston_watkins")).partition(problem, 4)
    assert shardable(machine(code="all_pairs")).most_shards(3) == 3


@pytest.mark.parametrize(("base", "code"), [("one_vs_rest", "dense_random"), ("crammer_singer", "all_pairs")])
def test_a_plan_deals_the_columns_that_the_shards_train(base, code):
    problem, solver = small(n=80, k=6), machine(base=base, code=code)
    counts, d = np.bincount(problem.y), problem.n_features
    found = shardable(solver).forecast(counts, d, problem.X.nnz, 3)
    owner, matrix = shardable(solver).partition(problem, 3), solver.code(problem)
    for rank, share in enumerate(found.shares):
        own = owner == rank
        assert share.classes == own.sum()
        assert share.examples == (matrix[:, own][problem.y] != 0).sum()
        assert share.memory_bytes > problem.X.nnz * 12
    assert found.rounds == 1
    assert shardable(solver).forecast(counts, d, problem.X.nnz, 1).seconds > found.seconds
