"""What may come through the door."""

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.core.problem import Problem, ProblemError

X = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])


@pytest.mark.parametrize(
    ("X", "y", "extra", "says"),
    [
        (np.empty((0, 2)), [], {}, "0 rows"),
        (np.empty((3, 0)), [0, 1, 0], {}, "0 features"),
        (X, [0, 1], {}, "3 rows"),
        (X, [0, 0, 0], {}, "one class"),
        (X, [0, 2, 0], {}, "class '1' has no example"),
        (X, [0, 1, -1], {}, "runs from -1"),
        (X, [0.0, 1.0, 1.0], {}, "must contain integer class indices"),
        (X, [0, 1, 2], {"classes": ["a", "b"]}, "must be between 0 and 1"),
        (X * np.nan, [0, 1, 0], {}, "NaN or infinity"),
        (sp.csr_matrix(X) * np.inf, [0, 1, 0], {}, "NaN or infinity"),
        (X[0], [0], {}, "1 dimensions"),
        (np.array([["a", "b"]] * 3), [0, 1, 0], {}, "not real numbers"),
        (X, [0, 1, 0], {"weights": [1, 1]}, "weights have shape"),
        (X, [0, 1, 0], {"weights": [1, 0, 1]}, "positive and finite"),
        (X, [0, 1, 0], {"weights": [1, np.inf, 1]}, "positive and finite"),
    ],
)
def test_what_is_no_problem_is_refused_and_named(X, y, extra, says):
    with pytest.raises(ProblemError, match=says):
        Problem.check(X, np.array(y, dtype=int) if not len(y) else y, **extra)


def test_canonical_input_is_taken_as_it_is_and_other_input_is_left_alone():
    canonical = sp.csr_matrix(X)
    assert np.shares_memory(Problem.check(canonical, [0, 1, 0]).X.data, canonical.data)
    shuffled = sp.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([1, 0, 0]), np.array([0, 3, 3])), shape=(2, 2))
    before = shuffled.indices.copy()
    checked = Problem.check(shuffled, [0, 1]).X
    np.testing.assert_array_equal(shuffled.indices, before)
    assert checked.toarray().tolist() == [[5.0, 1.0], [0.0, 0.0]]
    assert checked.has_sorted_indices


def test_names_count_and_shape_are_told():
    problem = Problem.check(X, [0, 1, 0], ["low", "high"])
    assert (problem.n_samples, problem.n_features, problem.n_classes) == (3, 2, 2)
    assert problem.classes == ("low", "high")
    assert problem.weights.tolist() == [1.0, 1.0, 1.0]
