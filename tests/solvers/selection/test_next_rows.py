"""Which rows to label next: margins, rare labels first, and a budget that is spread over the features."""

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.selection.next_rows import Diversity, few_rows_first, least_sure, margins, spread


def test_a_margin_is_the_lead_of_the_first_class_over_the_best_other_one() -> None:
    values = np.array([[3.0, 1.0, 2.5], [0.0, 0.0, -np.inf], [-np.inf, 4.0, -np.inf]])
    found = margins(values, np.array([0, 1, 1]), probabilities=False)
    assert found.tolist() == [0.5, 0.0, np.inf]


def test_of_log_probabilities_a_margin_is_one_of_probabilities() -> None:
    found = margins(np.log([[0.6, 0.3, 0.1]]), np.array([0]), probabilities=True)
    assert found == pytest.approx([0.3])


def test_of_one_class_no_row_is_unsure() -> None:
    assert margins(np.zeros((2, 1)), np.zeros(2, np.int64), probabilities=False).tolist() == [np.inf, np.inf]


def test_labels_with_few_rows_take_turns_and_the_rarest_begins() -> None:
    first = np.array([0, 1, 1, 2, 2, 2, 1])
    margin = np.array([0.0, 0.3, 0.1, 0.9, 0.2, 0.4, 0.2], np.float32)
    chosen = few_rows_first(margin, first, np.array([50, 3, 1]), 5, 4)
    assert chosen.tolist() == [4, 2, 5, 6]  # of class 2, then 1, each with its least sure row first
    assert few_rows_first(margin, first, np.array([50, 30, 10]), 5, 4).tolist() == []


def test_what_was_chosen_already_is_left_out_of_the_least_sure() -> None:
    margin = np.array([0.3, 0.1, 0.2, 0.0], np.float32)
    assert least_sure(margin, 2, "none", np.array([3])).tolist() == [1, 2]


@pytest.mark.parametrize("diversity", ["clusters", "k_center"])
def test_a_budget_is_spread_over_rows_that_are_unlike(diversity: Diversity) -> None:
    # three groups that have no feature in common; the least sure rows are all of the first
    X = sp.csr_matrix(np.kron(np.eye(3), np.ones((10, 4))) + 0.0)
    margin = np.arange(30, dtype=np.float32)
    groups = spread(X, margin, 3, diversity, 0) // 10
    assert groups.tolist() == [0, 1, 2]
    assert spread(X, margin, 3, "none", 0).tolist() == [0, 1, 2]


@pytest.mark.parametrize("diversity", ["clusters", "k_center", "none"])
@pytest.mark.parametrize("budget", [1, 7, 60, 100])
def test_a_budget_is_kept_and_no_row_is_chosen_twice(diversity: Diversity, budget: int) -> None:
    X = sp.random_array((60, 1000), density=0.01, rng=np.random.default_rng(0), format="csr")
    margin = np.sort(np.random.default_rng(1).random(60)).astype(np.float32)
    found = spread(sp.csr_matrix(X), margin, budget, diversity, 3)
    assert len(found) == min(budget, 60)
    assert len(set(found.tolist())) == len(found)
    assert found.tolist() == spread(sp.csr_matrix(X), margin, budget, diversity, 3).tolist()
