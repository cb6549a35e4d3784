"""Machines over a label tree: their optima, objectives, couplings and what is done with the tree."""

import numpy as np
import pytest
from problems import TREES, check_path, coupling_of, small, small_tree, tree_optimum, tree_pairs, with_tree
from training import machine, trained

import solvers.hierarchical.epochs
from solvers.core.base import ParamsError
from solvers.core.memory import TooLargeError
from solvers.core.problem import Problem, ProblemError
from solvers.hierarchical.drivers.dual_averaging import DualAveraging
from solvers.hierarchical.hinges.ascent import HingeAscent
from solvers.hierarchical.hinges.steps import VISITED, Progress, Visits
from solvers.labels import coupling, tree_factor
from solvers.labels.taxonomy import Taxonomy, TaxonomyError
from solvers.numerics import scaling_search

everywhere = pytest.mark.parametrize("name", TREES)


def primal(name, problem, W, C=1.0, alpha=0.5):
    """The objective of W (n_nodes, d), from its definition."""
    tree, nodes = problem.taxonomy, problem.nodes().tolist()
    if name == "orthogonal_transfer":
        value = 0.5 * (coupling_of(tree, alpha) * np.abs(W @ W.T)).sum()
    else:
        norm, _ = TREES[name]
        (form,) = norm(W, tree, None)[0]
        value = form.value
    F = problem.X @ W.T
    for k, y in enumerate(nodes):
        for pairs in tree_pairs(TREES[name][1], tree, y, nodes):
            worst = max([0.0] + [scale * (1 - F[k, i] + F[k, j]) for i, j, scale in pairs])
            value += C * problem.weights[k] * worst
    return value


@everywhere
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_the_bounds_enclose_the_optimum_and_meet_there(name, C):
    plain = with_tree(small(n=30, d=8))
    weights = np.random.default_rng(1).uniform(0.3, 2.0, 30)
    problem = Problem.check(plain.X, plain.y, plain.classes, weights, plain.taxonomy)
    value, W = tree_optimum(name, problem, C)
    step, model = trained(name, problem, C=C, tol=1e-7, max_epochs=20_000)
    assert step.converged
    assert step.dual <= value * (1 + 1e-7)
    assert step.primal >= value * (1 - 1e-7)
    np.testing.assert_allclose(model.coef, W, atol=5e-3 * np.abs(W).max())
    assert primal(name, problem, model.coef, C) == pytest.approx(step.primal, rel=1e-9)


@pytest.mark.parametrize(
    "dense", [pytest.param(True, id="dense"), pytest.param(False, id="sparse", marks=pytest.mark.slow)]
)
@everywhere
def test_a_certificate_is_of_the_best_multiple_of_the_weights_and_the_model_has_it(name, dense):
    plain = with_tree(small(n=30, d=24))
    X = plain.X.toarray() * (1.0 if dense else np.random.default_rng(3).uniform(size=plain.X.shape) < 0.2)
    problem = Problem.check(X, plain.y, plain.classes, None, plain.taxonomy)
    value, _ = tree_optimum(name, problem, 1.0)
    step, model = trained(name, problem, tol=1e-12, max_epochs=2)
    assert step.dual <= value * (1 + 1e-7) <= step.primal * (1 + 2e-7)
    W = model.coef
    assert primal(name, problem, W) == pytest.approx(step.primal, rel=1e-9)
    others = [primal(name, problem, s * W) for s in (0.98, 1.02)]
    assert min(others[1:]) >= step.primal * (1 - 1e-9)
    # multiples below 1 are not looked at
    scale = np.asarray(step.state["scale"]).ravel()[0]
    assert scale >= 1.0
    assert others[0] >= step.primal * (1 - 1e-9) or scale == 1.0


