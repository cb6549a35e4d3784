"""Kernel machines: their optimum, their Gram matrix, their working sets and their models."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from problems import optimum, small
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC
from training import machine, trained

import solvers.kernel_svm.kernel_machine
from solvers.core.problem import Problem, ProblemError
from solvers.core.stored_models import ModelError, load_model
from solvers.estimator import PolymarginClassifier
from solvers.kernel_svm.gram import Gram
from solvers.kernel_svm.kernel_function import KernelFunction, scale_of
from solvers.kernel_svm.working_set import (
    BlockRule,
    Training,
    check_conditions,
    local_problem,
    solve_local,
    update_scores,
)
from solvers.kernel_svm.working_set_loop import LoopSettings, list_worst
from solvers.registry import SOLVERS

METHODS = [name for name in SOLVERS if SOLVERS[name].handles.kernels and SOLVERS[name].handles.flat]
KERNELS = {
    "linear": {},
    "poly": {"degree": 2, "gamma": 0.5, "coef0": 1.0},
    "rbf": {"gamma": 0.3},
}


def values(kernel, A, B=None):
    """Kernel values as scikit-learn has them."""
    names = {"linear": "linear", "poly": "polynomial", "rbf": "rbf"}
    return pairwise_kernels(A, B, metric=names[kernel], **KERNELS[kernel])


def gram(problem, kernel="rbf", **sizes):
    sizes = {"cache_bytes": 1 << 20, "at_least": 1} | sizes
    return Gram(problem.X, KernelFunction(kernel, **KERNELS[kernel]), **sizes)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("given", [False, True])
def test_the_optimum_is_that_of_a_linear_machine_on_the_kernels_own_features(name, kernel, given):
    problem = small(n=40)
    K = values(kernel, problem.X.toarray())
    eigenvalues, vectors = np.linalg.eigh(K)
    mapped = Problem.check(vectors * np.sqrt(np.maximum(eigenvalues, 0)), problem.y)
    value, W = optimum(name, mapped, 2.0)
    if given:
        step, model = trained(name, Problem.check(K, problem.y), C=2.0, tol=1e-7, kernel="precomputed")
        scores = model.scores(sp.csr_matrix(K))
    else:
        step, model = trained(name, problem, C=2.0, tol=1e-7, kernel=kernel, **KERNELS[kernel])
        scores = model.scores(problem.X)
    assert step.converged
    assert step.dual <= value * (1 + 1e-8)
    assert step.primal == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(scores, mapped.X @ W.T, atol=5e-3)


@pytest.mark.parametrize(
    ("name", "linear"),
    [
        ("spoc", "crammer_singer"),
        ("kernel_weston_watkins", "weston_watkins"),
        ("kernel_lee_lin_wahba", "lee_lin_wahba"),
    ],
)
def test_with_the_linear_kernel_the_objective_is_that_of_the_linear_method(name, linear):
    problem = small(n=60, k=6)
    step, model = trained(name, problem, kernel="linear", tol=1e-6)
    peer, flat = trained(linear, problem, dtype="float64", tol=1e-6, max_epochs=100_000)
    assert peer.converged
    assert step.primal == pytest.approx(peer.primal, rel=2e-6)
    np.testing.assert_allclose(model.scores(problem.X), flat.scores(problem.X), atol=1e-2)


@pytest.mark.parametrize("name", METHODS)
def test_digits_are_learned_as_well_as_by_svc(name):
    X, y = load_digits(return_X_y=True)
    X, train_rows, test_rows = X / 16, np.arange(0, 600), np.arange(600, 1797)
    # the sum-to-zero machine with absolute margins asks for a larger C than the others
    C = 100.0 if name == "kernel_lee_lin_wahba" else 10.0
    peer = SVC(C=10.0, gamma="scale").fit(X[train_rows], y[train_rows]).score(X[test_rows], y[test_rows])
    ours = PolymarginClassifier(name, C=C, gamma="scale").fit(X[train_rows], y[train_rows])
    assert abs(ours.score(X[test_rows], y[test_rows]) - peer) <= 0.01


@pytest.mark.parametrize("name", METHODS)
def test_the_scores_kept_in_training_are_those_of_the_model(name):
    problem = small(n=150)
    last, model = trained(name, problem, C=5.0)
    np.testing.assert_allclose(model.scores(problem.X), last.state["F"].T, atol=1e-10)
    np.testing.assert_allclose(model.coefficients.sum(axis=1), 0, atol=1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_the_size_of_the_cache_changes_no_bit(name, monkeypatch):
    monkeypatch.setattr(solvers.kernel_svm.kernel_machine, "WORKING_SET", 8)
    problem = small(n=400)
    computed = []
    keep = Gram.columns

    def counting(self, picks):
        slots = keep(self, picks)
        computed.append((len(self.store), self.computed))
        return slots

    monkeypatch.setattr(Gram, "columns", counting)
    (wide, _), (narrow, _) = (trained(name, problem, C=3.0, cache_mb=cache) for cache in (512, 1))
    assert {slots for slots, _ in computed} == {400, 327}
    assert max(count for slots, count in computed if slots == 400) <= 400
    for key, array in wide.state.items():
        np.testing.assert_array_equal(narrow.state[key], array, err_msg=key)


def test_a_resumed_run_does_not_need_the_cache_of_the_interrupted_one(monkeypatch):
    monkeypatch.setattr(solvers.kernel_svm.kernel_machine, "SLICE_PRODUCTS", 1)
    problem = small(n=300)
    method = machine("spoc")
    states = [{key: np.array(value) for key, value in step.state.items()} for step in method.steps(problem)]
    assert len(states) > 10
    *_, last = method.steps(problem, states[5])
    for key, array in states[-1].items():
        np.testing.assert_array_equal(last.state[key], array)


def test_a_resumed_run_ends_at_the_limit_with_a_certificate_and_has_no_further_step(monkeypatch):
    monkeypatch.setattr(solvers.kernel_svm.kernel_machine, "SLICE_PRODUCTS", 1)
    problem = small(n=200)
    method = machine("spoc", max_epochs=2, tol=1e-9)
    states = [{key: np.array(value) for key, value in step.state.items()} for step in method.steps(problem)]
    *_, last = method.steps(problem, states[1])
    assert (last.epoch, last.converged) == (2, False)
    assert 0 < last.gap < 1
    assert list(method.steps(problem, last.state)) == []


@pytest.mark.parametrize("kernel", KERNELS)
def test_columns_are_the_kernels_values_whatever_was_evicted(kernel):
    problem = small(n=60, d=20)
    K, few = values(kernel, problem.X.toarray()), gram(problem, kernel, cache_bytes=10 * 60 * 8)
    assert few.store.shape == (10, 60)
    np.testing.assert_allclose(few.diagonal, np.diag(K))
    rng = np.random.default_rng(0)
    for _ in range(50):
        picks = rng.choice(60, rng.integers(1, 11), replace=False)
        np.testing.assert_allclose(few.store[few.columns(picks)], K[picks], rtol=1e-12, atol=1e-12)
    assert few.computed > 60


def test_the_columns_asked_for_longest_ago_make_room():
    few = gram(small(n=60), cache_bytes=3 * 60 * 8)
    for picks, computed in (([0, 1, 2], 3), ([0, 2], 3), ([3], 4), ([0, 2], 4), ([1], 5), ([0], 5), ([3], 6)):
        few.columns(np.array(picks))
        assert few.computed == computed


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_column_has_the_same_bits_in_any_company(kernel):
    problem = small(n=70, d=30)
    together = gram(problem, kernel)
    all_of_them = together.store[together.columns(np.arange(70))]
    for i in (0, 3, 11, 69):
        alone = gram(problem, kernel)
        np.testing.assert_array_equal(alone.store[alone.columns(np.array([i]))][0], all_of_them[i])
    np.testing.assert_array_equal(all_of_them, all_of_them.T)


def test_gamma_scale_is_that_of_scikit_learn():
    X = small().X
    peer = SVC(gamma="scale").fit(X, np.arange(X.shape[0]) % 2)
    assert scale_of(X) == pytest.approx(peer._gamma)
    assert scale_of(sp.csr_matrix(np.ones((3, 2)))) == 1.0


def test_the_violation_of_spoc_is_that_of_its_paper():
    rng = np.random.default_rng(0)
    n, k, C = 700, 5, 2.0
    F, y = rng.standard_normal((k, n)), rng.integers(0, k, n).astype(np.int32)
    alpha = rng.dirichlet(np.ones(k), n).T * rng.choice([0.0, 0.7, 1.0], (k, n)) * C
    alpha[y, np.arange(n)] = 0
    alpha[:, :200] *= C / np.maximum(alpha[:, :200].sum(axis=0), 1e-9)
    violations = np.zeros(n)
    losses, total, held = check_conditions(
        BlockRule(1.0, 1.0, True), Training(y, np.full(n, C), np.ones(n)), F, alpha, violations
    )
    own = np.eye(k)[y].T
    tau = own * alpha.sum(axis=0) / C - alpha / C
    gradient = F + 1 - own
    least = np.where(tau < own - 1e-9, gradient, np.inf).min(axis=0)
    np.testing.assert_allclose(violations, np.maximum(gradient.max(axis=0) - least, 0), atol=1e-9)
    g = gradient - F[y, np.arange(n)]
    assert losses == pytest.approx(C * np.maximum(g.max(axis=0), 0).sum())
    assert (total, held) == pytest.approx((alpha.sum(), (alpha * g).sum()))


@pytest.mark.parametrize("size", [1, 4, 30, 200])
def test_the_worst_are_listed_by_what_a_step_gains_and_equals_by_number(size):
    rng = np.random.default_rng(0)
    violations, diagonal = rng.integers(0, 6, 120) / 2.0, rng.choice([0.0, 1.0, 2.0], 120, p=[0.1, 0.5, 0.4])
    gains = np.divide(violations**2, diagonal, out=np.full(120, np.inf), where=diagonal > 0)
    expected = [i for i in np.argsort(-gains, kind="stable") if violations[i] > 0][:size]
    listed = np.zeros(200, np.int64)
    rules = LoopSettings(size, 120, 0.3, 10, 1, 1, 1e-3, 1, 1)
    found = list_worst(violations, diagonal, rules, listed)
    assert listed[:found].tolist() == expected


def test_many_small_steps_are_one_certificate(monkeypatch):
    problem = small(n=20)
    gaps = {}
    for every in (1, 1000):
        monkeypatch.setattr(solvers.kernel_svm.kernel_machine, "REPORT_EVERY", every)
        steps = list(machine("spoc", kernel="linear", tol=1e-8).steps(problem))
        gaps[every] = [step.gap for step in steps]
    assert len(gaps[1000]) < len(gaps[1])
    assert gaps[1000][-1] == gaps[1][-1] <= 1e-8


@pytest.mark.parametrize(
    "machine", [BlockRule(1.0, 1.0, True), BlockRule(1.0, 1.0, False), BlockRule(0.0, -0.2, False)]
)
def test_block_steps_in_a_working_set_raise_the_dual_and_spread_to_all_scores(machine):
    problem = small(n=90)
    columns, n, k = gram(problem), 90, 5
    K = values("rbf", problem.X.toarray())
    training = Training(problem.y, np.full(n, 1.5), columns.diagonal)
    F, alpha, violations = np.zeros((k, n)), np.zeros((k, n)), np.zeros(n)
    rng, dual, made = np.random.default_rng(0), 0.0, []
    for _ in range(30):
        picks = rng.choice(n, 7, replace=False)
        slots = columns.columns(picks)
        local = local_problem(picks, slots, columns.store, F, alpha)
        made.append(solve_local(machine, training, local, 5, 0.1))
        update_scores(local, slots, columns.store, F, alpha)
        v = -alpha + (alpha.sum(axis=0) / k if machine.own == 0 else alpha.sum(axis=0) * np.eye(k)[problem.y].T)
        np.testing.assert_allclose(F, v @ K, atol=1e-10)
        _, total, held = check_conditions(machine, training, F, alpha, violations)
        before, dual = dual, total - 0.5 * (total - held)
        assert dual >= before - 1e-12
        assert dual == pytest.approx(alpha.sum() - 0.5 * np.sum(v * F))
        assert alpha.min() >= 0
        assert (alpha.sum(axis=0) if machine.largest else alpha).max() <= 1.5 * (1 + 1e-12)
    assert made[0] == max(made) == 5


def test_examples_without_a_length_take_their_bound_and_leave_the_others_alone():
    base = small(n=30)
    X = sp.vstack([base.X, sp.csr_matrix((4, base.n_features))])
    problem = Problem.check(X, np.concatenate([base.y, [0, 1, 2, 3]]))
    for name, loss in (("spoc", 1.0), ("kernel_weston_watkins", 4.0), ("kernel_lee_lin_wahba", 4.0)):
        with_empty, model = trained(name, problem, kernel="linear", tol=1e-7)
        without, _ = trained(name, base, kernel="linear", tol=1e-7)
        assert with_empty.converged
        assert with_empty.primal == pytest.approx(without.primal + 4 * loss, rel=1e-6)
        assert model.n_support <= 30


@pytest.mark.parametrize("kernel", [*KERNELS, "precomputed"])
def test_a_saved_model_is_found_and_scores_the_same_bits(kernel, tmp_path):
    problem = small()
    if kernel == "precomputed":
        problem = Problem.check(values("rbf", problem.X.toarray()), problem.y)
    _, model = trained("spoc", problem, kernel=kernel, **KERNELS.get(kernel, {}))
    model.save(tmp_path / "m", {"gap": 0.5})
    for mmap in (True, False):
        loaded, details = load_model(tmp_path / "m", mmap=mmap, verify=True)
        assert type(loaded) is type(model)
        assert (loaded.function, loaded.report, details) == (model.function, model.report, {"gap": 0.5})
        np.testing.assert_array_equal(loaded.scores(problem.X), model.scores(problem.X))
        np.testing.assert_array_equal(loaded.predict(problem.X, chunk_bytes=200), model.predict(problem.X))
    row = problem.X[4]
    np.testing.assert_allclose(loaded.score_one(row.indices, row.data), model.scores(row)[0], rtol=1e-12)
    assert loaded.score_one(np.array([], np.int32), np.array([])).shape == (5,)


def test_a_program_that_knows_only_load_model_reads_every_kind(tmp_path):
    _, model = trained("spoc", small(), tol=0.1)
    model.save(tmp_path / "m")
    code = "from pathlib import Path; from solvers.core.stored_models import load_model; load_model(Path({!r}))"
    subprocess.run([sys.executable, "-c", code.format(str(tmp_path / "m"))], check=True)
    manifest = tmp_path / "m" / "manifest.json"
    for strange in ("../kernel", "no_such", ""):
        manifest.write_text(manifest.read_text().replace('"kind": "kernel"', f'"kind": "{strange}"'))
        with pytest.raises(ModelError, match="another version"):
            load_model(tmp_path / "m")


def test_scores_do_not_depend_on_the_chunk_and_unseen_features_matter_to_the_radial_kernel(monkeypatch):
    X = np.hstack([small().X.toarray(), np.zeros((50, 1))])
    last, model = trained("spoc", Problem.check(X, small().y), gamma=0.3)
    other = small(seed=1, d=13, density=0.9).X
    whole = model.scores(other)
    monkeypatch.setattr("solvers.kernel_svm.kernel_model.CHUNK_BYTES", 2000)
    np.testing.assert_allclose(model.scores(other), whole, rtol=1e-12)
    support = last.state["alpha"].any(axis=0)
    np.testing.assert_allclose(whole, values("rbf", other.toarray(), X[support]) @ model.coefficients, atol=1e-10)
    np.testing.assert_allclose([model.score_one(row.indices, row.data) for row in other], whole, atol=1e-10)
    with pytest.raises(ValueError, match="12 features; the model has 13"):
        model.scores(other[:, :12])


@pytest.mark.parametrize(
    ("matrix", "complaint"),
    [
        (np.ones((4, 3)), r"shape \(4, 3\)"),
        (np.array([[2.0, 1, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [0, 0, 0, 2]]), "symmetric"),
        (np.diag([1.0, -1.0, 1.0, 1.0]), "must be at least 0; it has -1"),
        (np.eye(4) + 5 * (1 - np.eye(4)), "not positive semidefinite"),
    ],
)
def test_what_cannot_be_a_gram_matrix_is_refused(matrix, complaint):
    with pytest.raises(ProblemError, match=complaint):
        trained("spoc", Problem.check(matrix, [0, 0, 1, 1]), kernel="precomputed")
