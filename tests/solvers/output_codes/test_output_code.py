"""Binary machines under a fixed code, whatever trains them."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems import linear_map, small
from training import fitted, machine

from solvers.core.base import ParamsError
from solvers.core.machine import SingleLabelParams
from solvers.core.memory import TooLargeError
from solvers.core.problem import Problem
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.core.stored_models import load_model
from solvers.kernel_svm import kernel_machine
from solvers.output_codes.code_families import make
from solvers.output_codes.code_model import CodeModel, LinearCodeModel
from solvers.output_codes.coded import can_be_base
from solvers.output_codes.codes import CodeError
from solvers.output_codes.columns import one_by_one, training
from solvers.output_codes.decoding import decode
from solvers.output_codes.design.discrete import expected_error, greedy_code
from solvers.registry import SOLVERS, parse_params

BASES = [name for name, kind in SOLVERS.items() if can_be_base(kind) and issubclass(kind.Params, SingleLabelParams)]


def solver(threads: int = 1, seed: int = 0, name: str = "output_code", **params):
    return machine(name, seed=seed, threads=threads, **params)


def trained(problem: Problem, **params):
    return fitted(solver(**params), problem)


def numbers(step):
    return step.epoch, step.primal, step.dual


def copied(step):
    return step.epoch, step.primal, step.dual, {name: np.array(array) for name, array in step.state.items()}


def alone(problem: Problem, code, t: int, base: str, **params):
    """The margins of a column's machine on all examples, trained on its own."""
    rows = np.flatnonzero(code[:, t][problem.y])
    y = (code[:, t][problem.y[rows]] > 0).astype(int)
    part = Problem.check(problem.X[rows], y, ["-", "+"], problem.weights[rows])
    method = machine(base, **params)
    *_, last = method.steps(part)
    scores = method.model(part, last.state).scores(problem.X)
    return last, (scores[:, 1] - scores[:, 0]) / method.lead


def test_a_method_that_chooses_others_is_no_base_method():
    with pytest.raises(ParamsError, match="auto cannot be a base method"):
        solver(base="auto")


@pytest.mark.parametrize("params", [{}, pytest.param({"base": "weston_watkins"}, marks=pytest.mark.slow)])
def test_a_designed_code_is_the_greedy_one_for_the_answers_of_a_random_codes_machines(params, tmp_path):
    problem = small(n=80, k=6)
    shared = {"tol": 1e-5, "n_columns": 12, "decoding": "hamming"} | params
    _, drawn = trained(problem, code="dense_random", **shared)
    last, model = trained(problem, code="designed", **shared)
    answers = np.where(drawn.margins(problem.X) > 0, 1, -1)
    np.testing.assert_array_equal(model.margins(problem.X), drawn.margins(problem.X))
    code, errors = greedy_code(answers, problem.y, 6)
    np.testing.assert_array_equal(model.code, code)
    assert model.report["designed_error"] == errors[-1] == expected_error(answers, problem.y, code)
    assert errors[-1] <= expected_error(answers[:, :1], problem.y, code[:, :1])
    # by their distances, ties apart, the rows answer as the design has it
    products = answers @ code.T
    assert (products[np.arange(80), model.predict(problem.X)] == products.max(axis=1)).all()
    _, auto = trained(problem, code="designed", **shared | {"decoding": "auto"})
    np.testing.assert_array_equal(auto.scores(problem.X), model.scores(problem.X))
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m")[0].scores(problem.X), model.scores(problem.X))
    assert last.converged


@pytest.mark.parametrize("base", [*BASES, "multiboost_cw"])
def test_every_flat_method_trains_columns(base):
    problem = small(n=60, k=4)
    last, model = trained(problem, base=base, code="all_pairs", max_epochs=100 if base in BASES else 10)
    assert last.converged == (base in BASES)
    assert model.code.shape == (4, 6)
    assert (model.predict(problem.X) == problem.y).mean() > 0.5
    F = model.scores(problem.X)
    assert F.shape == (60, 4)
    np.testing.assert_allclose(model.score_one(problem.X[5].indices, problem.X[5].data), F[5], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "base", ["weston_watkins", pytest.param("lee_lin_wahba", marks=pytest.mark.slow), "one_vs_rest", "spoc"]
)
def test_columns_are_trained_as_if_alone_on_the_examples_that_take_part(base, monkeypatch):
    monkeypatch.setattr(training, "DENSE", 2.0)
    problem, code = small(n=80), make("sparse_random", 5)
    extra = {"kernel": "linear"} if base == "spoc" else {}
    last, model = trained(problem, base=base, matrix=code.tolist(), tol=1e-4, decoding="hamming", base_params=extra)
    assert isinstance(model, CodeModel)
    h = model.margins(problem.X)
    values = np.zeros(2)
    for t in range(code.shape[1]):
        step, expected = alone(problem, code, t, base, tol=1e-4, **extra)
        np.testing.assert_allclose(h[:, t], expected, atol=1e-5)
        values += step.primal, step.dual
    np.testing.assert_allclose([last.primal, last.dual], values, rtol=1e-12)


