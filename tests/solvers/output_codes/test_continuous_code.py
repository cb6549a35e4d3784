"""Codes designed for given machines: optima, columns one by one, rounds."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from problems import linear_map, small
from training import fitted, machine

import solvers.output_codes.columns.one_by_one
import solvers.output_codes.design.single_column
from solvers.core.base import ParamsError
from solvers.core.linear_model import LinearModel
from solvers.core.memory import TooLargeError
from solvers.core.problem import Problem
from solvers.core.stored_models import load_model
from solvers.kernel_svm.kernel_model import KernelModel
from solvers.output_codes.code_model import CodeModel, LinearCodeModel
from solvers.output_codes.design.programs import Program
from solvers.output_codes.design.single_column import QuadraticColumn
from solvers.registry import parse_params


def solver(threads: int = 1, seed: int = 0, name: str = "continuous_code", **params):
    return machine(name, seed=seed, threads=threads, **params)


def trained(problem: Problem, **params):
    return fitted(solver(**params), problem)


def machines(problem: Problem, **params):
    """The margins of one-vs-rest machines on the training examples."""
    _, model = trained(problem, name="output_code", decoding="hamming", **params)
    return model.margins(problem.X)


def design(H, y, k, bounds, norm: str, offsets=None, floor: float = 0.0):
    """The optimal value by a general convex solver."""
    M = cp.Variable((k, H.shape[1]))
    F, E = H @ M.T, np.eye(k)[y]
    own = cp.sum(cp.multiply(F, E), axis=1, keepdims=True) @ np.ones((1, k))
    V = cp.multiply((1.0 if offsets is None else offsets) + F - own, 1 - E)
    norms = {
        "l1": cp.sum(cp.abs(M)),
        "l2": 0.5 * cp.sum_squares(M),
        "linf": cp.maximum(cp.max(cp.abs(M)), floor),
    }
    task = cp.Problem(cp.Minimize(norms[norm] + bounds @ cp.pos(cp.max(V, axis=1))))
    return task.solve(solver="CLARABEL"), M.value


def ended(solving):
    """What a generator returns."""
    while True:
        try:
            next(solving)
        except StopIteration as end:
            return end.value


def solved(program: Program, tol: float = 1e-9, M=None):
    """Upper and lower bound, and the working sets' sizes, from a guess."""
    M = np.zeros((program.n_classes, program.H.shape[1])) if M is None else M
    working, best, dual, sizes = program.working_set(program.violations(M)), np.inf, -np.inf, []
    while not best - dual <= tol * best < np.inf:
        sizes.append(len(working))
        found = ended(program.solving(working, tol))
        V = program.violations(found.M)
        best = min(best, program.primal(found.M, V))
        assert found.dual >= dual - 1e-9 * abs(best)
        working = program.grown(working, V, purge=found.dual > dual + 1e-12)
        dual = max(dual, found.dual)
    return best, dual, sizes


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("C", [1e-6, 0.02, 1.0, 100.0])
def test_linear_programs_reach_the_optimum(norm, C):
    problem, rng = small(n=60), np.random.default_rng(0)
    bounds = C * rng.uniform(0.5, 2.0, 60)
    value, _ = design(problem.X.toarray(), problem.y, 5, bounds, norm)
    for H in (problem.X.toarray(), problem.X):
        primal, dual, _ = solved(Program(H, problem.y, bounds, 5, norm))
        assert primal == pytest.approx(dual, rel=1e-9)
        # the general solver is the less exact of the two
        assert primal == pytest.approx(value, rel=3e-6)
    scaled, _, _ = solved(Program(1e4 * problem.X, problem.y, 1e-4 * bounds, 5, norm))
    assert scaled == pytest.approx(1e-4 * primal, rel=2e-9)


