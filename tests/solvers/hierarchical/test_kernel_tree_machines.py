"""Machines over a label tree with kernels, and the models that they make."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems import TREES, small, tree_optimum, with_tree
from sklearn.metrics.pairwise import pairwise_kernels
from training import machine, trained

from solvers.core.base import ParamsError
from solvers.core.memory import TooLargeError
from solvers.core.problem import Problem, ProblemError
from solvers.core.stored_models import load_model
from solvers.estimator import PolymarginClassifier
from solvers.hierarchical.kernel_taxonomy_model import KernelTaxonomyModel
from solvers.hierarchical.taxonomy_model import TaxonomyModel

everywhere = pytest.mark.parametrize("name", TREES)
KERNELS = [
    {"kernel": "rbf", "gamma": 0.2},
    {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0, "bias": 0.5},
]


def over(problem, X):
    """The problem with other rows."""
    return Problem.check(X, problem.y, problem.classes, problem.weights, problem.taxonomy)


def gram(A, B, params):
    """Kernel values with the bias's square, by scikit-learn."""
    given = {key: value for key, value in params.items() if key not in ("kernel", "bias")}
    return pairwise_kernels(A, B, metric=params["kernel"], **given) + params.get("bias", 0.0) ** 2


@pytest.mark.slow
@everywhere
@pytest.mark.parametrize("params", KERNELS)
def test_the_bounds_enclose_the_optimum_in_the_space_of_the_kernel(name, params):
    problem, unseen = with_tree(small(n=14, d=4, k=4)), small(n=9, d=4, k=4, seed=1).X
    K = gram(problem.X, problem.X, params)
    squares, axes = np.linalg.eigh(K)
    squares, axes = squares[squares > 1e-10], axes[:, squares > 1e-10]
    value, W = tree_optimum(name, over(problem, axes * np.sqrt(squares)), 2.0, tol=1e-7)
    last, model = trained(name, problem, C=2.0, tol=1e-7, max_epochs=20_000, **params)
    assert last.converged
    assert last.dual <= value * (1 + 1e-6)
    assert last.primal >= value * (1 - 1e-6)
    due = gram(unseen, problem.X, params) @ (axes / np.sqrt(squares)) @ W.T
    np.testing.assert_allclose(model.scores(unseen), due, atol=1e-2 * np.abs(due).max())


@everywhere
@pytest.mark.parametrize("given", ["precomputed", "poly"])
def test_inner_products_as_a_kernel_are_the_linear_machine(name, given):
    problem = with_tree(small(n=30, d=8))
    plain, model = trained(name, problem, tol=1e-6, max_epochs=20_000)
    if given == "poly":
        other, params = problem, {"kernel": "poly", "degree": 1, "gamma": 1.0, "coef0": 0.0}
    else:
        other, params = over(problem, (problem.X @ problem.X.T).tocsr()), {"kernel": "precomputed"}
    mapped, curved = trained(name, other, tol=1e-6, max_epochs=20_000, **params)
    assert mapped.dual <= plain.primal * (1 + 1e-12)
    assert plain.dual <= mapped.primal * (1 + 1e-12)
    due = model.scores(problem.X)
    np.testing.assert_allclose(curved.scores(other.X), due, atol=1e-2 * np.abs(due).max())


@everywhere
def test_saved_and_loaded_a_model_has_the_rules_of_a_linear_one_on_its_kernel_values(name, tmp_path):
    problem = with_tree(small(n=40))
    _, model = trained(name, problem, kernel="rbf", gamma=0.1, bias=0.5)
    unseen = small(n=25, seed=7).X
    model.save(tmp_path / "model")
    loaded, _ = load_model(tmp_path / "model")
    assert isinstance(loaded, KernelTaxonomyModel)
    assert loaded.report == model.report
    scores = loaded.scores(unseen)
    np.testing.assert_array_equal(scores, model.scores(unseen))
    # the scores themselves as features: what a rule makes of them
    n = len(model.classes)
    rule = TaxonomyModel(problem.taxonomy, n, np.arange(n), np.eye(n), candidates=model.candidates)
    assert loaded.predict(unseen[:0]).shape == (0,)
    as_rows = sp.csr_matrix(scores)
    np.testing.assert_array_equal(loaded.predict(unseen), rule.predict(as_rows))
    leaves, margins = loaded.descend(unseen, chunk_bytes=1)
    np.testing.assert_array_equal(leaves, rule.descend(as_rows)[0])
    np.testing.assert_allclose(margins, rule.descend(as_rows)[1], atol=1e-12)
    for i in range(5):
        row, score = unseen[i], as_rows[i]
        best, worth = loaded.top(row.indices, row.data, 3)
        due, due_worth = rule.top(score.indices, score.data, 3)
        np.testing.assert_array_equal(best, due)
        np.testing.assert_allclose(worth, due_worth, atol=1e-12)
        assert best[0] == loaded.predict(row)[0]
        assert loaded.path(best[0]) == rule.path(best[0])
        np.testing.assert_allclose(
            loaded.level_margins(row.indices, row.data, best[0]),
            rule.level_margins(score.indices, score.data, best[0]),
            atol=1e-12,
        )


@everywhere
def test_a_resumed_training_and_one_at_another_c_have_true_bounds_of_the_same_problem(name):
    problem = with_tree(small(n=40))
    params = {"kernel": "rbf", "gamma": 0.1, "tol": 1e-4}
    steps = [(s, {key: np.array(a) for key, a in s.state.items()}) for s in machine(name, **params).steps(problem)]
    *_, again = machine(name, **params).steps(problem, steps[len(steps) // 2][1])
    for key, value in steps[-1][1].items():
        np.testing.assert_array_equal(again.state[key], value)
    other = machine(name, **params, C=3.0)
    *_, warm = other.steps(problem, other.rescaled(problem, steps[-1][1], 1.0))
    alone, _ = trained(name, problem, **params, C=3.0)
    assert warm.converged
    assert warm.dual <= alone.primal
    assert alone.dual <= warm.primal


def test_the_estimator_goes_down_the_tree():
    problem = with_tree(small(n=40))
    y = np.array(problem.classes)[problem.y]
    made = PolymarginClassifier("orthogonal_transfer", hierarchy=problem.taxonomy.edges, kernel="rbf", tol=1e-3)
    fitted = made.fit(problem.X, y)
    assert isinstance(fitted.model_, KernelTaxonomyModel)
    leaves = fitted.model_.predict(problem.X)
    np.testing.assert_array_equal(fitted.predict(problem.X), np.array(problem.taxonomy.names)[leaves])


def test_what_a_kernel_cannot_do_is_refused():
    problem = with_tree(small(n=400))
    with pytest.raises(ParamsError, match="rda supports only the linear kernel; rbf was given"):
        machine("orthogonal_transfer", algorithm="rda", kernel="rbf")
    with pytest.raises(ProblemError, match="one row and one column"):
        machine("orthogonal_transfer", kernel="precomputed").steps(problem)
    with pytest.raises(TooLargeError, match="memory_mb allows 1 MB"):
        machine("orthogonal_transfer", kernel="rbf", memory_mb=1).steps(problem)
    _, model = trained("orthogonal_transfer", problem, kernel="rbf")
    with pytest.raises(ValueError, match="X has 3 features; the model has 12"):
        model.predict(problem.X[:, :3])
