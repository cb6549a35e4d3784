"""What every method promises, whichever it is."""

import numpy as np
import pytest
from problems import SCALING, OnTree, linear_map, settings, shape_of, small, small_sets, with_tree
from training import machine

import solvers.hierarchical.epochs
import solvers.hierarchical.learnt_trees.driver
import solvers.kernel_svm.kernel_machine
import solvers.linear.driver.ascent
import solvers.methods.multiboost_cw
from solvers.boosting.boosting import Boosting
from solvers.core.base import Solver
from solvers.core.problem import Problem, ProblemError
from solvers.labels.taxonomy import Taxonomy
from solvers.registry import SOLVERS

# a method that chooses among others has no objective of its own: see selection/test_auto.py
METHODS = [name for name, method in SOLVERS.items() if not method.chooses]
CERTIFIED = [name for name in METHODS if SOLVERS[name].handles.certified]
everywhere = pytest.mark.parametrize("name", METHODS)
where_certified = pytest.mark.parametrize("name", CERTIFIED)
LINEAR = [name for name in CERTIFIED if not issubclass(SOLVERS[name], Boosting) and not SOLVERS[name].uses_names]
where_linear = pytest.mark.parametrize("name", LINEAR)
# whose classes' weights are what is regularised, and what scores
where_scores_are_linear = pytest.mark.parametrize(
    "name", [name for name in LINEAR if not SOLVERS[name].handles.multilabel and name != "label_trees"]
)
# whose result is the same for every seed
CHANCELESS = {
    "multiboost",
    "adaboost_mh",
    "hierarchical_rls",
    *(name for name, method in SOLVERS.items() if method.handles.closed_form),
    *(name for name, method in SOLVERS.items() if method.handles.kernels and method.handles.flat),
}
# whose result is a path of choices, not an optimum, which equally good weak learners or clusters turn this way or that
GREEDY = {"adaboost_ecc", "adaboost_mh", "adaboost_mo", "label_trees"}
# whose candidates are lists: equal scores are in the order of the classes
RANKED = {"subjects"}
# whose tolerance is of two levels, and which ends at a much smaller gap
LEVELS = {"hard_margin"}


def solver(name: str, seed: int = 0, **params) -> Solver:
    if name == "label_trees":
        params = {"most_leaves": 2, "trees": 2} | params
    made = machine(name, seed=seed, **settings(name, **params))
    return made if made.handles.flat else OnTree(made)


def copied(state):
    return {key: np.array(value) for key, value in state.items()}


def last_of(steps):
    for step in steps:
        last = step
    return last


@where_certified
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_gap_is_never_negative_and_the_dual_never_falls(name, dtype):
    problem = small(n=80)
    measured = [s for s in solver(name, tol=1e-4, dtype=dtype).steps(problem) if not np.isnan(s.gap)]
    assert measured
    assert all(step.gap >= 0 for step in measured)
    duals = np.array([step.dual for step in measured])
    assert (np.diff(duals) >= -1e-6 * np.abs(duals[1:])).all()


@where_certified
def test_a_tighter_tolerance_gives_a_smaller_gap(name):
    gaps = [last_of(solver(name, tol=tol, dtype="float64").steps(small())).gap for tol in (1e-1, 1e-2, 1e-4)]
    if name not in LEVELS:
        # Newton's method may pass two tolerances in one step
        assert gaps[0] > gaps[2] if name in RANKED else gaps[0] > gaps[1] > gaps[2]
    assert all(gap <= tol for gap, tol in zip(gaps, (1e-1, 1e-2, 1e-4), strict=True))