def test_most_pairs_are_orthogonal_at_the_optimum_and_their_signs_inside_their_bounds():
    problem = with_tree(small(n=60, k=12, d=30))
    step, model = trained("orthogonal_transfer", problem, tol=1e-8, max_epochs=20_000)
    tree, S = problem.taxonomy, step.state["S"]
    inner = np.setdiff1d(np.arange(len(S)), coupling.diagonal(tree))
    G = model.coef @ model.coef.T
    owner = np.repeat(np.arange(tree.n_nodes), tree.level)
    lengths = np.sqrt(np.diag(G))
    cosines = np.abs(G[owner, tree.path_nodes]) / np.maximum(lengths[owner] * lengths[tree.path_nodes], 1e-300)
    free = inner[(np.abs(S[inner]) < 1 - 1e-6) & (lengths[owner[inner]] > 1e-6)]
    assert len(free) > 0.5 * len(inner)
    assert cosines[free].max() < 1e-3


@pytest.mark.slow
def test_dual_averaging_meets_the_dual_ascent_from_both_sides():
    problem = with_tree(small(n=30, d=8))
    exact, _ = trained("orthogonal_transfer", problem, tol=1e-8, C=0.3, max_epochs=20_000)
    made = machine("orthogonal_transfer", algorithm="rda", tol=5e-3, C=0.3, max_epochs=3000)
    steps = [(s.primal, s.dual, {k: np.array(v) for k, v in s.state.items()}) for s in made.steps(problem)]
    uppers, lowers = np.array([s[0] for s in steps]), np.array([s[1] for s in steps])
    assert (np.diff(uppers) <= 0).all()
    assert (np.diff(lowers) >= 0).all()
    assert lowers[-1] <= exact.primal
    assert uppers[-1] >= exact.dual
    assert 0 <= uppers[-1] - lowers[-1] <= 0.1 * uppers[-1]
    model = made.model(problem, steps[-1][2])
    assert primal("orthogonal_transfer", problem, model.coef, 0.3) == pytest.approx(uppers[-1], rel=1e-9)
    *_, resumed = made.steps(problem, steps[10][2])
    for key, value in steps[-1][2].items():
        np.testing.assert_array_equal(resumed.state[key], value)


@pytest.mark.slow
def test_the_first_bounds_of_dual_averaging_are_those_of_zero_weights():
    problem = with_tree(small(n=30, d=8))
    first = next(machine("orthogonal_transfer", algorithm="rda", max_epochs=1).steps(problem))
    zero = primal("orthogonal_transfer", problem, np.zeros((problem.taxonomy.n_nodes, 8)))
    assert first.primal <= zero
    assert first.dual >= 0


@pytest.mark.slow
def test_the_subgradient_is_the_slope_wherever_there_is_one():
    problem = with_tree(small(n=30, d=8))
    made = machine("orthogonal_transfer", algorithm="rda", C=0.7)
    prepared = made.prepared(problem)
    driver = DualAveraging(made.design(prepared), prepared, 0.7)
    rng = np.random.default_rng(0)
    W = rng.standard_normal(driver.shape)
    value, G = driver.objective(W)
    for _ in range(30):
        D = rng.standard_normal(W.shape)
        slope = (driver.objective(W + 1e-6 * D)[0] - driver.objective(W - 1e-6 * D)[0]) / 2e-6
        assert np.vdot(G, D) == pytest.approx(slope, rel=1e-5, abs=1e-4)
        # and it bounds the objective from below everywhere
        assert driver.objective(W + D)[0] >= value + np.vdot(G, D)
    assert driver.objective(np.zeros(W.shape))[0] == pytest.approx(primal("orthogonal_transfer", problem, W.T * 0, 0.7))


def dense(tree, K):
    full = np.zeros((tree.n_nodes, tree.n_nodes))
    for i in range(tree.n_nodes):
        for p in range(tree.path_start[i], tree.path_start[i + 1]):
            full[i, tree.path_nodes[p]] = full[tree.path_nodes[p], i] = K[p]
    return full


