"""What is chosen on rows held out, and what comes of it."""

from collections import deque
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp

import solvers.linear.driver.ascent
from solvers.core.base import ParamsError
from solvers.core.memory import TooLargeError, allowing
from solvers.core.methods import all_methods
from solvers.core.problem import Problem
from solvers.core.stored_models import load_model
from solvers.metrics.confidence.reliability import threshold_for
from solvers.registry import make
from solvers.selection.candidates import Family, default_families
from solvers.selection.held_out import folds_of, held_out_rows
from solvers.selection.progress import Outcome, Progress, bounds_of
from solvers.selection.search import Options, Search
from solvers.selection.single_labels import SingleLabels
from solvers.selection.tasks import View, Views

CANDIDATES = [
    {"solver": "one_vs_rest", "params": {"loss": "squared_hinge"}, "grid": {"C": [0.1, 1.0]}},
    {"solver": "crammer_singer", "grid": {"C": [1.0, 0.1], "bias": [0.0, 1.0]}},
    {"solver": "centroids"},
]


def texts(n=300, k=6, d=60, seed=0) -> Problem:
    """Rows of counts, as texts have them: each class has terms of its own, and all have others."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    y[:k] = np.arange(k)
    rates = np.full((k, d), 0.05)
    rates[np.arange(d) % k, np.arange(d)] = 0.25
    return Problem.check(sp.csr_matrix(rng.poisson(rates[y]).astype(float)), y)


def run(problem, **params):
    solver = make("auto", params, seed=1)
    *steps, last = solver.steps(problem)
    return solver, steps, last, solver.model(problem, last.state)


def test_what_is_chosen_is_certified_and_its_scores_are_logarithms_of_probabilities():
    problem = texts()
    _, steps, last, model = run(problem, candidates=CANDIDATES, tol=1e-3)
    assert all(np.isnan(step.primal) for step in steps)
    assert last.converged
    assert 0 <= last.gap <= 1e-3
    scores = model.scores(problem.X)
    np.testing.assert_allclose(logsumexp(scores, axis=1), 0.0, atol=1e-5)
    row = problem.X[3]
    np.testing.assert_allclose(model.score_one(row.indices, row.data), scores[3], rtol=1e-4, atol=1e-5)
    assert (scores.argmax(axis=1) == problem.y).mean() > 0.8


def test_every_trial_is_told_with_its_parameters_and_measures_the_best_first():
    _, steps, _, model = run(texts(), candidates=CANDIDATES, measure="macro_f1")
    trials = model.record["trials"]
    assert len(trials) == 7 == sum("trial" in step.measures and "accuracy" in step.measures for step in steps)
    assert [trial["measures"]["macro_f1"] for trial in trials] == sorted(
        (t["measures"]["macro_f1"] for t in trials), reverse=True
    )
    assert {(t["solver"], t["params"].get("C"), t["params"].get("bias")) for t in trials} == {
        ("one_vs_rest", 0.1, None),
        ("one_vs_rest", 1.0, None),
        *(("crammer_singer", C, bias) for C in (0.1, 1.0) for bias in (0.0, 1.0)),
        ("centroids", None, None),
    }
    assert sum(member["coefficient"] for member in model.record["members"]) > 0
    assert model.report["trials"] == 7


def test_every_step_names_what_is_tried_or_trained():
    _, steps, _, model = run(texts(), candidates=CANDIDATES)
    tried = [step.setting for step in steps if "accuracy" in step.measures]
    assert tried[:2] == ["one_vs_rest, loss squared_hinge, C 0.1", "one_vs_rest, loss squared_hinge, C 1"]
    assert tried[-1] == "centroids"
    members = [member["solver"] for member in model.record["members"]]
    trained = [step.setting for step in steps if "member" in step.measures]
    assert all(setting.split(",")[0] in members for setting in trained)
    assert Family("centroids", {}, sketch="rows").named(0) == "centroids, on some of the rows"


def test_a_single_model_is_the_best_trial_trained_on_all_rows():
    problem = texts()
    _, _, last, model = run(problem, candidates=CANDIDATES[:2], most_members=1, tol=1e-4)
    best = model.record["trials"][0]
    alone = make(best["solver"], best["params"] | {"tol": 1e-4}, seed=1)
    *_, end = alone.steps(problem)
    assert (last.primal, last.dual) == (end.primal, end.dual)
    [member] = model.record["members"]
    temperature = 1.0 / member["coefficient"]
    scores = np.asarray(alone.model(problem, end.state).scores(problem.X), np.float64) / temperature
    expected = scores - logsumexp(scores, axis=1, keepdims=True)
    np.testing.assert_allclose(model.scores(problem.X), expected, atol=1e-3)


@pytest.mark.parametrize("folds", [1, 3])
def test_a_resumed_search_repeats_the_uninterrupted_one_bit_for_bit(folds, monkeypatch):
    monkeypatch.setattr(solvers.linear.driver.ascent, "SLICE_OPERATIONS", 2000)
    problem = texts(n=120)

    def solver():
        return make("auto", {"candidates": CANDIDATES, "folds": folds, "tol": 1e-3}, seed=1)

    n_steps = 0
    for end in solver().steps(problem):
        n_steps += 1
        epoch, state = end.epoch, end.state
    whole = solver().model(problem, state).scores(problem.X)
    assert n_steps > 10
    # The states of all steps together would be hundreds of megabytes.
    for stop in range(0, n_steps - 1, max(1, n_steps // 12)):
        step = next(islice(solver().steps(problem), stop, None))
        begin = {k: np.array(v) for k, v in step.state.items()}
        last = deque(solver().steps(problem, begin), maxlen=1).pop()
        assert last.epoch == epoch
        np.testing.assert_array_equal(solver().model(problem, last.state).scores(problem.X), whole)


def test_the_files_of_a_pool_are_read_again(tmp_path):
    problem = texts()
    *_, model = run(problem, candidates=CANDIDATES)
    model.save(tmp_path / "model")
    read, _ = load_model(tmp_path / "model", verify=True)
    np.testing.assert_array_equal(read.scores(problem.X), model.scores(problem.X))
    assert read.record == model.record
    assert threshold_for(read.reliability.curve, 0.8) == threshold_for(model.reliability.curve, 0.8)


@pytest.mark.parametrize(
    ("solver", "gap"),
    [("adaboost_mh", None), ("centroids", None), ("one_vs_rest", 0.01)],
)
def test_only_what_is_certified_has_a_gap(solver, gap):
    candidates = [{"solver": solver, "params": {"max_epochs": 3} if solver == "adaboost_mh" else {}}]
    _, _, last, model = run(texts(), candidates=candidates)
    [member] = model.record["members"]
    if gap is None:
        assert np.isnan([last.primal, last.dual, last.gap]).all()
        assert member["gap"] is None
    else:
        assert 0 <= last.gap <= gap
        assert member["gap"] == last.gap


def test_the_bounds_of_a_pool_are_sums_and_none_if_a_member_has_none():
    svm, other = Outcome(2.0, 1.5, True, False), Outcome(4.0, 3.0, True, False)
    exact, boosted = Outcome(np.nan, np.nan, True, True), Outcome(np.nan, np.nan, True, False)
    assert bounds_of([svm, exact, other]) == (6.0, 4.5)
    assert np.isnan(bounds_of([svm, boosted])).all()
    assert np.isnan(bounds_of([exact])).all()


def test_without_candidates_what_suits_the_data_is_tried():
    *_, model = run(texts(n=200))
    tried = {trial["solver"] for trial in model.record["trials"]}
    assert tried == {"label_trees", "crammer_singer", "softmax", "centroids"}
    assert {family.method for family in default_families(texts(n=2000))} == tried | {"complement_naive_bayes"}
    assert {family.method for family in default_families(texts(n=2000, k=101, d=202))} == tried - {"softmax"}
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=90)
    *_, model = run(Problem.check(np.eye(3)[y] @ rng.standard_normal((3, 4)) + rng.standard_normal((90, 4)), y))
    assert "spoc" in {trial["solver"] for trial in model.record["trials"]}


def test_rows_of_which_none_can_be_held_out_are_trained_on_without_probabilities():
    problem = Problem.check(np.eye(4), np.arange(4))
    _, _, last, model = run(problem)
    assert last.converged
    assert model.reliability is None
    np.testing.assert_array_equal(model.predict(problem.X), np.arange(4))


def test_after_the_budget_no_trial_is_begun():
    *_, model = run(texts(), candidates=CANDIDATES, budget_seconds=1e-9)
    assert len(model.record["trials"]) == 1


def searching(problem, families, folds, options) -> Search:
    views = Views(View(problem, SingleLabels(problem, held_out_rows(folds)), folds))
    return Search(views, families, options, seed=0, threads=1)


def path_of(losses: dict[float, float], *Cs: float) -> list[float]:
    """The values of C that are tried where the trials have such log losses, and accuracies that go with them."""
    family = Family.path("crammer_singer", {}, Cs)
    options = Options("accuracy", 4, None, 0.01, 10)
    search = searching(texts(n=30), [family], [], options)
    progress = Progress(np.full((len(search.trials), len(search.results)), np.nan))
    accuracy, loss = search.results.index("accuracy"), search.results.index("log_loss")
    tried = []
    while search.advance(progress):
        C = family.Cs[search.trials[progress.trial].place]
        progress.results[progress.trial, [accuracy, loss]] = 1.0 - losses[C] / 10, -losses[C]
        progress.results[progress.trial, 0] = 1.0 - losses[C] / 10
        tried.append(C)
    return tried


def test_a_family_like_another_is_tried_with_the_best_value_of_that_one_alone():
    first = Family.path("one_vs_rest", {"loss": "squared_hinge"}, (1.0, 3.0, 0.1))
    families = [first, Family.path("crammer_singer", {}, first.Cs, first)]
    problem = texts()
    folds = folds_of(problem, 1, 0.2, 0)
    options = Options("accuracy", 4, None, 0.01, 1000)
    search = searching(problem, families, folds, options)
    *_, last = search.steps(None)
    trials = search.model(last.state).record["trials"]
    best = max((t for t in trials if t["solver"] == "one_vs_rest"), key=lambda t: t["measures"]["accuracy"])
    [other] = [t for t in trials if t["solver"] == "crammer_singer"]
    assert other["params"]["C"] == best["params"]["C"]


def test_sketches_tell_which_machine_is_tried_on_all_rows_and_are_no_members(monkeypatch):
    monkeypatch.setattr("solvers.selection.search.SKETCH_ROWS", 60)
    problem = texts()
    families = [Family.path("one_vs_rest", {"loss": "squared_hinge", "bias": bias}, (1.0, 0.1)) for bias in (0.0, 1.0)]
    sketches = tuple(replace(family, sketch="rows") for family in families)
    whole = [replace(family, like=like, rivals=sketches) for family, like in zip(families, sketches, strict=True)]
    options = Options("accuracy", 4, 1e-9, 0.01, 1000)
    search = searching(problem, [*sketches, *whole], folds_of(problem, 1, 0.2, 0), options)
    *_, last = search.steps(None)
    record = search.model(last.state).record
    few = [trial for trial in record["trials"] if trial["measures"]["rows"] < 100]
    [full] = [trial for trial in record["trials"] if trial["measures"]["rows"] == 240]
    best = max(few, key=lambda trial: trial["measures"]["accuracy"])
    assert len(few) == 4
    assert full["params"] == best["params"]
    [member] = record["members"]
    assert member["params"] == full["params"]


def test_weights_of_classes_are_those_of_their_examples():
    problem = texts()
    given = {"0": 3.0, "4": 0.5}
    weights = np.array([given.get(label, 1.0) for label in problem.classes])[problem.y]
    *_, model = run(problem, candidates=CANDIDATES, class_weight=given)
    *_, other = run(replace(problem, weights=weights), candidates=CANDIDATES)
    np.testing.assert_array_equal(model.scores(problem.X), other.scores(problem.X))
    assert make("auto", {"class_weight": {"none": 1.0}}).params.label_faults(problem.classes)


@pytest.mark.parametrize(
    ("losses", "tried"),
    [
        # clearly better upwards, and then no more
        ({0.1: 3.0, 0.3: 2.5, 1.0: 2.0, 3.0: 1.5, 10.0: 1.6, 30.0: 1.4}, [1.0, 3.0, 10.0]),
        # worse upwards: down until that is worse, too
        ({0.1: 1.6, 0.3: 1.5, 1.0: 2.0, 3.0: 2.1, 10.0: 1.0, 30.0: 1.0}, [1.0, 3.0, 0.3, 0.1]),
        # hardly better upwards: both ways
        ({0.1: 1.0, 0.3: 1.5, 1.0: 2.0, 3.0: 1.999, 10.0: 2.0, 30.0: 2.0}, [1.0, 3.0, 10.0, 0.3, 0.1]),
        # a plain
        ({0.1: 2.0, 0.3: 2.0, 1.0: 2.0, 3.0: 2.0, 10.0: 2.0, 30.0: 2.0}, [1.0, 3.0, 0.3]),
    ],
)
def test_a_path_goes_on_as_long_as_that_is_better(losses, tried):
    assert path_of(losses, 1.0, 30.0, 10.0, 0.1, 3.0, 0.3) == tried


def test_what_suits_the_data_does_not_depend_on_the_length_of_the_rows():
    problem = texts()
    longer = Problem.check(10.0 * problem.X, problem.y)
    usual, scaled = default_families(problem), default_families(longer)
    assert [family.method for family in usual] == [family.method for family in scaled]
    for family, other in zip(usual, scaled, strict=True):
        np.testing.assert_allclose([100 * C for C in other.Cs], family.Cs)


def test_what_does_not_fit_into_memory_is_left_out_and_reported():
    with allowing(10_000):
        *_, model = run(texts())
        assert {trial["solver"] for trial in model.record["trials"]} == {"centroids"}
        *_, model = run(texts(), candidates=[{"solver": "crammer_singer"}, {"solver": "centroids"}])
        [left] = model.record["left_out"]
        assert left["solver"] == "crammer_singer"
        assert "MB" in left["reason"]
        with pytest.raises(TooLargeError):
            run(texts(), candidates=[{"solver": "crammer_singer"}])
    dense = Problem.check(np.random.default_rng(0).standard_normal((300, 60)), np.arange(300) % 6)
    with allowing(10_000), pytest.raises(TooLargeError):
        run(dense)


@pytest.mark.parametrize(
    ("candidate", "pointer"),
    [
        ({"solver": "auto"}, "/candidates/0/solver"),
        ({"solver": "nothing"}, "/candidates/0/solver"),
        ({"solver": "transfer"}, "/candidates/0/solver"),
        ({"solver": "one_vs_rest", "params": {"loss": "log"}}, "/candidates/0/params/loss"),
        ({"solver": "one_vs_rest", "grid": {"C": [-1.0]}}, "/candidates/0/grid/C"),
        ({"solver": "one_vs_rest", "grid": {"loss": []}}, "/candidates/0/grid/loss"),
        ({"solver": "one_vs_rest", "grid": {"depth": [1]}}, "/candidates/0/grid/depth"),
        ({"solver": "one_vs_rest", "grid": {"C": [[1.0], 1.0]}}, "/candidates/0/grid/C"),
        ({"solver": "output_code", "grid": {"C": [None]}}, "/candidates/0/grid/C"),
        ({"solver": "one_vs_rest", "grid": {"seed": [0] * 1001}}, "/candidates"),
        # ten to the power of 40 combinations, which must not be made to be counted
        ({"solver": "one_vs_rest", "grid": {f"p{i}": list(range(10)) for i in range(40)}}, "/candidates"),
    ],
)
def test_candidates_that_cannot_be_tried_are_refused_at_their_place(candidate, pointer):
    with pytest.raises(ParamsError) as caught:
        make("auto", {"candidates": [candidate]})
    assert [place for place, _ in caught.value.items] == [pointer]


def test_a_trial_that_fails_is_left_out_and_the_others_are_made(monkeypatch):
    def failing(self, problem, state=None):
        raise MemoryError
        yield

    monkeypatch.setattr(all_methods()["crammer_singer"], "steps", failing)
    *_, model = run(texts(), candidates=CANDIDATES)
    assert "crammer_singer" not in {trial["solver"] for trial in model.record["trials"]}
    assert {left["reason"] for left in model.record["left_out"]} == {"memory ran out"}
    with pytest.raises(MemoryError):
        run(texts(), candidates=[{"solver": "crammer_singer"}, {"solver": "crammer_singer", "params": {"bias": 1.0}}])


def test_trials_are_numbered_without_gaps_and_the_share_done_rises_with_them():
    _, steps, _, model = run(texts(), candidates=CANDIDATES)
    reported = [step.measures["trial"] for step in steps if "accuracy" in step.measures]
    assert reported == list(range(len(model.record["trials"])))
    shares = [step.fraction for step in steps if "accuracy" in step.measures]
    assert 0 < shares[0] < shares[-1] < 1
    # the first trial moves before its first fold ends
    assert 0 < steps[0].fraction < shares[0]


def test_the_trial_that_has_ended_its_workers_is_left_out_on_resuming_and_results_are_kept():
    problem = texts()
    solver = make("auto", {"candidates": CANDIDATES})
    steps = solver.steps(problem)
    step = next(each for each in steps if "accuracy" in each.measures)
    assert step.milestone
    state = {name: np.array(step.state[name]) for name in step.state}
    resumed = solver.without_current(problem, state)
    *_, last = solver.steps(problem, {name: np.array(resumed[name]) for name in resumed})
    record = solver.model(problem, last.state).record
    assert [left["reason"] for left in record["left_out"]] == ["the worker was lost while it ran"]
    assert step.measures["accuracy"] in [trial["measures"]["accuracy"] for trial in record["trials"]]


def test_states_above_a_bound_are_not_in_checkpoints_and_training_resumes_to_the_same_bits(monkeypatch):
    monkeypatch.setattr("solvers.selection.search.MOST_STATE", 0)
    problem = texts()
    solver = make("auto", {"candidates": CANDIDATES[:1], "folds": 2})
    *_, last = solver.steps(problem)
    whole = solver.model(problem, last.state).scores(problem.X)
    for step in solver.steps(problem):
        if "trial" in step.measures and "accuracy" not in step.measures:
            state = {name: np.array(step.state[name]) for name in step.state}
            break
    assert not [name for name in state if name.startswith(("inner", "warm0", "warm1"))]
    *_, last = solver.steps(problem, state)
    np.testing.assert_array_equal(solver.model(problem, last.state).scores(problem.X), whole)