@pytest.mark.parametrize("name", [name for name in METHODS if not SOLVERS[name].handles.closed_form])
@pytest.mark.parametrize("slices", [1 << 31, 2000])
def test_a_resumed_run_repeats_the_uninterrupted_one_bit_for_bit(name, slices, monkeypatch):
    monkeypatch.setattr(solvers.linear.driver.ascent, "SLICE_OPERATIONS", slices)
    monkeypatch.setattr(solvers.methods.multiboost_cw, "SLICE_PRODUCTS", slices)
    monkeypatch.setattr(solvers.kernel_svm.kernel_machine, "SLICE_PRODUCTS", slices)
    monkeypatch.setattr(solvers.hierarchical.learnt_trees.driver, "SLICE_PRODUCTS", min(slices, 1))
    monkeypatch.setattr(solvers.kernel_svm.kernel_machine, "WORKING_SET", 8)
    monkeypatch.setattr(solvers.kernel_svm.kernel_machine, "REPORT_EVERY", 1)
    monkeypatch.setattr(solvers.hierarchical.epochs, "SLICE_OPERATIONS", slices)
    problem = small(n=80)
    steps = [(s.epoch, s.primal, copied(s.state)) for s in solver(name, tol=1e-3).steps(problem)]
    assert len(steps) > 4
    for stop in (0, len(steps) // 2, len(steps) - 2):
        resumed = [(s.epoch, s.primal, copied(s.state)) for s in solver(name, tol=1e-3).steps(problem, steps[stop][2])]
        assert len(resumed) == len(steps) - stop - 1
        assert resumed[-1][0] == steps[-1][0]
        for key, array in steps[-1][2].items():
            np.testing.assert_array_equal(resumed[-1][2][key], array, err_msg=key)


@everywhere
def test_the_same_seed_gives_the_same_bits_and_another_seed_another_path_where_there_is_chance(name):
    problem = small(n=80)
    scores = []
    ascent = {"algorithm": "ascent"} if "algorithm" in SOLVERS[name].Params.model_fields else {}
    for seed in (3, 3, 4):
        method = solver(name, seed=seed, tol=1e-3, **ascent)
        scores.append(method.model(problem, last_of(method.steps(problem)).state).scores(problem.X))
    np.testing.assert_array_equal(scores[0], scores[1])
    if name in CHANCELESS:
        np.testing.assert_array_equal(scores[0], scores[2], err_msg=f"{name} is in CHANCELESS, but its seed matters")
    else:
        assert not np.array_equal(scores[0], scores[2]), f"the seed of {name} changes nothing: add it to CHANCELESS"


@pytest.mark.parametrize("name", [name for name in METHODS if name not in GREEDY | RANKED])
def test_permuting_the_classes_permutes_the_scores(name):
    problem = with_tree(small())
    turn = np.array([3, 0, 4, 1, 2])
    names = {str(c): str(turn[c]) for c in range(5)}
    edges = [(names.get(parent, parent), names.get(child, child)) for parent, child in problem.taxonomy.edges]
    turned = Problem.check(problem.X, turn[problem.y], taxonomy=Taxonomy.from_edges(edges[::-1]))
    maps = []
    for task in (problem, turned):
        # what a finer tolerance of hard margins asks of the machine at a large C, float64 does not have
        tol = 1e-6 if name == "hard_margin" else 1e-8
        method = solver(name, tol=tol, dtype="float64", max_epochs=100_000)
        maps.append(shape_of(method.model(task, last_of(method.steps(task)).state), task))
    np.testing.assert_allclose(maps[1][turn], maps[0], atol=1e-3 * np.abs(maps[0]).max())


@where_certified
def test_the_limit_of_epochs_ends_training_unconverged_with_a_measured_gap(name):
    last = last_of(solver(name, tol=1e-9, max_epochs=3).steps(small()))
    assert (last.epoch, last.converged) == (3, False)
    assert [type(value) for value in (last.epoch, last.converged, last.gap)] == [int, bool, float]
    assert 0 < last.gap < 1


@where_scores_are_linear
def test_the_certificate_belongs_to_the_model_that_is_handed_out(name):
    problem = small()
    method = solver(name, tol=1e-3, dtype="float64", C=2.0)
    last = last_of(method.steps(problem))
    model = method.model(problem, last.state)
    W = linear_map(model).T
    assert last.primal - last.dual >= 0
    assert 0.5 * (W**2).sum() < last.primal
    np.testing.assert_allclose(problem.X @ W, model.scores(problem.X), atol=1e-12)


@where_certified
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("C", [1e-8, 1e8])
def test_an_extreme_weight_of_the_losses_ends_with_true_bounds(name, C, dtype):
    measured = [s for s in solver(name, C=C, tol=1e-2, dtype=dtype, max_epochs=50).steps(small(n=20)) if s.gap == s.gap]
    assert all(np.isfinite([s.primal, s.dual]).all() and s.dual <= s.primal for s in measured)
    assert C > 1 or measured[-1].converged


@everywhere
def test_empty_rows_duplicate_rows_unused_features_and_two_classes_are_no_trouble(name):
    base = small(n=20, k=2)
    X = np.vstack([base.X.toarray(), base.X.toarray()[:5], np.zeros((3, base.n_features))])
    X = np.hstack([np.zeros((len(X), 2)), X, np.zeros((len(X), 1))])
    y = np.concatenate([base.y, base.y[:5], [0, 1, 1]])
    problem = Problem.check(X, y)
    method = solver(name, tol=1e-5)
    last = last_of(method.steps(problem))
    assert last.converged
    model = method.model(problem, last.state)
    used = model.importances if issubclass(SOLVERS[name], Boosting) else np.abs(linear_map(model)).sum(axis=0)
    assert not used[[0, 1, -1]].any()
    assert used.any()


@where_certified
def test_one_example_a_class_converges(name):
    rng = np.random.default_rng(0)
    last = last_of(solver(name, tol=1e-3).steps(Problem.check(rng.standard_normal((40, 60)), np.arange(40))))
    assert last.converged


@where_linear
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_features_of_another_scale_give_true_bounds(name, scale):
    problem = small()
    scaled = Problem.check(problem.X * scale, problem.y)
    method = solver(name, C=1.0 / scale**2, tol=1e-2, max_epochs=2000, **SCALING.get(name, {}))
    plain = solver(name, C=1.0, tol=1e-2, max_epochs=2000, **SCALING.get(name, {}))
    ratio = last_of(method.steps(scaled)).primal / last_of(plain.steps(problem)).primal
    assert ratio == pytest.approx(1.0 / scale**2, rel=2e-2)


@pytest.mark.each_method
@everywhere
def test_labels_that_a_method_does_not_take_are_refused_by_name(name):
    method = machine(name)
    single = small()
    if not method.handles.multilabel:
        with pytest.raises(ProblemError, match=f"{name} needs one label per example; sets of labels were given"):
            next(method.steps(small_sets()))
    if not method.handles.flat:
        with pytest.raises(ProblemError, match=f"{name} needs a label tree"):
            next(method.steps(single))
    if not (method.handles.flat or method.handles.tree):
        with pytest.raises(ProblemError, match=f"{name} needs sets of labels; one label"):
            next(method.steps(with_tree(single)))


@pytest.mark.each_method
@everywhere
def test_titles_papers_and_schemas_are_there_for_the_reader(name):
    method = SOLVERS[name]
    assert method.title
    assert method.paper
    said = __import__(method.__module__, fromlist=["_"]).__doc__ or ""
    assert "minimise" in said, f"the docstring of {method.__module__} has no line 'minimise ...' with the objective"
    for field, schema in method.Params.model_json_schema()["properties"].items():
        assert schema.get("description"), field
