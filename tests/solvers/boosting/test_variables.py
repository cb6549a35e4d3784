"""Weights of weak learners for classes: their places, what has changed, and what is kept of them."""

import numpy as np

from solvers.boosting.pairs.variables import Variables


def numbers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_a_learner_and_a_class_have_one_place_and_new_ones_come_to_the_end():
    variables = Variables()
    assert variables.admit(numbers(7, 9), numbers(0, 2)).tolist() == [0, 1]
    variables.weights[:] = 0.5, -0.25
    assert variables.admit(numbers(7, 7, 9), numbers(0, 1, 2)).tolist() == [0, 2, 1]
    assert variables.admit(numbers(), numbers()).tolist() == []
    assert len(variables) == 3
    assert variables.learners.tolist() == [7, 9, 7]
    assert variables.owners.tolist() == [0, 2, 1]
    assert variables.weights.tolist() == [0.5, -0.25, 0.0]


def test_variables_keep_their_values_as_room_is_made_for_others():
    variables = Variables()
    for at in range(1000):
        assert variables.admit(numbers(at), numbers(at % 3)).tolist() == [at]
        variables.weights[at] = at
    assert variables.learners.tolist() == list(range(1000))
    assert variables.weights.tolist() == list(range(1000))
    assert not variables.scored.any()


def test_what_has_changed_is_told_of_all_or_of_some():
    variables = Variables()
    order = variables.admit(numbers(4, 3, 2, 1), numbers(0, 0, 0, 0))
    variables.weights[[1, 3]] = 1.0
    assert variables.changed(variables.before, None).tolist() == [1, 3]
    assert variables.changed(variables.before, order[::-1]).tolist() == [3, 1]
    variables.before[1] = 1.0
    assert variables.changed(variables.before, order[:2]).tolist() == []


def test_restored_variables_know_their_places():
    variables, other = Variables(), Variables()
    variables.admit(numbers(4, -1), numbers(1, 1))
    variables.weights[:] = 2.0, 3.0
    kept = {name: array.copy() for name, array in variables.arrays().items()}
    other.restore(kept)
    assert other.admit(numbers(5, -1), numbers(1, 1)).tolist() == [2, 1]
    other.weights[0] = 9.0
    assert kept["weights"].tolist() == [2.0, 3.0]
    assert other.scored.tolist() == [0.0, 0.0, 0.0]