@pytest.mark.parametrize("family", ["one_vs_rest", "dense_random", "sparse_random", "all_pairs"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_all_columns_at_once_are_the_columns_one_by_one(family, loss, monkeypatch):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 80)
    problem = Problem.check(small(n=80).X, small(n=80).y, weights=weights)
    params = {"code": family, "tol": 1e-7, "max_epochs": 100_000, "bias": 1.0, "base_params": {"loss": loss}}
    if family.endswith("random"):
        params["n_columns"] = 12
    once, model = trained(problem, **params)
    monkeypatch.setattr(training, "DENSE", 2.0)
    single, other = trained(problem, **params)
    # a machine of two classes holds each column twice
    assert single.primal == pytest.approx(2 * once.primal, rel=1e-6)
    np.testing.assert_allclose(model.scores(problem.X), other.scores(problem.X), atol=1e-3)


def test_one_against_the_rest_is_the_machine_of_that_name():
    problem = small(n=80)
    last, model = trained(problem, tol=1e-8, max_epochs=100_000)
    other, machine = trained(problem, name="one_vs_rest", tol=1e-8, max_epochs=100_000)
    assert last.primal == other.primal
    F = machine.scores(problem.X)
    np.testing.assert_allclose(5 * model.scores(problem.X), 2 * F - F.sum(axis=1, keepdims=True), atol=1e-9)
    np.testing.assert_array_equal(model.predict(problem.X), machine.predict(problem.X))


def test_codes_with_zeros_are_decoded_by_votes_where_nothing_else_is_asked_for():
    problem = small(n=60)
    _, pairs = trained(problem, code="all_pairs")
    assert pairs.decoding == "hamming"
    _, squared = trained(problem, code="all_pairs", decoding="loss", base_params={"loss": "squared_hinge"})
    assert squared.loss == "squared_hinge"
    _, dense = trained(problem, code="exhaustive")
    assert isinstance(dense, LinearCodeModel)


def test_margins_have_the_unit_of_the_loss_whichever_the_method():
    problem = small(n=60, k=2)
    margins = {}
    for base in ("one_vs_rest", "crammer_singer", "lee_lin_wahba", "maximum_margin_regression", "reinforced"):
        C = 0.5 if base == "crammer_singer" else 1.0
        _, model = trained(problem, base=base, C=C, tol=1e-8, max_epochs=100_000, decoding="hamming")
        margins[base] = model.margins(problem.X).ravel()
    for base in ("one_vs_rest", "crammer_singer"):
        own = np.where(problem.y == 1, 1, -1) * margins[base]
        assert np.abs(own - 1).min() < 1e-3
    for base in ("crammer_singer",):
        np.testing.assert_allclose(margins[base], margins["one_vs_rest"], atol=2e-3)


@pytest.mark.parametrize("decoding", ["hamming", "loss"])
def test_the_model_decodes_by_the_definition(decoding):
    problem, code = small(n=60), make("sparse_random", 5)
    for base, loss in (("one_vs_rest", "squared_hinge"), ("weston_watkins", "hinge")):
        extra = {"loss": loss} if base == "one_vs_rest" else {}
        _, model = trained(problem, base=base, matrix=code.tolist(), decoding=decoding, base_params=extra)
        h = model.margins(problem.X)
        for i in (0, 7):
            for r in range(5):
                products = code[r] * h[i]
                if decoding == "hamming":
                    expected = -((1 - np.sign(products)) / 2).sum()
                else:
                    expected = -(np.maximum(0, 1 - products) ** (2 if loss == "squared_hinge" else 1)).sum()
                assert model.scores(problem.X)[i, r] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("params", "kind"),
    [
        ({"code": "exhaustive"}, LinearCodeModel),
        ({"code": "exhaustive", "decoding": "hamming"}, CodeModel),
        ({"code": "all_pairs", "base": "weston_watkins", "bias": 1.0, "decoding": "inner_product"}, LinearCodeModel),
        ({"code": "bch", "decoding": "loss", "bias": 1.0}, CodeModel),
        ({"code": "all_pairs", "base": "spoc"}, CodeModel),
        ({"code": "dense_random", "base": "kernel_lee_lin_wahba", "bias": 0.5, "decoding": "loss"}, CodeModel),
        ({"code": "all_pairs", "base": "multiboost_cw", "max_epochs": 5}, CodeModel),
    ],
)
def test_models_are_saved_with_their_code_and_score_the_same_bits(params, kind, tmp_path):
    problem = small(n=60)
    _, model = trained(problem, **params)
    assert type(model) is kind
    model.save(tmp_path / "m")
    for mmap in (True, False):
        loaded, _ = load_model(tmp_path / "m", mmap=mmap, verify=True)
        np.testing.assert_array_equal(loaded.scores(problem.X), model.scores(problem.X))
        np.testing.assert_array_equal(loaded.code, make(params["code"], 5))
        assert loaded.report == model.report
    row = problem.X[3]
    np.testing.assert_allclose(loaded.score_one(row.indices, row.data), model.scores(row)[0], rtol=1e-4, atol=1e-5)
    best, _ = loaded.top(row.indices, row.data, 3)
    assert best[0] == model.predict(row)[0]