@pytest.mark.parametrize("seed", range(4))
def test_factors_and_eigenvalues_are_those_of_the_dense_matrix(seed):
    rng = np.random.default_rng(seed)
    m = 25
    tree = Taxonomy.from_parents([str(i) for i in range(m)], [-1] + [int(rng.integers(-1, i)) for i in range(1, m)])
    K = coupling.by_size(tree, 1.0) * rng.uniform(0.2, 1.0, len(tree.path_nodes))
    compared = coupling.comparison(tree, K)
    least = np.linalg.eigvalsh(dense(tree, compared))[0]
    assert coupling.smallest_eigenvalue(tree, compared) == pytest.approx(least, abs=1e-10)
    K = coupling.convex(tree, K, "scale")
    B = np.empty(len(K))
    assert tree_factor.factor(tree.arrays, K, 0.0, B)
    full = np.zeros((m, m))
    full[np.repeat(np.arange(m), tree.level), tree.path_nodes] = B
    np.testing.assert_allclose(full @ full.T, np.linalg.inv(dense(tree, K)), atol=1e-12)
    V = rng.standard_normal((4, m))
    R, W, G = V.copy(), np.empty((4, m)), np.empty(len(K))
    tree_factor.times_factor(tree.arrays, B, R)
    np.testing.assert_allclose(R, V @ full, atol=1e-12)
    tree_factor.to_weights(tree.arrays, B, R, W)
    np.testing.assert_allclose(W, V @ np.linalg.inv(dense(tree, K)), atol=1e-12)
    tree_factor.inner_products(tree.arrays, B, R, G)
    np.testing.assert_allclose(G, (W.T @ W)[np.repeat(np.arange(m), tree.level), tree.path_nodes], atol=1e-12)


def test_a_coupling_that_is_not_convex_is_refused_with_its_eigenvalue_or_repaired():
    problem = with_tree(small(k=12))
    tree = problem.taxonomy
    least = np.linalg.eigvalsh(2 * np.diag(np.diag(coupling_of(tree, 1.0))) - coupling_of(tree, 1.0))[0]
    assert least < 0
    with pytest.raises(ProblemError, match=f"smallest eigenvalue of the comparison matrix of K is {least:.4g}"):
        next(machine("orthogonal_transfer", alpha=1.0).steps(problem))
    given = coupling.by_size(tree, 1.0)
    own = coupling.diagonal(tree)
    for repair in ("scale", "raise"):
        K = coupling.convex(tree, given, repair)
        assert coupling.smallest_eigenvalue(tree, coupling.comparison(tree, K)) == pytest.approx(0.1, rel=1e-6)
        off = np.setdiff1d(np.arange(len(K)), own)
        assert len(np.unique(np.round(K[off], 12))) == 1
        assert len(np.unique(np.round(K[own] - given[own], 12))) == 1
        last, _ = trained("orthogonal_transfer", problem, alpha=1.0, repair=repair, tol=1e-3)
        assert last.converged
    assert coupling.convex(tree, coupling.by_size(tree, 0.1), "scale") is not None
    fine = coupling.by_size(tree, 0.1)
    np.testing.assert_array_equal(coupling.convex(tree, fine, "scale"), fine)


