"""What is chosen for sets of labels, and the probabilities and sets that follow."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from problems import parents_of, small_sets
from scipy.special import expit
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import average_precision_score, f1_score
from training import fitted

import solvers.linear.driver.ascent
from solvers.core.linear_model import LinearModel
from solvers.core.problem import Problem, ProblemError
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.core.stored_models import load_model
from solvers.labels.stored_arrays import ArrayFault
from solvers.labels.taxonomy import Taxonomy
from solvers.labels.tree_part import TreePart
from solvers.metrics.confidence.pairs import Pairs
from solvers.metrics.confidence.reliability import lower_bounds, threshold_for
from solvers.metrics.multilabel import table
from solvers.registry import make
from solvers.selection.held_out import folds_of
from solvers.selection.sets.frequency_calibration import Trained
from solvers.selection.sets.label_sets import LabelSets
from solvers.selection.sets.lighter_members import light_member
from solvers.selection.sets.node_calibration import OFFSET_PENALTY, SLOPE_PENALTY, NodeCalibration
from solvers.selection.sets.set_curve import Curve, log_loss
from solvers.selection.sets.set_model import SetPoolModel
from solvers.selection.sets.set_thresholds import SetThresholds, least_precise

CANDIDATES = [
    {"solver": "node_svm", "params": {"loss": "squared_hinge"}, "grid": {"C": [0.1, 1.0]}},
    {"solver": "kernel_ridge", "grid": {"C": [1.0], "gamma": [0.1, 1.0]}},
    {"solver": "hm3"},
]


def run(problem, **params):
    return fitted(make("auto", {"candidates": CANDIDATES} | params, seed=1), problem)


def pairs(log_odds, labels):
    return Pairs.from_log_odds(log_odds, sp.csr_matrix(labels, dtype=bool))


@pytest.mark.parametrize("graph", [False, True])
def test_sets_are_closed_and_are_where_probabilities_pass_the_threshold(graph):
    problem = small_sets(n=120, seed=7, n_nodes=14, graph=True) if graph else small_sets(n=120)
    if graph:  # no row has three nodes: two of these hang below several, one below one
        assert len(np.unique(problem.labels.indices)) == 11
        assert len(TreePart.of_sets(problem.tree, problem.labels).nodes) == 13
    last, model = run(problem)
    assert last.converged
    probabilities, sets = model.probabilities(problem.X), model.predict_sets(problem.X).toarray()
    for j, above in enumerate(parents_of(problem.tree)):
        assert (probabilities[:, [j]] <= probabilities[:, above]).all()
    np.testing.assert_array_equal(sets, probabilities > expit(model.calibration.threshold))
    np.testing.assert_array_equal(model.ranking(problem.X).sets.toarray(), sets)
    for i in range(10):
        row = problem.X[i]
        reported = model.explain(row.indices, row.data, 0).subtree
        assert [name for name, _, _ in reported] == [problem.classes[j] for j in np.flatnonzero(sets[i])]
    assert f1_score(problem.labels.toarray(), sets, average="micro") > 0.7


def test_the_best_trial_by_the_measure_is_trained_on_all_rows():
    problem = small_sets(n=120)
    for measure in ("micro_f1", "average_precision"):
        _, model = run(problem, measure=measure)
        trials = model.record["trials"]
        assert len(trials) == 5
        assert trials[0]["measures"][measure] == max(trial["measures"][measure] for trial in trials)
        [member] = model.record["members"]
        assert (member["solver"], member["params"]) == (trials[0]["solver"], trials[0]["params"])
        assert model.report[f"held_out_{measure}"] == trials[0]["measures"][measure]


def with_absent(problem, seed=0):
    """The same rows in a tree with as many nodes again, in every place, that no row has; and the numbers of the old."""
    rng, tree = np.random.default_rng(seed), problem.tree
    edges = [(above if above == "root" else f"old {above}", f"old {name}") for above, name in tree.edges]
    for number in range(tree.n_nodes):
        above = rng.choice(["root", *(name for _, name in edges)])
        edges.insert(int(rng.integers(len(edges) + 1)), (str(above), f"new {number}"))
    whole = Taxonomy.from_edges(edges)
    old = whole.find([f"old {name}" for name in tree.names])
    labels = np.zeros((problem.n_samples, whole.n_nodes), bool)
    labels[:, old] = problem.labels.toarray()
    return Problem.check_sets(problem.X, labels, whole), old


@pytest.mark.parametrize("params", [{}, {"label_thresholds": True}, {"set_precision": 0.9}, {"folds": 1}])
def test_what_no_row_has_is_not_trained_and_its_log_odds_are_the_same_for_every_row(params, tmp_path):
    problem = small_sets(n=120)
    whole, old = with_absent(problem)
    last, model = run(whole, **params)
    assert last.converged
    assert model.classes == whole.classes
    np.testing.assert_array_equal(np.sort(old), model.part.nodes)
    assert len(model.member.classes) == problem.n_classes
    scores, parent = model.scores(whole.X), whole.tree.parent
    rest = model.calibration.curve(np.array([NodeCalibration.of_rest(24 if "folds" in params else 120)]))[0]
    for node in set(range(whole.n_classes)) - set(old.tolist()):
        above = scores[:, parent[node]] if parent[node] >= 0 else np.inf
        np.testing.assert_array_equal(scores[:, node], np.minimum(rest, above))
    for i in range(5):
        row = whole.X[i]
        np.testing.assert_allclose(model.score_one(row.indices, row.data), scores[i], rtol=1e-5, atol=1e-6)
    assert model.predict_sets(whole.X)[:, np.setdiff1d(np.arange(whole.n_classes), old)].nnz == 0
    model.save(tmp_path / "model")
    read, _ = load_model(tmp_path / "model", verify=True)
    np.testing.assert_array_equal(read.scores(whole.X), scores)
    assert (read.predict_sets(whole.X) != model.predict_sets(whole.X)).nnz == 0
    small = model.smaller(lambda weights: weights, half=False)
    np.testing.assert_array_equal(small.scores(whole.X), scores)


def test_what_no_row_has_changes_nothing_of_the_rest_but_the_mean_over_all_pairs():
    problem = small_sets(n=120)
    # the same tree in the order in which the larger one has its nodes
    whole, old = with_absent(problem)
    part = TreePart(whole.tree, np.sort(old))
    alone = Problem.check_sets(problem.X, whole.labels[:, part.nodes], part.tree)
    (_, model), (_, other) = run(whole), run(alone)
    np.testing.assert_array_equal(model.scores(whole.X)[:, part.nodes], other.scores(alone.X))
    np.testing.assert_array_equal(model.calibration.threshold, other.calibration.threshold)
    for name in ("held_out_micro_f1", "held_out_average_precision"):
        assert model.report[name] == pytest.approx(other.report[name], rel=1e-3)
    loss = np.logaddexp(0.0, NodeCalibration.of_rest(120))
    assert model.report["held_out_log_loss"] == pytest.approx((other.report["held_out_log_loss"] + loss) / 2, rel=1e-2)


def test_measures_of_chosen_thresholds_count_the_labels_that_no_row_has_where_they_are_named():
    problem = small_sets(n=40)
    whole, old = with_absent(problem)
    part, rng = TreePart(whole.tree, np.sort(old)), np.random.default_rng(0)
    labels = whole.labels[:, part.nodes]
    scores = rng.standard_normal(labels.shape).astype(np.float32)
    for each in (False, True):
        n_rows = np.asarray(labels.sum(axis=0)).ravel()
        task = LabelSets(part, labels, SetThresholds(each, 0.02), Trained(np.zeros(40, int), n_rows[None], n_rows))
        _, found, kept = task.choose({0: scores}, 0, "micro_f1", 1)
        calibration = NodeCalibration.from_arrays(kept["calibration"])
        log_odds = calibration.log_odds(part.spread(scores), whole.tree.parents)
        predicted = sp.csr_matrix(calibration.margins(log_odds, whole.tree.parents) > 0)
        assert predicted[:, np.setdiff1d(np.arange(whole.n_classes), old)].nnz > 0
        expected = table(whole.labels, predicted).averages()
        for name in ("micro_f1", "precision", "recall"):
            assert found[f"held_out_{name}"] == pytest.approx(expected[name])


def test_a_label_that_no_row_has_is_explained_by_no_feature():
    whole, old = with_absent(small_sets(n=120))
    _, model = run(whole, candidates=CANDIDATES[:1])
    row = whole.X[0]
    new = int(np.setdiff1d(np.flatnonzero(whole.tree.parent < 0), old)[0])
    found = model.contributions(row.indices, row.data, new, None)
    assert not found.parts.any()
    assert found.intercept == model.score_one(row.indices, row.data)[new]


def test_numbers_of_scored_nodes_that_do_not_rise_are_refused():
    whole, _ = with_absent(small_sets(n=60))
    _, model = run(whole, candidates=CANDIDATES[:1])
    arrays = model.arrays()
    with pytest.raises(ArrayFault, match="array scored is not strictly increasing"):
        SetPoolModel.from_arrays(model.classes, model.n_features, arrays | {"scored": arrays["scored"][::-1]})


@pytest.mark.parametrize("folds", [1, 3])
def test_a_resumed_search_over_sets_repeats_the_uninterrupted_one_bit_for_bit(folds, monkeypatch):
    monkeypatch.setattr(solvers.linear.driver.ascent, "SLICE_OPERATIONS", 500)
    problem, _ = with_absent(small_sets(n=60))

    def solver():
        return make("auto", {"candidates": CANDIDATES, "folds": folds, "tol": 1e-3}, seed=1)

    steps = [(s.epoch, {k: np.array(v) for k, v in s.state.items()}) for s in solver().steps(problem)]
    whole = solver().model(problem, steps[-1][1]).arrays()
    assert len(steps) > 5
    for stop in range(0, len(steps) - 1, max(1, len(steps) // 12)):
        *_, last = solver().steps(problem, steps[stop][1])
        assert last.epoch == steps[-1][0]
        for name, array in solver().model(problem, last.state).arrays().items():
            np.testing.assert_array_equal(array, whole[name], err_msg=name)


def test_the_files_of_a_model_over_sets_are_read_again(tmp_path):
    problem = small_sets(n=60)
    _, model = run(problem)
    model.save(tmp_path / "model")
    read, _ = load_model(tmp_path / "model", verify=True)
    np.testing.assert_array_equal(read.scores(problem.X), model.scores(problem.X))
    assert (read.predict_sets(problem.X) != model.predict_sets(problem.X)).nnz == 0
    assert threshold_for(read.set_reliability.curve, 0.6) == threshold_for(model.set_reliability.curve, 0.6)
    arrays = {name: array for name, array in model.arrays().items() if not name.startswith("set_reliability")}
    assert SetPoolModel.from_arrays(model.classes, model.n_features, arrays).set_reliability is None


@pytest.mark.parametrize("params", [{}, {"label_thresholds": True}, {"set_precision": 0.9}])
def test_rows_held_out_let_expect_what_labels_of_new_rows_are_worth(params):
    both = small_sets(n=1200)
    seen = Problem.check_sets(both.X[:600], both.labels[:600], both.tree)
    _, model = run(seen, candidates=CANDIDATES[:1], **params)
    said, true = model.probabilities(both.X[600:]), both.labels[600:].toarray()
    answered = []
    for precision in (0.8, 0.9):
        found = threshold_for(model.set_reliability.curve, precision)
        sure = said >= found.threshold
        assert true[sure].mean() >= precision
        assert found.recall == pytest.approx(true[sure].sum() / true.sum(), abs=0.1)
        answered.append(found.answered)
    assert answered[0] > answered[1] > 0.1


def test_without_candidates_all_that_learn_sets_are_tried_and_a_single_row_is_enough():
    problem = small_sets(n=60)
    _, model = run(problem, candidates=None)
    tried = {trial["solver"] for trial in model.record["trials"]}
    assert tried == {"node_svm", "kernel_ridge", "hierarchical_rls", "hm3"}
    alone = Problem.check_sets(problem.X[:1], np.ones((1, problem.n_classes)), problem.taxonomy)
    last, model = run(alone, candidates=None)
    assert last.converged
    assert model.calibration.threshold == 0.0
    assert model.set_reliability is None
    one = sp.csr_matrix(([True], ([0], [0])), shape=(1, problem.n_classes))
    _, model = run(Problem.check_sets(problem.X[:1], one, problem.taxonomy), candidates=None)
    assert model.predict_sets(problem.X[:1]).indices.tolist() == [0]


def test_each_label_may_have_a_threshold_of_its_own(tmp_path):
    problem = small_sets(n=120)
    _, model = run(problem, label_thresholds=True)
    thresholds = model.calibration.threshold
    assert thresholds.shape == (problem.n_classes,)
    log_odds, sets = model.scores(problem.X), model.predict_sets(problem.X).toarray()
    passes, parent = log_odds > thresholds, problem.tree.parent
    for node in range(problem.n_classes):
        above = sets[:, parent[node]] if parent[node] >= 0 else True
        np.testing.assert_array_equal(sets[:, node], passes[:, node] & above)
    row = problem.X[3]
    assert [name for name, _, _ in model.explain(row.indices, row.data, 0).subtree] == [
        problem.classes[j] for j in np.flatnonzero(sets[3])
    ]
    model.save(tmp_path / "model")
    read, _ = load_model(tmp_path / "model", verify=True)
    np.testing.assert_array_equal(read.calibration.threshold, thresholds)
    with pytest.raises(ProblemError, match="need sets of labels"):
        make("auto", {"label_thresholds": True}).model(Problem.check(np.eye(4), np.arange(4) % 2), {})


def test_thresholds_for_a_precision_are_the_least_whose_bound_reaches_it():
    rng = np.random.default_rng(0)
    values = rng.standard_normal(300).round(1)
    true = rng.random(300) < expit(3.0 * values)
    found = least_precise(pairs(values[:, None], true[:, None]), 0.8)
    tried = np.unique(values)[:-1]
    hits, counts = (np.array([rows[values > at].sum() for at in tried]) for rows in (true, np.ones(300, int)))
    reached = tried[lower_bounds(hits, counts) >= 0.8]
    assert min(reached) <= found < min(value for value in values if value > min(reached))
    assert least_precise(pairs(values[:, None], np.zeros((300, 1))), 0.5) > values.max()
    one, many = small_sets(n=200), SetThresholds(each=True, precision=0.9)
    _, model = run(one, set_precision=0.9)
    assert model.report["held_out_precision"] >= 0.9
    log_odds = rng.standard_normal((200, one.n_classes))
    assert many.of_each(log_odds, one.labels, 0.0).shape == (one.n_classes,)


def test_measures_and_methods_of_other_labels_are_refused():
    with pytest.raises(ProblemError, match="accuracy does not fit these labels; expected one of micro_f1"):
        run(small_sets(), measure="accuracy")
    with pytest.raises(ProblemError, match="centroids needs one label per example"):
        run(small_sets(), candidates=[{"solver": "centroids"}])
    with pytest.raises(ProblemError, match="needs a label tree"):
        run(Problem.check(np.eye(4), np.arange(4) % 2))


@pytest.mark.parametrize("folds", [1, 3])
def test_rows_with_sets_are_held_out_once_at_most_and_never_trained_on(folds):
    problem = small_sets(n=50)
    found = folds_of(problem, folds, 0.2, 0)
    out = np.concatenate([fold.held_out for fold in found])
    assert len(np.unique(out)) == len(out) == (10 if folds == 1 else 50)
    for fold in found:
        assert sorted([*fold.train, *fold.held_out]) == list(range(50))
        assert (fold.problem(problem).labels != problem.labels[fold.train]).nnz == 0


def test_the_curve_is_that_of_naive_counting_ties_included():
    rng = np.random.default_rng(0)
    scores, labels = rng.integers(-5, 5, size=(40, 6)) / 2.0, rng.random((40, 6)) < 0.3
    curve = Curve.from_pairs(pairs(scores, labels))
    assert curve.average_precision == pytest.approx(average_precision_score(labels.ravel(), scores.ravel()))
    values = {cut: f1_score(labels.ravel(), scores.ravel() >= cut) for cut in np.unique(scores)}
    assert curve.micro_f1 == pytest.approx(max(values.values()))
    assert f1_score(labels.ravel(), scores.ravel() > curve.threshold) == pytest.approx(curve.micro_f1)
    p = np.where(labels, expit(scores), expit(-scores))
    assert log_loss(pairs(scores, labels)) == pytest.approx(-np.log(p).mean())


def test_each_sigmoid_is_the_minimum_of_its_penalised_loss_also_of_nodes_that_no_row_has():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((80, 4))
    labels = expit(3 * scores - [0, 1, 3, 40]) > rng.random((80, 4))
    assert not labels[:, 3].any()
    fitted = NodeCalibration.fit(scores, sp.csr_matrix(labels))
    z = (scores - scores.mean(axis=0)) / scores.std(axis=0)
    common, n = fitted.slope.mean(), len(scores)
    for j in range(4):
        count = labels[:, j].sum()
        prior = np.log((count + 0.5) / (n - count + 0.5))

        def loss(v, j=j, prior=prior):
            f = v[0] * z[:, j] + v[1]
            penalty = SLOPE_PENALTY * (v[0] - common) ** 2 + OFFSET_PENALTY * (v[1] - prior) ** 2
            return np.logaddexp(0, np.where(labels[:, j], -f, f)).sum() + penalty / 2

        best = scipy.optimize.minimize(loss, [1.0, prior], tol=1e-10).x
        np.testing.assert_allclose([fitted.slope[j], fitted.offset[j]], best, atol=5e-3)


def test_kernel_ridge_is_that_of_scikit_learn_at_every_node():
    problem = small_sets(n=40)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 40)
    problem = Problem.check_sets(problem.X, problem.labels, problem.taxonomy, weights)
    solver = make("kernel_ridge", {"C": 2.0, "gamma": 0.3})
    [step] = solver.steps(problem)
    assert step.converged
    sides = 2.0 * problem.labels.toarray() - 1.0
    mean = np.average(sides, axis=0, weights=weights)
    peer = KernelRidge(alpha=0.5, kernel="rbf", gamma=0.3)
    peer.fit(problem.X.toarray(), sides - mean, sample_weight=weights)
    scores = solver.model(problem, step.state).parts.scores(problem.X)
    np.testing.assert_allclose(scores, peer.predict(problem.X.toarray()) + mean, atol=1e-8)


@pytest.mark.parametrize("share", [0.5, 0.0])
def test_a_light_member_has_the_large_weights_and_the_mean_scores_of_the_whole_one(monkeypatch, share):
    problem = small_sets(n=120)
    monkeypatch.setattr("solvers.selection.sets.lighter_members.MANY_NUMBERS", 0)
    monkeypatch.setattr("solvers.selection.sets.lighter_members.SHARE", share)
    solver = make("node_svm", {"loss": "squared_hinge", "bias": 1.0})
    *_, step = solver.steps(problem)
    light, whole = light_member(solver, problem, step.state).parts, solver.model(problem, step.state).parts
    assert isinstance(light, LinearModel if share == 0.0 else SparseLinearModel)
    least = share * np.abs(whole.W).max(axis=0)
    expected = np.zeros((problem.n_features, problem.n_classes), whole.W.dtype)
    expected[whole.features] = np.where(np.abs(whole.W) >= least, whole.W, 0.0)
    np.testing.assert_array_equal(light.coef.T if share == 0.0 else light.W.toarray(), expected)
    mean = np.asarray(problem.X.mean(axis=0)).ravel()
    dropped = mean[whole.features] @ np.where(np.abs(whole.W) >= least, 0.0, whole.W)
    np.testing.assert_allclose(light.intercept, whole.intercept + dropped, rtol=1e-5, atol=1e-6)
    assert (np.abs(dropped).max() > 0.01) == (share > 0.0)


def test_machines_of_squares_keep_their_mean_scores_without_small_weights(monkeypatch):
    problem = small_sets(n=120)
    monkeypatch.setattr("solvers.selection.sets.lighter_members.MANY_NUMBERS", 0)
    monkeypatch.setattr("solvers.selection.sets.lighter_members.SHARE", 0.5)
    solver = make("hierarchical_rls", {"bias": 1.0})
    *_, step = solver.steps(problem)
    light, whole = light_member(solver, problem, step.state).parts, solver.model(problem, step.state).parts
    assert isinstance(light, SparseLinearModel)
    assert light.W.nnz < 0.5 * whole.W.size
    means = [model.scores(problem.X).mean(axis=0) for model in (light, whole)]
    np.testing.assert_allclose(*means, rtol=1e-5, atol=1e-6)


def flat_sets(n=200, n_labels=40, n_features=30, seed=0):
    """Rows with about three of many labels, each of which moves some features."""
    rng = np.random.default_rng(seed)
    moved = rng.normal(size=(n_labels, n_features)) * (rng.random((n_labels, n_features)) < 0.3)
    labels = rng.random((n, n_labels)) < 3.0 / n_labels
    X = labels @ moved + 0.5 * rng.normal(size=(n, n_features))
    tree = Taxonomy.flat([f"label {j}" for j in range(n_labels)])
    return Problem.check_sets(sp.csr_matrix(X), sp.csr_matrix(labels), tree)


def test_some_of_many_labels_rank_the_settings_and_the_best_one_is_tried_on_all(monkeypatch):
    monkeypatch.setattr("solvers.selection.candidates.MANY_LABELS", 40)
    problem = flat_sets()
    solver = make("auto", {"measure": "average_precision"}, seed=1)
    *_, last = solver.steps(problem)
    model = solver.model(problem, last.state)
    whole, *sketches = model.record["trials"]
    assert "sketch" not in whole
    assert len(sketches) > 5
    assert {trial["sketch"] for trial in sketches} == {"labels"}
    found = [trial["measures"]["average_precision"] for trial in sketches]
    assert found == sorted(found, reverse=True)
    assert (whole["solver"], whole["params"]) == (sketches[0]["solver"], sketches[0]["params"])
    [member] = model.record["members"]
    assert (member["solver"], member["params"]) == (whole["solver"], whole["params"])
    assert model.scores(problem.X).shape == problem.labels.shape
    every = fitted(
        make("auto", {"candidates": [{"solver": whole["solver"], "params": whole["params"]}]}, seed=1), problem
    )
    np.testing.assert_array_equal(every[1].scores(problem.X), model.scores(problem.X))


def test_labels_of_a_tree_are_not_sketched(monkeypatch):
    monkeypatch.setattr("solvers.selection.candidates.MANY_LABELS", 2)
    _, model = fitted(make("auto", {}, seed=1), small_sets(n=60))
    assert all("sketch" not in trial for trial in model.record["trials"])


@pytest.mark.parametrize("solver", ["node_svm", "kernel_ridge"])
def test_of_many_weights_small_ones_are_not_kept_and_trials_are_measured_without_them(monkeypatch, tmp_path, solver):
    problem = small_sets(n=120)
    candidates = [{"solver": solver, "params": {"C": 1.0}}]
    _, whole = run(problem, candidates=candidates)
    monkeypatch.setattr("solvers.selection.sets.lighter_members.MANY_NUMBERS", 0)
    monkeypatch.setattr("solvers.selection.sets.lighter_members.SHARE", 0.5)
    monkeypatch.setattr("solvers.selection.sets.lighter_members.KERNEL_SHARE", 0.5)
    _, light = run(problem, candidates=candidates)
    files = {}
    for name, model in (("whole", whole), ("light", light)):
        model.save(tmp_path / name, {})
        files[name] = sum(file.stat().st_size for file in (tmp_path / name).glob("member*.npy"))
    if solver == "node_svm":
        assert 0 < light.member.parts.nonzero_weights < 0.7 * whole.member.parts.nonzero_weights
        assert whole.record["trials"][0]["measures"]["log_loss"] != light.record["trials"][0]["measures"]["log_loss"]
    else:
        assert 0 < np.count_nonzero(light.member.parts.coefficients) < 0.5 * light.member.parts.coefficients.size
        assert files["light"] < 0.8 * files["whole"]
    read, _ = load_model(tmp_path / "light")
    np.testing.assert_array_equal(read.scores(problem.X), light.scores(problem.X))
