"""What all flat machines share: weights of classes and a constant feature."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from problems import intercept, linear_map, settings, small
from training import machine, trained

from solvers.core import memory
from solvers.core.base import ParamsError
from solvers.core.linear_model import LinearModel
from solvers.core.machine import SingleLabelParams, class_weights
from solvers.core.memory import TooLargeError
from solvers.core.problem import Problem, ProblemError
from solvers.core.stored_models import load_model
from solvers.kernel_svm.kernel_machine import KernelMachine
from solvers.linear.relative_margins import RelativeMargins
from solvers.linear.sum_to_zero import SummedParams, SumToZero
from solvers.methods.one_vs_rest import OneVsRest
from solvers.registry import SOLVERS

FLAT = [
    name
    for name, method in SOLVERS.items()
    if issubclass(method, RelativeMargins | SumToZero | OneVsRest | KernelMachine)
]
LINEAR = [name for name in FLAT if issubclass(SOLVERS[name], RelativeMargins | SumToZero | OneVsRest)]
SUM_TO_ZERO = [name for name in LINEAR if hasattr(SOLVERS[name], "margins")]
SUMMED = [name for name in FLAT if issubclass(SOLVERS[name].Params, SummedParams)]
everywhere = pytest.mark.parametrize("name", FLAT)


def test_the_machines_of_this_family_are_at_least_twelve():
    assert len(FLAT) >= 12
    assert all(issubclass(SOLVERS[name].Params, SingleLabelParams) for name in FLAT)


@everywhere
def test_weights_of_classes_are_weights_of_their_examples_to_the_bit(name):
    problem = small(n=60)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    times = np.array([1.0, 4.0, 0.5, 1.0, 1.0])
    weighted = Problem.check(problem.X, problem.y, problem.classes, weights)
    direct = Problem.check(problem.X, problem.y, problem.classes, weights * times[problem.y])
    params = settings(name, tol=1e-3)
    one, model = trained(name, weighted, class_weight={"1": 4.0, "2": 0.5}, **params)
    two, other = trained(name, direct, **params)
    assert (one.primal, one.dual) == (two.primal, two.dual)
    np.testing.assert_array_equal(model.scores(problem.X), other.scores(problem.X))


def test_balanced_classes_weigh_the_same_in_sum():
    problem = small(n=60)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    plain = class_weights(problem, "balanced")
    np.testing.assert_allclose(plain, 60 / (5 * np.bincount(problem.y)))
    weighted = Problem.check(problem.X, problem.y, problem.classes, weights)
    total = np.bincount(problem.y, weights) * class_weights(weighted, "balanced")
    np.testing.assert_allclose(total, weights.sum() / 5)


@everywhere
def test_weights_of_unknown_labels_are_refused_by_name(name):
    wanted = {"1": 2.0} | {f"label {i}": 1.0 for i in range(7)}
    with pytest.raises(ProblemError, match=r"7 labels that no training row has: 'label 0', .*'label 4' and 2 more"):
        machine(name, class_weight=wanted).steps(small())


@everywhere
@pytest.mark.parametrize("wrong", [{"1": 0.0}, {"1": -1.0}, {"1": float("inf")}, "balance", 3.0])
def test_weights_of_classes_are_positive_and_finite(name, wrong):
    with pytest.raises(ParamsError, match="class_weight"):
        machine(name, class_weight=wrong)


@everywhere
@pytest.mark.parametrize("wrong", [-1.0, float("inf"), float("nan")])
def test_a_bias_is_not_negative_and_finite(name, wrong):
    with pytest.raises(ParamsError, match="bias"):
        machine(name, bias=wrong)


@everywhere
def test_a_weight_beyond_the_range_of_floats_is_refused(name):
    base = small()
    for weight, C in ((1e300, 1e15), (1e-300, 1e-300)):
        problem = Problem.check(base.X, base.y, weights=np.full(len(base.y), weight))
        with pytest.raises(ProblemError, match=r"must be a positive, finite number|exceed the range of floats"):
            machine(name, C=C).steps(problem)


@everywhere
def test_features_beyond_what_floats_can_square_are_refused(name):
    base = small()
    with pytest.raises(ProblemError, match="divide the features by a constant"):
        machine(name).steps(Problem.check(base.X * 1e160, base.y))


@everywhere
@pytest.mark.parametrize("params", [{"C": 1e308}, {"bias": 1e308}])
def test_parameters_beyond_what_floats_can_square_are_refused(name, params):
    with pytest.raises(ParamsError):
        machine(name, **params)


@everywhere
@pytest.mark.parametrize("params", [{"C": 1e15}, {"bias": 1e6}, {"C": 1e15, "bias": 1e6}])
def test_the_largest_parameters_stay_within_the_range_of_floats(name, params):
    step, model = trained(name, small(n=30), max_epochs=2, **params)
    assert np.isfinite([step.primal, step.dual]).all()
    assert np.isfinite(model.scores(small(n=30).X)).all()


@pytest.mark.parametrize("name", LINEAR)
def test_the_intercept_is_the_constant_feature_times_its_weight(name):
    problem = small(n=60)
    appended = Problem.check(np.hstack([problem.X.toarray(), np.full((60, 1), 1.5)]), problem.y)
    step, model = trained(name, problem, bias=1.5, tol=1e-6)
    other, with_feature = trained(name, appended, tol=1e-6)
    assert step.primal == pytest.approx(other.primal, rel=2e-6)
    assert step.primal >= other.dual
    assert other.primal >= step.dual
    assert isinstance(model, LinearModel)
    atol = 5e-3 * np.abs(model.coef).max() + 1e-5
    np.testing.assert_allclose(model.coef, with_feature.coef[:, :-1], atol=atol)
    np.testing.assert_allclose(model.intercept, 1.5 * with_feature.coef[:, -1], atol=2 * atol)


@everywhere
def test_a_model_with_an_intercept_scores_one_example_as_many_and_is_saved_with_it(name, tmp_path):
    problem = small(n=60)
    _, model = trained(name, problem, bias=1.0, **settings(name))
    assert np.abs(intercept(model)).max() > 1e-3
    assert model.n_features == problem.n_features
    model.save(tmp_path / "m")
    loaded, _ = load_model(tmp_path / "m")
    np.testing.assert_array_equal(loaded.scores(problem.X), model.scores(problem.X))
    row = problem.X[7]
    scores = loaded.score_one(row.indices, row.data)
    np.testing.assert_allclose(scores, model.scores(row)[0], rtol=1e-5, atol=1e-6)
    best, values = loaded.top(row.indices, row.data, 2)
    np.testing.assert_array_equal(values, scores[best])
    assert best[0] == model.predict(row)[0]


@everywhere
def test_a_model_without_a_constant_feature_writes_no_intercept(name):
    _, model = trained(name, small(), **settings(name))
    assert "intercept" not in model.arrays()
    assert not intercept(model).any()


@pytest.mark.parametrize("name", SUM_TO_ZERO)
def test_intercepts_sum_to_zero_where_the_weights_do(name):
    _, model = trained(name, small(n=60), bias=1.0, tol=1e-5)
    assert abs(intercept(model).sum()) < 1e-9


@everywhere
def test_a_constant_feature_alone_learns_which_class_is_the_largest(name):
    y = np.array([0, 1, 1, 1, 1, 1, 1, 2])
    problem = Problem.check(np.zeros((8, 3)), y)
    step, model = trained(name, problem, bias=1.0, tol=1e-6, **settings(name))
    assert step.converged
    assert not linear_map(model).any()
    if name not in ("absolute_maximum", "absolute_total"):
        assert model.top(np.array([1], np.int32), np.array([2.0]))[0].tolist() == [1]


@pytest.mark.parametrize("kernel", [{"kernel": "rbf", "gamma": 0.3}, {"kernel": "poly", "degree": 2, "coef0": 1.0}])
@pytest.mark.parametrize("name", [name for name in FLAT if SOLVERS[name].handles.kernels])
def test_every_kernel_takes_the_square_of_the_constant(name, kernel):
    problem, fresh = small(n=60), small(n=20, seed=9).X
    D = problem.X.toarray(), fresh.toarray()
    gamma = kernel.setdefault("gamma", 0.5)

    def values(Z):
        if kernel["kernel"] == "poly":
            return (gamma * Z @ D[0].T + 1.0) ** 2
        return np.exp(-gamma * ((Z[:, None, :] - D[0][None, :, :]) ** 2).sum(axis=2))

    step, model = trained(name, problem, bias=1.5, tol=1e-6, **kernel)
    given = values(D[0])
    for matrix, later, bias in ((given, values(D[1]), 1.5), (given + 2.25, values(D[1]) + 2.25, 0.0)):
        K = Problem.check(matrix, problem.y)
        other, precomputed = trained(name, K, bias=bias, tol=1e-6, kernel="precomputed")
        assert other.primal == pytest.approx(step.primal, rel=1e-5)
        np.testing.assert_allclose(model.scores(fresh), precomputed.scores(sp.csr_matrix(later)), atol=2e-2)
    assert model.report["radius"] == pytest.approx(np.sqrt(values(D[0]).diagonal().max() + 2.25))


@pytest.mark.parametrize(
    ("name", "params", "number", "k", "weights"),
    [
        ("crammer_singer", {}, 4, 4, {0: 0.5, 2: 3.0}),
        ("one_vs_rest", {}, 3, 4, {}),
        ("one_vs_rest", {"loss": "squared_hinge"}, 1, 4, {}),
        ("one_vs_rest", {}, 3, 2, {0: 0.5, 1: 3.0}),
        ("one_vs_rest", {"loss": "squared_hinge"}, 1, 2, {0: 0.5, 1: 3.0}),
    ],
)
def test_constant_and_weights_are_those_of_liblinear(name, params, number, k, weights):
    liblinear = pytest.importorskip("liblinear.liblinearutil", reason="LIBLINEAR is installed for benchmarks only")
    problem = small(n=60, k=k)
    chosen = "".join(f" -w{label} {weight}" for label, weight in weights.items())
    peer = liblinear.train(problem.y.astype(float), problem.X, f"-s {number} -c 0.1 -e 1e-9 -B 2 -q{chosen}")
    named = {str(label): weight for label, weight in weights.items()}
    _, model = trained(
        name, problem, C=0.1, bias=2.0, class_weight=named or None, tol=1e-9, max_epochs=100_000, **params
    )
    for at, label in enumerate(peer.get_labels()):
        w, b = peer.get_decfun(at)
        np.testing.assert_allclose(model.coef[label], w[: problem.n_features], atol=1e-4)
        assert model.intercept[label] == pytest.approx(b, abs=1e-4)


def margins(name: str, F: np.ndarray, y: np.ndarray) -> np.ndarray:
    """By how much each loss of each example is violated; nan where there is none."""
    k = F.shape[1]
    own, E = F[np.arange(len(y)), y][:, None], np.eye(k, dtype=bool)[y]
    if name.endswith("weston_watkins"):
        return np.where(E, np.nan, 1 - own + F)
    asked = {"maximum_margin_regression": (1, np.nan), "reinforced": (k - 1, 1)}
    mine, other = asked.get(name, (1, 1) if name in ("absolute_sum", "one_vs_rest") else (np.nan, 1))
    return np.where(E, mine - F, other + F)


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("weston_watkins", {}),
        ("one_vs_rest", {}),
        *[(name, {"algorithm": how}) for name in FLAT for how in ("ascent", "interior") if name in SUMMED],
        ("kernel_weston_watkins", {"kernel": "linear"}),
        ("kernel_lee_lin_wahba", {"kernel": "linear"}),
    ],
)
def test_a_report_counts_the_dual_variables_of_the_margins_that_are_not_kept(name, extra):
    X = np.vstack([small(n=60).X.toarray(), np.zeros((2, 12))])
    problem = Problem.check(X, np.append(small(n=60).y, [0, 1]))
    _, model = trained(name, problem, C=0.3, bias=0.0, tol=1e-9, max_epochs=100_000, **extra)
    rows = slice(None) if name.startswith("kernel") else slice(60)
    violated = margins(name, model.scores(problem.X)[rows], problem.y[rows])
    there = np.count_nonzero(~np.isnan(violated))
    least, most = np.nansum(violated > 1e-4) / there, np.nansum(violated > -1e-4) / there
    assert 0.05 < least <= model.report["nonzero_duals"] <= most < 1.0


@pytest.mark.parametrize("name", LINEAR)
def test_a_report_counts_the_weights_of_all_features_but_the_constant(name):
    base = small(n=60, density=0.1)
    problem = Problem.check(np.hstack([base.X.toarray(), np.zeros((60, 8))]), base.y)
    _, model = trained(name, problem, C=0.1, bias=1.0, tol=1e-4)
    assert model.report["nonzero_weights"] == np.count_nonzero(linear_map(model)) / (5 * 20)
    assert 0 <= model.report["nonzero_weights"] <= 0.6


@everywhere
def test_a_report_is_of_shares_and_is_saved_with_the_model(name, tmp_path):
    _, model = trained(name, small(n=60), **settings(name))
    assert 0 < model.report["nonzero_duals"] <= 1
    model.save(tmp_path / "m")
    assert load_model(tmp_path / "m")[0].report == model.report


@pytest.mark.parametrize("name", LINEAR)
def test_a_problem_without_any_feature_has_nothing_to_count(name):
    _, model = trained(name, Problem.check(np.zeros((6, 2)), [0, 1, 2] * 2))
    assert model.report == {"nonzero_weights": 0.0, "nonzero_duals": 0.0}


@pytest.mark.parametrize(("n", "d"), [(3000, 200), (600, 3000)])
def test_one_vs_rest_needs_what_it_has_estimated_within_a_tenth(n, d):
    trained("one_vs_rest", small(n=60))  # compiled now, not while memory is watched
    X = sp.random(n, d, density=4 / d, random_state=np.random.default_rng(0), format="csr")
    problem, method = Problem.check(X, np.arange(n) % 600), machine("one_vs_rest", max_epochs=2)
    n_used = int(np.count_nonzero(np.bincount(problem.X.indices)))
    tracemalloc.start()
    try:
        *_, last = method.steps(problem)
        method.model(problem, last.state)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert method.bytes_needed(n, n_used, 600) == pytest.approx(peak, rel=0.1)


@pytest.mark.parametrize("name", ["weston_watkins", "crammer_singer"])
def test_lists_of_dual_variables_that_outgrow_the_memory_allowed_are_told_with_an_estimate(name):
    # orthogonal examples violate the margins of all other classes alike, so that no list stays short
    n = 1200
    method = machine(name, tol=1e-6, memory_mb=16)
    with pytest.raises(TooLargeError, match=r"dual variables of 1,200 x 1,200 so far, .* at least \d+ MB; .* 16 MB"):
        list(method.steps(Problem.check(sp.identity(n, format="csr"), np.arange(n))))


@everywhere
def test_without_a_limit_the_memory_of_the_machine_is_the_limit(name, monkeypatch):
    monkeypatch.setattr(memory, "machine_bytes", lambda: 1000)
    with pytest.raises(TooLargeError, match="this machine has 0 MB"):
        machine(name).steps(small(n=60))


def test_a_machine_has_the_memory_of_its_container_where_that_is_less(tmp_path, monkeypatch):
    (tmp_path / "memory.max").write_text("1048576\n")
    (tmp_path / "unlimited").write_text("max\n")
    monkeypatch.setattr(memory, "_GROUPS", (str(tmp_path / "memory.max"), str(tmp_path / "no")))
    memory.machine_bytes.cache_clear()
    assert memory.machine_bytes() == 1 << 20
    monkeypatch.setattr(memory, "_GROUPS", (str(tmp_path / "unlimited"),))
    memory.machine_bytes.cache_clear()
    assert memory.machine_bytes() > 1 << 24
    memory.machine_bytes.cache_clear()


@pytest.mark.parametrize("name", sorted({*FLAT} - {"one_vs_rest"}))  # it counts all that it takes; see its own test
def test_the_memory_that_is_estimated_is_that_of_weights_and_dual_variables(name):
    problem = small(n=300, d=64, k=70, density=0.1)
    params = {"algorithm": "ascent"} if name in SUMMED else {}
    method = machine(name, **params) if name in LINEAR else machine(name, kernel="linear", cache_mb=1)
    state = next(iter(method.steps(problem))).state
    counted = ("W", "beta", "dual_start", "dual_length", "dual_capacity", "F", "alpha")
    held = sum(state[key].nbytes for key in counted if key in state)
    if issubclass(SOLVERS[name], SumToZero):
        held += state["dual_values"].nbytes
    if name not in LINEAR:
        held += 8 * 300 * 300
    assert method.bytes_needed(300, 64, 70) == pytest.approx(held, rel=0.05)