def test_few_columns_of_many_classes_are_not_multiplied_out_and_sparse_ones_stay_sparse():
    problem = small(n=200, k=20)
    _, short = trained(problem, code="bch", n_columns=15)
    assert isinstance(short, CodeModel)
    assert short.code.shape[1] < 20
    rng = np.random.default_rng(0)
    # each class has words of its own
    words = sp.csr_matrix(
        (rng.random(600), (np.arange(600) // 3, rng.integers(0, 10, 600) + 10 * (np.arange(600) // 30)))
    )
    text = Problem.check(words, np.arange(200) // 10)
    _, pairs = trained(text, code="all_pairs", base="weston_watkins", decoding="hamming")
    assert isinstance(pairs.columns.parts[0].model, SparseLinearModel)
    assert pairs.columns.parts[0].model.W.nnz < 0.15 * text.n_features * 190
    _, folded = trained(text, code="all_pairs", base="weston_watkins", decoding="inner_product")
    assert isinstance(folded, LinearCodeModel)
    expected = decode(pairs.margins(text.X), pairs.code) / 190
    np.testing.assert_allclose(folded.scores(text.X), expected, atol=1e-6)


def test_kernel_machines_of_all_columns_share_their_support_vectors():
    problem = small(n=60)
    _, model = trained(problem, base="spoc", code="all_pairs")
    assert len(model.columns.parts) == 1
    assert model.columns.parts[0].model.n_support <= 60
    gamma = model.columns.parts[0].model.function.gamma
    _, expected = alone(problem, model.code, 4, "spoc", gamma=gamma)
    np.testing.assert_allclose(model.margins(problem.X)[:, 4], expected, atol=1e-9)


def test_kernel_values_given_beforehand_are_those_of_the_kernel():
    problem = small(n=60)
    D, fresh = problem.X.toarray(), small(n=10, seed=5).X.toarray()
    _, direct = trained(problem, base="spoc", code="all_pairs", tol=1e-7, base_params={"kernel": "linear"})
    gram = Problem.check(D @ D.T, problem.y)
    _, given = trained(gram, base="spoc", code="all_pairs", tol=1e-7, base_params={"kernel": "precomputed"})
    for Z in (D, fresh):
        scores = given.scores(sp.csr_matrix(Z @ D.T))
        np.testing.assert_allclose(scores, direct.scores(sp.csr_matrix(Z)), atol=1e-5)


CASES = [
    {"base": "crammer_singer", "code": "all_pairs"},
    {"base": "spoc", "code": "one_vs_rest"},
    {"base": "lee_lin_wahba", "code": "sparse_random", "n_columns": 8},
    {"base": "multiboost_cw", "code": "one_vs_rest", "max_epochs": 4},
    {"base": "one_vs_rest", "code": "dense_random", "C": 10.0},
]


@pytest.mark.parametrize("params", CASES)
def test_a_run_gone_on_with_anywhere_ends_with_the_same_bits(params, monkeypatch):
    monkeypatch.setattr(one_by_one, "SLICE_CELLS", 1)
    monkeypatch.setattr(kernel_machine, "REPORT_EVERY", 1)
    problem = small(n=40)
    # two passes, as all states together are hundreds of megabytes
    whole = [numbers(step) for step in solver(tol=1e-2, **params).steps(problem)]
    assert len(whole) > 3
    stops = sorted({0, 1, len(whole) // 2, len(whole) - 2})
    steps = enumerate(solver(tol=1e-2, **params).steps(problem))
    states = {at: copied(step)[3] for at, step in steps if at in {*stops, len(whole) - 1}}
    for stop in stops:
        rest = []
        for step in solver(tol=1e-2, **params).steps(problem, states[stop]):
            rest.append(numbers(step))
        np.testing.assert_array_equal(rest, whole[stop + 1 :])
        assert step.state.keys() == states[len(whole) - 1].keys()
        for name, array in states[len(whole) - 1].items():
            np.testing.assert_array_equal(step.state[name], array, err_msg=name)


@pytest.mark.parametrize("params", CASES)
def test_threads_change_no_bit_even_when_their_number_changes_in_the_middle(params, monkeypatch):
    monkeypatch.setattr(one_by_one, "SLICE_CELLS", 1)
    monkeypatch.setattr(kernel_machine, "REPORT_EVERY", 1)
    problem = small(n=40)
    made = solver(**params)
    *_, last = made.steps(problem)
    expected = made.model(problem, last.state).scores(problem.X)
    three = solver(threads=3, **params)
    *_, other = three.steps(problem)
    np.testing.assert_array_equal(three.model(problem, other.state).scores(problem.X), expected)
    begun = three.steps(problem)
    states = [copied(step)[3] for step, _ in zip(begun, range(3), strict=False)]
    *_, mixed = made.steps(problem, states[-1])
    np.testing.assert_array_equal(made.model(problem, mixed.state).scores(problem.X), expected)


def test_the_objective_is_known_once_all_columns_are_and_a_model_can_be_had_before():
    problem = small(n=60)
    made = solver(base="crammer_singer", code="all_pairs")
    steps = []
    for step in made.steps(problem):
        steps.append(step.primal)
        model = made.model(problem, step.state)
        assert model.scores(problem.X).shape == (60, 5)
    assert np.isnan(steps[:-1]).all()
    assert steps[-1] > 0


def test_classes_weigh_what_they_are_given():
    problem = small(n=60)
    weights = np.array([1.0, 5.0, 1.0, 0.2, 1.0])
    direct = Problem.check(problem.X, problem.y, problem.classes, weights[problem.y])
    for params in ({"code": "all_pairs"}, {"base": "weston_watkins", "code": "dense_random"}):
        one, _ = trained(problem, class_weight={"1": 5.0, "3": 0.2}, **params)
        two, _ = trained(direct, **params)
        assert (one.primal, one.dual) == (two.primal, two.dual)


def test_a_column_may_balance_its_sides():
    problem = small(n=60)
    params = {"tol": 1e-4, "class_weight": "balanced"}
    _, model = trained(
        problem, code="sparse_random", tol=1e-4, decoding="loss", base_params={"class_weight": "balanced"}
    )
    for t in (0, 7):
        _, expected = alone(problem, model.code, t, "one_vs_rest", **params)
        np.testing.assert_allclose(model.margins(problem.X)[:, t], expected, atol=1e-5)


def test_the_report_tells_distances_errors_and_bounds():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    problem = Problem.check(np.eye(3)[y] + 0.05 * rng.standard_normal((60, 3)), y)
    _, model = trained(problem, code="all_pairs", C=100.0)
    assert model.report["n_columns"] == 3
    assert model.report["least_row_distance"] == 2.0
    assert model.report["column_error"] == 0.0
    assert model.report["smallest_margin"] > 0
    assert model.report["error_bound"] > 1
    assert model.report["class_error_bound_least"] <= model.report["class_error_bound_most"]
    assert 0 < model.report["nonzero_duals"] < 1
    _, worse = trained(small(n=80), base="crammer_singer", code="all_pairs")
    assert 0 < worse.report["column_error"] < 0.5
    assert "error_bound" not in worse.report


def test_columns_wait_for_more_columns_where_few_cannot_tell_the_classes_apart():
    with pytest.raises(CodeError, match="distinguishes all 20 classes"):
        trained(small(n=100, k=20), code="dense_random", n_columns=4)


@pytest.mark.parametrize(
    ("problem", "params", "fault"),
    [
        (small(n=60, k=12), {"code": "exhaustive"}, "2047 columns; at most 11 classes"),
        (small(), {"matrix": [[1], [-1]]}, "2 rows; expected 5"),
    ],
)
def test_a_code_that_does_not_fit_the_problem_is_refused(problem, params, fault):
    with pytest.raises(CodeError, match=fault):
        trained(problem, **params)


@pytest.mark.parametrize(
    ("params", "pointer", "fault"),
    [
        ({"matrix": [[1, -1], [1, -1], [-1, 1]]}, "/matrix", "rows of classes '0' and '1' are equal"),
        ({"matrix": [[1, 1], [1, -1], [1, 0]]}, "/matrix", "no class on one of their sides"),
        ({"matrix": [[1], [-1]], "n_columns": 3}, "/n_columns", "determines the number of columns itself"),
        ({"code": "all_pairs", "n_columns": 3}, "/n_columns", "determines the number of columns itself"),
        ({"code": "hadamard"}, "/code", "Input should be"),
        ({"base": "crammer_singr"}, "/base", "did you mean 'crammer_singer'"),
        ({"base": "output_code"}, "/base", "cannot be a base method"),
        ({"base": "continuous_code"}, "/base", "cannot be a base method"),
        ({"base_params": {"C": -1.0}}, "/base_params/C", "greater than 0"),
        ({"base_params": {"tool": 1.0}}, "/base_params/tool", "did you mean 'tol'"),
        ({"C": 0.0}, "/C", "greater than 0"),
        ({"base": "spoc", "base_params": {"kernel": "cubic"}}, "/base_params/kernel", "Input should be"),
        ({"base": "multiboost_cw", "bias": 1.0}, "/bias", "no such parameter to pass it to"),
    ],
)
def test_wrong_parameters_are_pointed_at(params, pointer, fault):
    with pytest.raises(ParamsError) as caught:
        parse_params("output_code", params)
    ((at, what),) = caught.value.items
    assert at == pointer
    assert fault in what


def test_what_is_left_out_is_the_base_methods_own():
    assert solver(base="spoc").base().params == SOLVERS["spoc"].Params()
    handed = solver(base="spoc", tol=0.1, C=3.0, base_params={"C": 5.0}).base().params
    assert (handed.tol, handed.C) == (0.1, 5.0)


def test_weights_are_linear_where_they_can_be():
    problem = small(n=60)
    _, model = trained(problem, code="exhaustive", bias=1.0, base="weston_watkins")
    np.testing.assert_allclose(model.coef, linear_map(model), atol=1e-6)
    assert model.intercept.shape == (5,)


def test_a_code_that_memory_does_not_hold_is_refused_before_it_is_made():
    pairs = solver(code="all_pairs", memory_mb=4096)
    with pytest.raises(TooLargeError, match=r"output_code with 20,000 examples and 10,000 classes needs at least 476,"):
        pairs.check_memory(20_000, 5_000, 10_000)
    # the code, a weight and a dual variable for each column and each feature and example, and the model's weights
    at_once = solver(memory_mb=4096).bytes_needed(20_000, 5_000, 10_000)
    assert at_once == pytest.approx(10_000 * (10_000 + 4 * 30_000), rel=0.02)
    # the code, and the weights of the model, where columns are trained one by one
    one_by_one = solver(memory_mb=250)
    assert one_by_one.bytes_needed(20_000, 5_000, 10_000) == pytest.approx(10_000 * (10_000 + 4 * 5_000), rel=0.01)
    with pytest.raises(TooLargeError, match=r"needs at least 288 MB; memory_mb allows 250 MB"):
        one_by_one.check_memory(20_000, 5_000, 10_000)
    solver(memory_mb=300).check_memory(20_000, 5_000, 10_000)


def test_columns_that_would_not_fit_all_at_once_are_trained_one_by_one():
    problem = small(n=6000, d=30, k=30)
    both = []
    for memory_mb in (1, 64):
        last, _ = trained(problem, memory_mb=memory_mb, tol=1e-3)
        both.append(("progress_status" in last.state, last.primal))
    assert [one_by_one for one_by_one, _ in both] == [True, False]
    # one by one, the base method counts a machine for each side
    assert both[0][1] == pytest.approx(2 * both[1][1], rel=2e-3)
