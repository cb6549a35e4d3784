"""The scikit-learn face."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from drivers import DRIVERS
from problems import settings, shape_of, small, small_sets
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.estimator_checks import check_class_weight_classifiers, parametrize_with_checks

from solvers.core.base import ParamsError
from solvers.core.machine import SingleLabelParams
from solvers.core.problem import ProblemError
from solvers.core.stored_models import load_model
from solvers.estimator import PolymarginClassifier
from solvers.labels.taxonomy import TaxonomyError
from solvers.registry import SOLVERS, UnknownSolverError

EXPECTED_FAILURES = {
    "check_no_attributes_set_in_init": "the methods' parameters are attributes, so that they can be read and searched",
    "check_sample_weight_equivalence_on_dense_data": "equal to the duality gap asked for, not to 1e-7",
    "check_sample_weight_equivalence_on_sparse_data": "equal to the duality gap asked for, not to 1e-7",
    "check_class_weight_classifiers": "it takes an intercept, which linear machines have only with a bias",
}

FAILURES_OF = {
    "complement_naive_bayes": dict.fromkeys(("check_classifiers_train",), "it reads features that are not negative"),
}

# checks of form, for which methods that are slow by design need not go on to the end
BRIEF = {"multiboost": {"max_epochs": 5}}


# a machine, and a code of others: the rest differ in nothing that the checks are about
FIRST = ("weston_watkins", "output_code")
# of methods that share the code that drives them one represents the others
ALIKE = {name for methods in DRIVERS for name in methods[1:]}


def of_methods(names):
    return parametrize_with_checks(
        [PolymarginClassifier(name, **BRIEF.get(name, {})) for name in names],
        expected_failed_checks=lambda made: EXPECTED_FAILURES | FAILURES_OF.get(made.solver, {}),
    )


@of_methods(FIRST)
@pytest.mark.each_method
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_takes_it_for_one_of_its_own(estimator, check):
    check(estimator)


@of_methods([name for name in SOLVERS if SOLVERS[name].handles.flat and name not in {*FIRST, *ALIKE}])
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_takes_one_of_each_other_kind_for_one_of_its_own(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "name", [name for name, kind in SOLVERS.items() if kind.handles.flat and issubclass(kind.Params, SingleLabelParams)]
)
@pytest.mark.filterwarnings("ignore")
def test_with_a_bias_weights_of_classes_do_what_scikit_learn_expects(name):
    check_class_weight_classifiers(name, PolymarginClassifier(name, bias=1.0))


# What is chosen depends on the rows that are held out; AdaBoost's choices among equally good learners are turned by the
# least rounding, and tests of its own compare first rounds
@pytest.mark.parametrize(
    "name",
    [
        name
        for name, method in SOLVERS.items()
        if method.handles.flat and not method.chooses and not name.startswith("adaboost")
    ],
)
def test_weights_equal_repeated_rows(name):
    problem = small(n=30)
    times = np.random.default_rng(0).integers(0, 3, 30)
    times[:5] = 1
    params = {"solver": name} | settings(name, tol=1e-9, max_epochs=100_000)
    weighted = PolymarginClassifier(**params).fit(problem.X, problem.y, sample_weight=times)
    repeated = PolymarginClassifier(**params).fit(
        problem.X[np.repeat(np.arange(30), times)], np.repeat(problem.y, times)
    )
    ours, theirs = (shape_of(made.model_, problem) for made in (weighted, repeated))
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


@pytest.mark.parametrize("name", ["crammer_singer", "one_vs_rest", "spoc"])
def test_a_bias_gives_an_intercept(name):
    problem = small(n=60, k=3)
    params = settings(name, bias=1.0, tol=1e-3)
    many = PolymarginClassifier(name, **params).fit(problem.X, problem.y)
    assert many.intercept_.shape == (3,)
    assert np.abs(many.intercept_).max() > 1e-3
    np.testing.assert_allclose(many.decision_function(np.zeros((1, 12)))[0], many.intercept_, rtol=1e-6)
    two = PolymarginClassifier(name, **params).fit(problem.X, problem.y > 0)
    assert two.intercept_.shape == (1,)
    np.testing.assert_allclose(two.decision_function(np.zeros((1, 12))), two.intercept_, rtol=1e-6)
    assert not PolymarginClassifier(name, **settings(name)).fit(problem.X, problem.y).intercept_.any()


@pytest.mark.parametrize(("labels", "keys"), [([10, 20, 30], [20, 30.0]), (["a", "b", "c"], ["b", "c"])])
def test_weights_of_classes_are_given_by_label(labels, keys):
    problem = small(n=60, k=3)
    y = np.array(labels)[problem.y]
    times = np.array([1.0, 3.0, 0.5])
    by_label = PolymarginClassifier("weston_watkins", class_weight=dict(zip(keys, times[1:], strict=True))).fit(
        problem.X, y
    )
    by_example = PolymarginClassifier("weston_watkins").fit(problem.X, y, sample_weight=times[problem.y])
    np.testing.assert_array_equal(by_label.coef_, by_example.coef_)
    with pytest.raises(ProblemError, match="'rose'"):
        PolymarginClassifier("weston_watkins", class_weight={"rose": 2.0}).fit(problem.X, y)


def test_weights_below_zero_are_refused_with_their_rows() -> None:
    X, y = np.eye(4), [0, 0, 1, 1]
    for weight in (-1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match=f"at least 0 and finite; it is {weight} in row 2, and 1 more"):
            PolymarginClassifier("weston_watkins").fit(X, y, sample_weight=[1.0, 0.0, weight, weight])


def test_weights_of_classes_by_keys_of_another_type_are_refused():
    problem = small(n=60, k=3)
    for y, weights, words in (
        (problem.y, {"1": 5.0, "2": 2.0}, "int, as 1, not str; got '1', '2'"),
        (problem.y.astype(str), {1: 5.0}, "str, as '1', not int; got 1"),
    ):
        with pytest.raises(ValueError, match=words):
            PolymarginClassifier("weston_watkins", class_weight=weights).fit(problem.X, y)


def test_balanced_weighs_the_examples_of_a_class_in_all_machines_of_one_vs_rest():
    problem = small(n=80, k=4)
    X, y = problem.X[problem.y > 0], problem.y[problem.y > 0]
    settings = {"tol": 1e-10, "max_iter": 1_000_000}
    ours = PolymarginClassifier("one_vs_rest", loss="squared_hinge", bias=1.0, class_weight="balanced", tol=1e-9)
    peer = LinearSVC(**settings).fit(X, y, sample_weight=compute_sample_weight("balanced", y))
    np.testing.assert_allclose(ours.fit(X, y).coef_, peer.coef_, atol=1e-4)
    one_machine = LinearSVC(**settings, class_weight="balanced").fit(X, y)
    assert np.abs(ours.coef_ - one_machine.coef_).max() > 1e-2


def test_a_saved_model_names_the_labels(tmp_path):
    problem = small(n=60, k=3)
    fitted = PolymarginClassifier("weston_watkins").fit(problem.X, np.array(["a", "b", "c"])[problem.y])
    fitted.model_.save(tmp_path / "m")
    model, _ = load_model(tmp_path / "m")
    labels = np.array(model.classes)[model.predict(sp.csr_matrix(problem.X.toarray()))]
    assert labels.tolist() == fitted.predict(problem.X).tolist()


def test_balanced_is_what_scikit_learn_calls_so():
    problem = small(n=80, k=4)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 80)
    ours = PolymarginClassifier("crammer_singer", bias=1.0, class_weight="balanced", tol=1e-9, max_epochs=100_000)
    peer = LinearSVC(multi_class="crammer_singer", class_weight="balanced", tol=1e-10, max_iter=1_000_000)
    ours.fit(problem.X, problem.y, sample_weight=weights)
    peer.fit(problem.X, problem.y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=1e-4)


def test_a_path_gives_one_fitted_classifier_for_each_C_in_fewer_epochs():  # noqa: N802
    problem = small(n=200, d=100, k=6)  # of fewer features proximal steps end a run in whatever epoch they begin
    y = np.array(["pear", "apple", "fig", "kiwi", "plum", "lime"])[problem.y]
    Cs = np.array([1.0, 0.03, 3.0, 0.3, 0.1, 1.0])
    given = PolymarginClassifier("weston_watkins", bias=1.0, tol=1e-3, seed=5)
    fitted = given.path(problem.X, y, Cs)
    assert [classifier.C for classifier in fitted] == Cs.tolist()
    assert not hasattr(given, "model_")
    assert fitted[0] is fitted[-1]
    alone = {C: clone(given).set_params(C=C).fit(problem.X, y) for C in set(Cs.tolist())}
    for classifier in fitted:
        other = alone[classifier.C]
        assert classifier.gap_ == classifier.history_[-1].gap <= 1e-3
        assert classifier.history_[-1].primal == pytest.approx(other.history_[-1].primal, rel=2e-3)
        assert (classifier.classes_ == other.classes_).all()
        assert classifier.n_features_in_ == 100
        assert (classifier.predict(problem.X) == other.predict(problem.X)).mean() > 0.97
        assert classifier.get_params() == other.get_params()
    assert sum({id(c): c.n_iter_ for c in fitted}.values()) < sum(c.n_iter_ for c in alone.values())


def test_a_path_refuses_what_is_no_C():  # noqa: N802
    problem = small()
    with pytest.raises(ValueError, match="Cs is empty"):
        PolymarginClassifier("weston_watkins").path(problem.X, problem.y, [])
    with pytest.raises(ParamsError, match="C: Input should be greater than 0"):
        PolymarginClassifier("weston_watkins").path(problem.X, problem.y, [1.0, -1.0])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_numbers_that_the_service_would_scale_are_warned_about():
    X, y = load_digits(n_class=3, return_X_y=True)
    X = X[:, [2, 3, 4]] + 0.1
    with pytest.warns(UserWarning, match="'1' has .* put a StandardScaler in front"):
        PolymarginClassifier("crammer_singer", max_epochs=2).fit(X * [1.0, 1e5, 1.0], y)
    with pytest.warns(UserWarning, match="very small"):
        PolymarginClassifier("crammer_singer", max_epochs=2).fit(X * 1e-9, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        PolymarginClassifier("crammer_singer", max_epochs=2).fit(X, y)


def test_indices_of_64_bits_are_read_as_those_of_32():
    problem = small()
    X, y, wide = problem.X, problem.y, problem.X.copy()
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    classifier = PolymarginClassifier("crammer_singer")
    coef = classifier.fit(X, y).coef_
    np.testing.assert_array_equal(classifier.fit(wide, y).coef_, coef)
    np.testing.assert_array_equal(classifier.decision_function(wide), classifier.decision_function(X))
    too_wide = sp.csr_matrix(([1.0, 1.0], [0, 2**31], [0, 1, 2]), shape=(2, 2**31 + 1))
    with pytest.raises(ValueError, match="2 stored values in 2,147,483,649 columns"):
        classifier.fit(too_wide, [0, 1])


def test_sparse_and_dense_input_give_the_same_bits():
    problem = small()
    dense = PolymarginClassifier("weston_watkins").fit(problem.X.toarray(), problem.y)
    np.testing.assert_array_equal(dense.coef_, PolymarginClassifier("weston_watkins").fit(problem.X, problem.y).coef_)
    np.testing.assert_allclose(dense.decision_function(problem.X), problem.X @ dense.coef_.T, rtol=1e-4, atol=1e-5)


def test_history_and_gap_tell_how_training_went():
    problem = small(n=100)
    classifier = PolymarginClassifier("weston_watkins", tol=1e-3).fit(problem.X, problem.y)
    assert classifier.gap_ == classifier.history_[-1].gap <= 1e-3
    assert classifier.history_[-1].converged
    assert classifier.n_iter_ == classifier.history_[-1].epoch
    seconds = [record.seconds for record in classifier.history_]
    assert seconds == sorted(seconds)


def test_grid_search_clone_and_pipelines_reach_the_methods_own_parameters():
    problem = small(n=100)
    search = GridSearchCV(
        PolymarginClassifier("weston_watkins"), {"C": [0.01, 1.0], "solver": ["weston_watkins", "one_vs_rest"]}, cv=2
    )
    search.fit(problem.X, problem.y)
    assert set(search.best_params_) == {"C", "solver"}
    copy = clone(PolymarginClassifier("one_vs_rest", C=3.0, loss="squared_hinge"))
    assert (copy.C, copy.loss, copy.get_params()["tol"]) == (3.0, "squared_hinge", 1e-2)
    pipeline = make_pipeline(MaxAbsScaler(), PolymarginClassifier("weston_watkins"))
    pipeline.set_params(polymarginclassifier__C=0.5)
    assert pipeline.fit(problem.X, problem.y)[-1].model_ is not None


def test_a_wrong_parameter_is_named_with_its_nearest():
    problem = small()
    with pytest.raises(ParamsError, match="did you mean 'tol'"):
        PolymarginClassifier("weston_watkins", toll=0.1).fit(problem.X, problem.y)
    with pytest.raises(ParamsError, match="C: Input should be greater than 0"):
        PolymarginClassifier("weston_watkins", C=-1.0).fit(problem.X, problem.y)
    with pytest.raises(UnknownSolverError, match="did you mean 'weston_watkins'"):
        PolymarginClassifier("weston_watkin").fit(problem.X, problem.y)
    with pytest.raises(ValueError, match="no parameter 'loss'"):
        PolymarginClassifier("weston_watkins").set_params(loss="hinge")


def test_what_scikit_learn_names_otherwise_is_named():
    for given, own in (("random_state", "seed"), ("max_iter", "max_epochs"), ("n_jobs", "threads")):
        with pytest.raises(ValueError, match=f"no such parameter; use {own}"):
            PolymarginClassifier("weston_watkins", **{given: 1}).fit([[1.0], [2.0]], ["a", "b"])


@pytest.mark.parametrize("y", [["a", None, "b", None], [1.0, np.nan, 2.0, np.nan], np.array(["a", None, "b", None])])
def test_rows_without_a_label_are_named(y):
    with pytest.raises(ValueError, match="y has no label in 2 of 4 rows: 1, 3"):
        PolymarginClassifier("weston_watkins").fit(np.eye(4), y)


def test_what_is_shown_of_a_classifier_is_its_solver_and_what_differs_from_the_defaults():
    assert repr(PolymarginClassifier()) == "PolymarginClassifier('auto')"
    shown = repr(PolymarginClassifier("weston_watkins", C=2.0, tol=0.01, seed=4))
    assert shown == "PolymarginClassifier('weston_watkins', seed=4, C=2.0)"


def test_strings_are_labels_and_bits_do_not_depend_on_the_number_of_threads():
    problem = small()
    names = np.array(["pear", "apple", "fig", "kiwi", "plum"])[problem.y]
    one, two = (PolymarginClassifier("weston_watkins", threads=threads).fit(problem.X, names) for threads in (1, 2))
    assert set(one.predict(problem.X)) <= set(names)
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_digits_are_learned_as_well_as_by_linear_svc():
    X, y = load_digits(return_X_y=True)
    X = sp.csr_matrix(X / 16)
    train, test = np.arange(len(y)) % 3 > 0, np.arange(len(y)) % 3 == 0
    peer = LinearSVC(C=1.0, fit_intercept=False).fit(X[train], y[train]).score(X[test], y[test])
    for name in ("weston_watkins", "crammer_singer", "one_vs_rest"):
        assert PolymarginClassifier(name).fit(X[train], y[train]).score(X[test], y[test]) > peer - 0.02


def test_squared_hinge_is_the_machine_of_liblinear():
    problem = small(n=100, k=3)
    ours = PolymarginClassifier("one_vs_rest", loss="squared_hinge", tol=1e-9, C=0.5).fit(problem.X, problem.y)
    peer = LinearSVC(C=0.5, fit_intercept=False, tol=1e-10, max_iter=1_000_000).fit(problem.X, problem.y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-4)


@pytest.mark.parametrize(
    ("ours", "peer"),
    [
        ({"solver": "one_vs_rest", "loss": "squared_hinge"}, {}),
        ({"solver": "one_vs_rest", "loss": "hinge"}, {"loss": "hinge"}),
        ({"solver": "crammer_singer"}, {"multi_class": "crammer_singer"}),
    ],
)
def test_two_classes_have_the_weights_and_scores_of_liblinear(ours, peer):
    problem = small(n=100, k=2)
    fitted = PolymarginClassifier(**ours, bias=1.0, tol=1e-9, max_epochs=100_000).fit(problem.X, problem.y)
    theirs = LinearSVC(tol=1e-10, max_iter=1_000_000, **peer).fit(problem.X, problem.y)
    for name in ("coef_", "intercept_"):
        np.testing.assert_allclose(getattr(fitted, name), getattr(theirs, name), atol=1e-4)
    scores = fitted.decision_function(problem.X)
    np.testing.assert_allclose(scores, theirs.decision_function(problem.X), atol=3e-4)
    np.testing.assert_allclose(scores, (problem.X @ fitted.coef_.T)[:, 0] + fitted.intercept_, atol=1e-5)
    np.testing.assert_array_equal(fitted.predict(problem.X), fitted.classes_[(scores > 0).astype(int)])


def test_crammer_singer_is_the_machine_of_liblinear():
    problem = small(n=60, k=4)
    ours = PolymarginClassifier("crammer_singer", tol=1e-9, max_epochs=100_000).fit(problem.X, problem.y)
    peer = LinearSVC(multi_class="crammer_singer", fit_intercept=False, tol=1e-10, max_iter=1_000_000)
    np.testing.assert_allclose(ours.coef_, peer.fit(problem.X, problem.y).coef_, atol=1e-4)


EDGES = [("root", "sport"), ("root", "music"), ("sport", "ball"), ("ball", "tennis"), ("music", "jazz")]
SETS = [["tennis"], ["jazz", "sport"], [], ["music"], ["ball", "jazz"]] * 6
# a ranker of candidates learns when to answer with a set from held-out rows, of which there are few here
MULTILABEL = [name for name, kind in SOLVERS.items() if kind.handles.multilabel and not kind.uses_names]


@pytest.mark.parametrize("method", MULTILABEL)
def test_sets_of_labels_are_learnt_and_predicted_as_lists(method):
    rng = np.random.default_rng(0)
    X = np.tile(3 * np.eye(5), (6, 1)) + 0.05 * rng.standard_normal((30, 5))
    params = {"C": 100.0, "bias": 1.0}
    known = {name: value for name, value in params.items() if name in SOLVERS[method].Params.model_fields}
    model = PolymarginClassifier(method, hierarchy=EDGES, **known).fit(X, SETS)
    assert model.predict(X)[:5] == [
        ["sport", "ball", "tennis"], ["sport", "music", "jazz"], [], ["music"], ["sport", "music", "ball", "jazz"]
    ]  # fmt: skip
    assert model.score(X, SETS) == 1.0
    assert model.score(X[:2], [["tennis"], ["tennis"]]) == 0.5
    assert model.classes_.tolist() == ["sport", "music", "ball", "jazz", "tennis"]
    assert model.decision_function(X).shape == (30, 5)
    assert len(model.orphans_) == 24
    assert model.n_features_in_ == 5
    weighted = PolymarginClassifier(method, hierarchy=EDGES).fit(X, SETS, sample_weight=np.arange(30.0) % 5 != 0)
    assert weighted.orphans_.rows.max() < 24


def test_a_method_over_sets_learns_single_labels_as_their_paths():
    y = np.array(["tennis", "jazz", "sport"] * 10)
    X = np.tile(3 * np.eye(3), (10, 1))
    model = PolymarginClassifier("hm3", hierarchy=EDGES, C=10.0).fit(X, y)
    assert model.predict(X[:3]) == [["sport", "ball", "tennis"], ["music", "jazz"], ["sport"]]
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("method", MULTILABEL)
def test_without_a_hierarchy_sets_hold_what_was_given_and_nothing_above(method):
    X = np.tile(3 * np.eye(5), (6, 1))
    known = {"C": 100.0} if "C" in SOLVERS[method].Params.model_fields else {}
    model = PolymarginClassifier(method, **known).fit(X, SETS)
    assert model.classes_.tolist() == sorted({label for labels in SETS for label in labels})
    assert len(model.orphans_) == 0
    assert [sorted(labels) for labels in model.predict(X)] == [sorted(labels) for labels in SETS]


def test_sets_of_labels_that_cannot_be_learnt_are_refused():
    X = np.eye(30)
    with pytest.raises(ValueError, match="y has 30 lists of labels; X has 29 rows"):
        PolymarginClassifier("hm3", hierarchy=EDGES).fit(X[:29], SETS)
    with pytest.raises(TaxonomyError, match="'golf'"):
        PolymarginClassifier("hm3", hierarchy=EDGES).fit(X[:2], [["golf"], []])


@pytest.mark.parametrize("method", ["auto", "softmax"])
def test_probabilities_add_up_to_one_and_lead_to_the_same_labels(method):
    problem = small(n=200, k=4)
    made = PolymarginClassifier(method).fit(problem.X, problem.y)
    probabilities = made.predict_proba(problem.X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(made.classes_[probabilities.argmax(axis=1)], made.predict(problem.X))
    # as likely labels are right as often: on training rows more often still
    assert probabilities.max(axis=1).mean() <= (made.predict(problem.X) == problem.y).mean() + 0.05


def test_methods_without_probabilities_have_no_method_for_them():
    assert not hasattr(PolymarginClassifier("crammer_singer"), "predict_proba")


def test_an_end_above_the_tolerance_is_warned_of():
    problem = small(n=60)
    with pytest.warns(ConvergenceWarning, match="weston_watkins has ended at a relative duality gap of"):
        PolymarginClassifier("weston_watkins", tol=1e-9, max_epochs=1).fit(problem.X, problem.y)


def test_probabilities_of_sets_are_of_each_node_for_itself():
    problem = small_sets(n=80)
    names = np.array(problem.classes)
    sets = [names[row.indices].tolist() for row in problem.labels]
    edges = list(problem.taxonomy.edges)
    candidates = [{"solver": "node_svm", "grid": {"C": [0.1, 1.0]}}]
    made = PolymarginClassifier("auto", hierarchy=edges, candidates=candidates).fit(problem.X, sets)
    probabilities = made.predict_proba(problem.X)
    assert probabilities.shape == (80, len(names))
    assert ((probabilities > 0) & (probabilities < 1)).all()
    said = [set(np.flatnonzero(row).tolist()) for row in made.model_.predict_sets(problem.X).toarray()]
    assert [{made.classes_.tolist().index(label) for label in labels} for labels in made.predict(problem.X)] == said


@pytest.mark.parametrize("given", [np.asarray, sp.csr_matrix])
def test_indicator_matrices_are_learnt_and_come_back(given):
    rng = np.random.default_rng(2)
    said = rng.random((60, 3)) < 0.4
    X = np.where(said, 3.0, -3.0) + 0.1 * rng.normal(size=said.shape)
    y = given(said.astype(int))
    classifier = PolymarginClassifier("node_svm", C=10.0).fit(X, y)
    found = classifier.predict(X)
    assert type(found) is type(y)
    np.testing.assert_array_equal(sp.csr_matrix(found).toarray(), said)
    assert classifier.score(X, y) == 1.0


def test_the_columns_of_a_data_frame_are_the_labels_of_its_indicators():
    rng = np.random.default_rng(2)
    said = rng.random((60, 3)) < 0.4
    X = np.where(said, 3.0, -3.0) + 0.1 * rng.normal(size=said.shape)
    y = pd.DataFrame(said, columns=["tin", "cake", "bread"])
    classifier = PolymarginClassifier("node_svm", C=10.0).fit(X, y)
    assert set(classifier.classes_) == set(y.columns)
    np.testing.assert_array_equal(classifier.predict(X), said)
    assert classifier.score(X, y[["bread", "tin", "cake"]]) == 1.0
    edges = [("root", "metal"), ("root", "food"), ("metal", "tin"), ("food", "cake"), ("food", "bread")]
    along = PolymarginClassifier("node_svm", C=10.0, bias=1, hierarchy=edges).fit(X, y.astype(int))
    np.testing.assert_array_equal(along.predict(X), said)
    assert along.score(X, y) == 1.0
    with pytest.raises(ValueError, match="must have different names"):
        classifier.fit(X, y.set_axis(["a", "a", "b"], axis=1))


def test_the_older_name_of_the_solver_is_accepted_with_a_warning():
    with pytest.deprecated_call(match="solver"):
        named = PolymarginClassifier(method="softmax", C=2.0)
    assert named.get_params()["solver"] == "softmax"
    assert "method" not in named.get_params()
    with pytest.deprecated_call(match="solver"):
        assert named.set_params(method="weston_watkins").solver == "weston_watkins"
    with pytest.deprecated_call(match="solver"):
        assert named.method == "weston_watkins"
    assert clone(named).solver == "weston_watkins"


def test_a_hierarchy_may_have_several_parents_where_the_method_takes_graphs():
    edges = [("root", "craft"), ("root", "food"), ("craft", "baking"), ("food", "baking")]
    y = [["baking"], ["food"], []] * 8
    X = np.eye(3)[np.arange(24) % 3] * 5
    model = PolymarginClassifier("hm3", hierarchy=edges, C=10.0).fit(X, y)
    assert model.predict(X[:3]) == [["craft", "food", "baking"], ["food"], []]
    assert len(model.orphans_) == 16  # baking comes without both parents
    with pytest.raises(ProblemError, match="weston_watkins needs a label tree, but 'baking' has 2 parents"):
        PolymarginClassifier("weston_watkins", hierarchy=edges).fit(X, ["craft", "food", "baking"] * 8)
