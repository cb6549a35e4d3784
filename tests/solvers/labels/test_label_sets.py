"""Sets of labels: closed upwards or refused."""

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.core.problem import Problem, ProblemError
from solvers.labels import label_sets
from solvers.labels.taxonomy import Taxonomy, TaxonomyError

TREE = Taxonomy.from_edges([("root", "a"), ("root", "b"), ("a", "c"), ("c", "d"), ("a", "e")])


def test_missing_parents_are_added_and_told():
    labels, orphans = label_sets.of_names(TREE, [["d", "a"], [], ["b", "b", "e"], ["c", "a"], ["d"]])
    assert label_sets.names_of(TREE, labels) == [["a", "c", "d"], [], ["a", "b", "e"], ["a", "c"], ["a", "c", "d"]]
    assert labels.dtype == bool
    assert labels.shape == (5, 5)
    assert orphans.named(TREE) == [(0, "d", "c"), (2, "e", "a"), (4, "d", "c")]
    assert (len(orphans), orphans.n_added) == (3, 4)


def test_missing_parents_are_refused_with_their_rows_where_that_is_asked_for():
    with pytest.raises(TaxonomyError, match=r"2 label.* row 0 has 'd' but not 'c'; row 2 has 'e' but not 'a'"):
        label_sets.of_names(TREE, [["d", "a"], [], ["b", "e"]], "refuse")
    labels, orphans = label_sets.of_names(TREE, [["a", "c"], []], "refuse")
    assert labels.toarray().tolist() == [[True, False, True, False, False], [False] * 5]
    assert len(orphans) == orphans.n_added == 0


def test_unknown_labels_and_text_in_place_of_labels_are_named():
    with pytest.raises(TaxonomyError, match="'q'"):
        label_sets.of_names(TREE, [["a"], ["q"]])
    with pytest.raises(TaxonomyError, match="row 1 has the string 'ab'"):
        label_sets.of_names(TREE, [["a"], "ab"])


def test_one_label_stands_for_its_path():
    labels = label_sets.of_nodes(TREE, TREE.find(["d", "b"]))
    assert label_sets.names_of(TREE, labels) == [["a", "c", "d"], ["b"]]
    assert label_sets.of_nodes(TREE, np.array([-1])).nnz == 0
    problem = Problem.check(np.eye(2), [0, 1], ["d", "b"], taxonomy=TREE)
    np.testing.assert_array_equal(problem.label_sets().toarray(), labels.toarray())


def test_a_problem_of_sets_has_them_in_place_of_class_indices():
    labels, _ = label_sets.of_names(TREE, [["d"], [], ["b", "e"]])
    problem = Problem.check_sets(np.eye(3), labels, TREE, [1.0, 2.0, 3.0])
    assert problem.classes == TREE.names
    assert problem.n_classes == 5
    assert problem.y.shape == (0,)
    assert (problem.label_sets() != labels).nnz == 0
    np.testing.assert_array_equal(problem.weights, [1.0, 2.0, 3.0])
    with pytest.raises(ProblemError, match="sets of labels were given"):
        problem.nodes()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.ones((3, 4)), r"\(3, 5\), rows by nodes"),
        (np.ones((2, 5)), r"shape \(2, 5\)"),
        (np.zeros((3, 5)), "no example has a label"),
        (sp.csr_matrix(([1.0], ([1], [3])), shape=(3, 5)), "row 1 has 'e' but not 'a'"),
    ],
)
def test_sets_that_do_not_fit_are_refused(labels, message):
    assert TREE.names == ("a", "b", "c", "e", "d")
    with pytest.raises(ProblemError, match=message):
        Problem.check_sets(np.eye(3), labels, TREE)


def test_explicit_zeros_are_no_labels():
    labels = sp.csr_matrix((np.array([1, 0]), [0, 4], [0, 2, 2]), shape=(2, 5))
    assert Problem.check_sets(np.eye(2), labels, TREE).label_sets().nnz == 1