@pytest.mark.parametrize(("norm", "floor"), [("l1", 0.0), ("linf", 0.0), ("linf", 0.3)])
def test_a_column_beside_others_reaches_its_optimum(norm, floor):
    problem, rng = small(n=60), np.random.default_rng(0)
    h, offsets = rng.standard_normal((60, 1)), 1 + rng.standard_normal((60, 5))
    value, _ = design(h, problem.y, 5, np.ones(60), norm, offsets, floor)
    primal, dual, _ = solved(Program(h, problem.y, np.ones(60), 5, norm, offsets, floor))
    assert primal == pytest.approx(dual, rel=1e-9)
    assert primal == pytest.approx(value, rel=1e-7)


def test_a_quadratic_column_beside_others_reaches_its_optimum():
    problem, rng = small(n=60), np.random.default_rng(0)
    h, offsets = rng.standard_normal((60, 1)), 1 + rng.standard_normal((60, 5))
    h[:3] = 0.0
    value, m = design(h, problem.y, 5, np.ones(60), "l2", offsets)
    column = QuadraticColumn(Program(h, problem.y, np.ones(60), 5, "l1", offsets), 1e-9, 100_000, 0)
    *_, last = column.steps(None)
    assert last.converged
    assert last.dual <= value * (1 + 1e-9) <= last.primal * (1 + 2e-9)
    assert last.primal == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(column.code(last.state), m, atol=1e-3)


def test_few_constraints_of_all_are_ever_looked_at():
    problem = small(n=300, d=20, k=12)
    _, guess = trained(problem, name="crammer_singer")
    _, _, sizes = solved(Program(problem.X, problem.y, np.ones(300), 12, "l1"), 1e-6, np.asarray(guess.coef, float))
    assert max(sizes) < 0.4 * 300 * 11


def test_a_program_too_large_for_memory_is_refused_with_the_estimate():
    program = Program(np.ones((1000, 50)), np.zeros(1000, np.int32), np.ones(1000), 3, "l1")
    with pytest.raises(
        TooLargeError, match=r"1,000 constraints on 3 x 50 code entries needs at least 19 MB.*allows 10"
    ):
        program.check_size(1000, 10)
    program.check_size(1000, 20)
    problem = small(n=400, d=60)
    with pytest.raises(TooLargeError, match="memory_mb allows 1 MB"):
        trained(problem, inputs="features", norm="l1", memory_mb=1)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("outputs", ["margins", "signs"])
def test_the_code_of_given_machines_is_the_optimum(norm, outputs):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    problem = Problem.check(small(n=60).X, small(n=60).y, weights=weights)
    params = {"code": "exhaustive", "bias": 1.0, "tol": 1e-7, "max_epochs": 100_000}
    H = machines(problem, **params)
    H = np.sign(H) if outputs == "signs" else H
    value, M = design(H, problem.y, 5, 0.3 * weights, norm)
    last, model = trained(problem, norm=norm, outputs=outputs, C=0.3, **params)
    assert last.converged
    assert last.dual <= value * (1 + 1e-7)
    assert last.primal == pytest.approx(value, rel=3e-7)
    np.testing.assert_allclose(model.scores(problem.X), H @ model.code.T, atol=1e-6)
    assert type(model) is (LinearCodeModel if outputs == "margins" else CodeModel)
    if norm == "l2":
        np.testing.assert_allclose(model.code, M, atol=1e-3)


def test_norms_shape_the_code():
    problem = small(n=100)
    of = {
        norm: trained(problem, code="exhaustive", norm=norm, C=0.05, tol=1e-6)[1].code for norm in ("l1", "l2", "linf")
    }
    assert (of["l1"] == 0).mean() > (of["l2"] == 0).mean() + 0.2
    largest = np.abs(of["linf"]).max()
    assert (np.abs(of["linf"]) > 0.999 * largest).mean() > 0.3