def test_entries_of_the_coupling_can_be_given():
    tree = small_tree(["x", "y", "z"])
    plain = coupling.by_size(tree, 0.5)
    K = coupling.with_entries(tree, plain, [("a", "z", 0.25), ("y", "y", 7.0)])
    assert dense(tree, K)[tree.find(["a"])[0], tree.find(["z"])[0]] == 0.25
    assert dense(tree, K)[tree.find(["y"])[0], tree.find(["y"])[0]] == 7.0
    assert np.count_nonzero(plain != K) == 2
    for entries, message in (
        ([("x", "y", 1.0)], "is an ancestor of the other"),
        ([("a", "z", -1.0)], "positive"),
        ([("a", "a", 0.0)], "positive"),
        ([("a", "z", 1.0), ("z", "a", 1.0)], "given twice"),
    ):
        with pytest.raises(coupling.CouplingError, match=message):
            coupling.with_entries(tree, plain, entries)
    with pytest.raises(TaxonomyError, match="'q'"):
        coupling.with_entries(tree, plain, [("a", "q", 1.0)])
    problem = Problem.check(np.eye(3), [0, 1, 2], ["x", "y", "z"], taxonomy=tree)
    with pytest.raises(ProblemError, match="'q'"):
        next(machine("orthogonal_transfer", K=[("a", "q", 1.0)]).steps(problem))
    with pytest.raises(ParamsError, match="K"):
        machine("orthogonal_transfer", K=[("a", "q")])


@everywhere
def test_a_label_tree_is_asked_for(name):
    with pytest.raises(ProblemError, match="needs a label tree"):
        next(machine(name).steps(small()))


@everywhere
def test_weights_of_classes_and_a_constant_feature_are_part_of_the_objective(name):
    plain = with_tree(small(n=40, d=8))
    X = np.hstack([plain.X.toarray(), np.full((40, 1), 1.5)])
    times = np.array([1.0, 3.0, 0.5, 1.0, 1.0])[plain.y]
    direct = Problem.check(X, plain.y, plain.classes, times, plain.taxonomy)
    one, model = trained(name, plain, bias=1.5, class_weight={"1": 3.0, "2": 0.5}, tol=1e-3)
    two, other = trained(name, direct, tol=1e-3)
    assert (one.primal, one.dual) == (two.primal, two.dual)
    np.testing.assert_array_equal(model.coef, other.coef[:, :-1])
    np.testing.assert_array_equal(model.intercept, 1.5 * other.coef[:, -1])
    np.testing.assert_array_equal(model.predict(plain.X), other.predict(direct.X))


@everywhere
def test_a_path_in_c_has_true_bounds_and_takes_fewer_epochs_than_alone(name):
    problem = with_tree(small(n=150, d=20, k=8))
    on_the_path, alone = check_path(machine(name, tol=1e-2), problem, [0.03, 0.1, 0.3, 1.0])
    assert on_the_path < alone


@everywhere
def test_scoring_the_groups_along_the_path_gives_what_scoring_all_nodes_gives(name, monkeypatch):
    rng = np.random.default_rng(0)
    names = [f"{a}.{b}.{c}" for a in range(6) for b in range(4) for c in range(4)]
    edges = {("root", n.split(".")[0]) for n in names} | {(n.split(".")[0], n[:3]) for n in names}
    tree = Taxonomy.from_edges(sorted(edges) + [(n[:3], n) for n in names])
    y = np.concatenate([np.arange(96), rng.integers(0, 96, 100)])
    problem = Problem.check(rng.standard_normal((196, 30)), y, names, taxonomy=tree)
    last, model = trained(name, problem, tol=1e-5, max_epochs=5000)
    assert last.converged
    assert primal(name, problem, model.coef) == pytest.approx(last.primal, rel=1e-9)


@everywhere
def test_groups_without_a_choice_cost_nothing(name):
    tree = Taxonomy.from_edges([("root", "a"), ("a", "x"), ("x", "y"), ("root", "b")])
    problem = Problem.check(np.eye(4), [0, 1, 2, 1], ["a", "b", "y"], taxonomy=tree)
    last, model = trained(name, problem, tol=1e-6)
    assert last.converged
    if name in ("orthogonal_transfer", "transfer", "hierarchical_multiclass"):
        assert [problem.taxonomy.names[i] for i in model.predict(problem.X)] == ["y", "b", "y", "b"]