def test_the_quadratic_code_is_that_of_spoc():
    problem = small(n=60)
    H = machines(problem, tol=1e-8)
    for kernel in (
        {"kernel": "linear"},
        {"kernel": "rbf", "gamma": 0.3},
        {"kernel": "poly", "degree": 2, "gamma": 0.5},
    ):
        last, model = trained(problem, tol=1e-7, max_epochs=100_000, base_params={"tol": 1e-8}, **kernel)
        step, machine = trained(Problem.check(H, problem.y), name="spoc", tol=1e-7, **kernel)
        assert last.primal == pytest.approx(step.primal, rel=3e-7)
        np.testing.assert_allclose(model.scores(problem.X), machine.scores(sp.csr_matrix(H)), atol=3e-3)


def test_features_in_place_of_machines_make_the_multi_class_machine():
    problem = small(n=60)
    last, model = trained(problem, inputs="features", bias=1.0, tol=1e-7, max_epochs=100_000)
    step, machine = trained(problem, name="crammer_singer", bias=1.0, tol=1e-7, max_epochs=100_000)
    assert last.primal == step.primal
    assert isinstance(model, LinearModel)
    np.testing.assert_allclose(model.coef, machine.coef, atol=1e-6)
    np.testing.assert_allclose(model.intercept, machine.intercept, atol=1e-6)
    _, curved = trained(problem, inputs="features", kernel="rbf", bias=1.0, tol=1e-4)
    _, kernel = trained(problem, name="spoc", kernel="rbf", bias=1.0, tol=1e-4)
    assert isinstance(curved, KernelModel)
    np.testing.assert_array_equal(curved.scores(problem.X), kernel.scores(problem.X))


@pytest.mark.parametrize(
    ("norm", "column_norm"), [("l1", "whole"), ("l2", "whole"), ("linf", "whole"), ("linf", "column")]
)
def test_columns_one_by_one_are_each_the_best_beside_those_before(norm, column_norm):
    problem = small(n=60)
    params = {"norm": norm, "C": 0.5, "tol": 1e-6, "max_epochs": 20_000}
    H = machines(problem, tol=1e-6, max_epochs=20_000)
    made = solver(incremental=True, column_norm=column_norm, **params)
    whole, _ = trained(problem, **params)
    steps = list(made.steps(problem))
    assert steps[-1].converged
    assert all(np.isnan(step.dual) for step in steps)
    M, losses = made.model(problem, steps[-1].state).code, []
    for t in range(5):
        F = H[:, :t] @ M[:, :t].T
        offsets = 1 + F - F[np.arange(60), problem.y][:, None]
        floor = np.abs(M[:, :t]).max(initial=0.0) if column_norm == "whole" else 0.0
        value, _ = design(H[:, t : t + 1], problem.y, 5, np.full(60, 0.5), norm, offsets, floor)
        before = {"l1": np.abs(M[:, :t]).sum(), "l2": 0.5 * (M[:, :t] ** 2).sum(), "linf": 0.0}[norm]
        if column_norm == "column":
            # what is reported is the objective of the whole, though the column was chosen by its own norm
            before = np.abs(M[:, : t + 1]).max() - np.abs(M[:, t]).max()
        losses.append(next(step.primal for step in steps if step.measures.get("columns") == t + 1))
        assert losses[-1] == pytest.approx(value + before, rel=2e-6)
    assert column_norm == "column" or (np.diff(losses) <= 1e-6).all()
    assert losses[-1] >= whole.primal * (1 - 1e-6)


def test_rounds_tell_the_objective_after_each_and_keep_the_best():
    problem = small(n=60)
    made = solver(rounds=4, tol=1e-5, max_epochs=20_000)
    steps = list(made.steps(problem))
    reported = [step.measures["objective"] for step in steps if "objective" in step.measures]
    assert len(reported) == 4
    assert steps[-1].primal == min(reported)
    model = made.model(problem, steps[-1].state)
    assert [model.report[f"objective_round_{r}"] for r in (1, 2, 3, 4)] == reported
    assert model.report["objective"] == min(reported)
    first, _ = trained(problem, tol=1e-5, max_epochs=20_000)
    assert reported[0] == pytest.approx(first.primal, rel=1e-4)
    assert min(reported) < 0.99 * reported[0]
    F, rows = model.scores(problem.X), np.arange(60)
    V = 1 + F - F[rows, problem.y][:, None]
    V[rows, problem.y] = 0
    assert 0.5 * (model.code**2).sum() + V.max(axis=1).sum() == pytest.approx(min(reported), rel=1e-4)
    assert steps[-1].converged
    assert not any(step.converged for step in steps[:-1])


def test_a_next_round_trains_each_column_on_the_sides_of_the_code_with_its_sizes_as_weights():
    problem = small(n=60)
    made = solver(rounds=2, code="all_pairs", tol=1e-6, max_epochs=50_000, norm="l1")
    middle = next(step for step in made.steps(problem) if "objective" in step.measures).state
    middle = {name: np.array(array) for name, array in middle.items()}
    _, first = trained(problem, code="all_pairs", tol=1e-6, max_epochs=50_000, norm="l1")
    signs, confidence = middle["signs"], middle["confidence"]
    centred = first.code - first.code.mean(axis=0)
    used = np.ptp(first.code, axis=0) > 0
    assert used.any()
    np.testing.assert_array_equal(signs[:, used], np.sign(np.where(np.abs(centred) < 1e-7, 0, centred))[:, used])
    for t in np.flatnonzero(used):
        part = signs[:, t] != 0
        ratios = confidence[part, t] / np.abs(centred[part, t])
        np.testing.assert_allclose(ratios, ratios[0])
        assert np.average(confidence[:, t], weights=np.bincount(problem.y) * part) == pytest.approx(1.0)


CASES = [
    {},
    {"norm": "l1", "base": "weston_watkins", "code": "all_pairs"},
    {"norm": "linf", "inputs": "features", "bias": 1.0},
    {"kernel": "rbf", "base": "spoc"},
    {"incremental": True},
    {"incremental": True, "norm": "linf", "max_epochs": 2},
    {"rounds": 3, "code": "dense_random"},
    {"rounds": 2, "norm": "l1", "outputs": "signs"},
]


def followed(made, problem, state=None, kept=()):
    """What each step reported, with the names of its measures and arrays, and copies of the states of some."""
    reported, states = [], {}
    for place, step in enumerate(made.steps(problem, state)):
        reported.append(((step.epoch, step.primal, step.dual, step.converged), set(step.measures), set(step.state)))
        if place in kept:
            states[place] = {name: np.array(array) for name, array in step.state.items()}
    return reported, states