@everywhere
def test_weights_of_all_nodes_that_exceed_the_memory_are_refused(name):
    edges = [("root", "a"), ("root", "b"), *(("a", f"leaf {i}") for i in range(3000))]
    problem = Problem.check(np.eye(50), np.arange(50) % 2, ["b", "leaf 7"], taxonomy=Taxonomy.from_edges(edges))
    with pytest.raises(TooLargeError, match=r"3,002 classes needs at least [13] MB; memory_mb allows 1 MB"):
        machine(name, memory_mb=1).steps(problem)


@everywhere
def test_the_share_of_dual_variables_is_told(name):
    _, model = trained(name, with_tree(small(n=40)), tol=1e-5)
    assert 0 < model.report["nonzero_duals"] <= 1
    assert 0 < model.report["nonzero_weights"] <= 1


def test_slices_do_not_change_what_is_learnt(monkeypatch):
    problem = with_tree(small(n=80))
    whole, _ = trained("orthogonal_transfer", problem)
    monkeypatch.setattr(solvers.hierarchical.epochs, "SLICE_OPERATIONS", 500)
    made = machine("orthogonal_transfer")
    steps = list(made.steps(problem))
    assert len(steps) > 2 * whole.epoch
    assert (steps[-1].primal, steps[-1].dual) == (whole.primal, whole.dual)


def test_outer_steps_end_at_the_optimum_and_are_taken_up_where_they_stood():
    problem = with_tree(small(n=60, d=8))
    made, cuts = machine("tree_loss", C=100.0, tol=1e-5, max_epochs=2000), []
    for last in made.steps(problem):
        if "V" in last.state and len(cuts) < 2:
            cuts.append({name: np.array(array) for name, array in last.state.items()})
    assert last.converged
    assert len(cuts) == 2
    W = made.model(problem, last.state).W.T
    assert primal("tree_loss", problem, W, C=100.0) == pytest.approx(last.primal, rel=1e-9)
    value, _ = tree_optimum("tree_loss", problem, 100.0)
    assert last.dual <= value * (1 + 1e-9)
    assert value * (1 - 1e-9) <= last.primal <= value * (1 + 1e-5)
    for cut in cuts:
        *_, again = made.steps(problem, cut)
        assert (again.epoch, again.primal, again.dual) == (last.epoch, last.primal, last.dual)
        for name in ("R", "V", "before", "mean"):
            np.testing.assert_array_equal(again.state[name], last.state[name])


def test_a_state_without_a_mean_goes_on_from_its_weights():
    problem = with_tree(small(n=60, d=8))
    made = machine("tree_loss", tol=1e-5)
    state = {name: np.array(array) for name, array in next(iter(made.steps(problem))).state.items()}
    for name in ("mean", "n_averaged", "fall", "stalled"):
        del state[name]
    *_, last = made.steps(problem, state)
    assert last.converged


@pytest.mark.parametrize("name", ["hierarchical_multiclass", "tree_loss", "transfer"])
def test_visits_raise_the_dual_by_what_they_report_or_more(name):
    problem = with_tree(small(n=30, d=8))
    driver = HingeAscent(machine(name).design(problem), problem, 1.0, 1e-6)
    run, order = driver._begin(), np.flatnonzero(driver.filled).astype(np.int32)
    before = 0.0
    for all_pairs in (True, False, True, False):
        progress = Progress(run.epoch.unchanged, run.gains, np.zeros(1, VISITED))
        assert driver._visit(run, Visits(order, 0, len(order), all_pairs), progress) == len(order)
        found = driver._sums(run, np.zeros(len(driver.filled)), scaling_search.blank())
        value = found.linear - 0.5 * driver._square(run)
        gain = progress.visited["gain"][0]
        assert gain > 0.0
        if name == "hierarchical_multiclass":
            # its steps count what they would gain without bounds
            assert value - before >= gain * (1 - 1e-9)
        else:
            assert value - before == pytest.approx(gain, rel=1e-9)
        assert run.gains[order].sum() == pytest.approx(gain, rel=1e-5)
        before = value