@pytest.mark.parametrize("params", CASES)
def test_a_run_gone_on_with_anywhere_ends_with_the_same_bits(params, monkeypatch):
    monkeypatch.setattr(solvers.output_codes.design.single_column, "SLICE_CELLS", 1)
    monkeypatch.setattr(solvers.output_codes.columns.one_by_one, "SLICE_CELLS", 1)
    problem = small(n=40)
    made = solver(**({"tol": 1e-2} | params))
    steps, _ = followed(made, problem)
    stops = sorted({0, len(steps) // 3, len(steps) // 2, len(steps) - 2})
    _, states = followed(made, problem, None, {*stops, len(steps) - 1})
    for stop in stops:
        rest, last = followed(made, problem, states[stop], {len(steps) - stop - 2})
        assert len(rest) == len(steps) - stop - 1
        for ours, theirs in zip(rest, steps[stop + 1 :], strict=True):
            np.testing.assert_array_equal(ours[0], theirs[0])
            assert ours[1:] == theirs[1:]
        for name, array in states[len(steps) - 1].items():
            np.testing.assert_array_equal(last[len(rest) - 1][name], array, err_msg=name)


@pytest.mark.parametrize("params", CASES)
def test_threads_change_no_bit_and_models_are_saved_whole(params, tmp_path):
    problem = small(n=40)
    _, model = trained(problem, **({"tol": 1e-2} | params))
    _, other = trained(problem, threads=3, **({"tol": 1e-2} | params))
    np.testing.assert_array_equal(model.scores(problem.X), other.scores(problem.X))
    model.save(tmp_path / "m")
    loaded, _ = load_model(tmp_path / "m", verify=True)
    np.testing.assert_array_equal(loaded.scores(problem.X), model.scores(problem.X))
    row = problem.X[5]
    np.testing.assert_allclose(loaded.score_one(row.indices, row.data), model.scores(row)[0], rtol=1e-4, atol=1e-5)
    assert loaded.report == model.report
    assert model.report["objective"] > 0


def test_a_model_can_be_had_at_every_step():
    problem = small(n=40)
    for params in ({"rounds": 2}, {"norm": "l1", "incremental": True}, {"base": "weston_watkins", "norm": "linf"}):
        made = solver(**params)
        for step in made.steps(problem):
            assert made.model(problem, step.state).scores(problem.X).shape == (40, 5)


def test_another_weight_of_the_losses_begins_at_the_machines_of_the_former():
    problem = small(n=60)
    for params in ({}, {"norm": "l1"}, {"inputs": "features", "norm": "linf"}):
        low = solver(C=0.1, tol=1e-4, **params)
        *_, end = low.steps(problem)
        high = low.at(1.0)
        steps = list(high.steps(problem, high.rescaled(problem, end.state, 0.1)))
        cold, _ = trained(problem, C=1.0, tol=1e-4, **params)
        assert steps[-1].converged
        assert steps[-1].primal == pytest.approx(cold.primal, rel=2e-4)
        assert all(not np.isnan(step.dual) for step in steps if step.measures["round"] > 1)
        if params.get("inputs") != "features":
            assert not any(name.startswith("columns_") for name in steps[0].state)


def test_reports_tell_bounds_support_and_columns_in_use():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    problem = Problem.check(np.eye(3)[y] + 0.05 * rng.standard_normal((60, 3)), y)
    _, model = trained(problem, norm="l1", C=100.0, tol=1e-6, code="exhaustive")
    report = model.report
    assert report["smallest_margin"] == pytest.approx(1.0, abs=1e-4)
    assert report["error_bound"] > 1
    assert report["columns_used"] <= report["n_columns"] == 3
    assert 0 < report["nonzero_duals"] < 0.5
    assert report["objective"] == pytest.approx(np.abs(model.code).sum(), rel=1e-3)


def test_scores_of_a_linear_code_are_linear():
    _, model = trained(small(n=60), code="all_pairs", norm="linf", bias=1.0)
    np.testing.assert_allclose(model.coef, linear_map(model), atol=1e-5)


@pytest.mark.parametrize(
    ("params", "pointer", "fault"),
    [
        ({"kernel": "rbf", "norm": "l1"}, "/kernel", "needs norm l2"),
        ({"kernel": "rbf", "incremental": True}, "/kernel", "no incremental"),
        ({"kernel": "poly", "rounds": 2}, "/kernel", "rounds 1"),
        ({"inputs": "features", "rounds": 2}, "/rounds", "rounds must be 1"),
        ({"inputs": "features", "outputs": "signs"}, "/outputs", "outputs must be margins"),
        ({"norm": "l3"}, "/norm", "Input should be"),
        ({"base_params": {"C": "x"}}, "/base_params/C", "valid number"),
        ({"base": "output_code"}, "/base", "cannot be a base method"),
        ({"matrix": [[1, 1], [-1, 1]]}, "/matrix", "no class on one of their sides"),
    ],
)
def test_what_does_not_go_together_is_pointed_at(params, pointer, fault):
    with pytest.raises(ParamsError) as caught:
        parse_params("continuous_code", params)
    ((at, what),) = caught.value.items
    assert at == pointer
    assert fault in what
