"""Votes of weak learners, round by round, and scores from outputs."""

import numpy as np

from solvers.boosting.weak_learners.votes import GrowingVotes, Votes, decoded


def test_votes_add_up_and_the_first_rounds_can_be_had_alone():
    growing = GrowingVotes()
    for t in range(100):
        growing.add_round(np.array([t, t + 1]), np.array([0, 1]), np.array([1.0, t]))
    growing.add_round(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0))
    votes = growing.so_far
    assert len(votes.ends) == 101
    assert [len(learners) for learners, _, _ in votes.rounds()] == [2] * 100 + [0]
    first = votes.upto(3)
    np.testing.assert_array_equal(first.weights(4, 2), [[1, 0], [1, 0], [1, 1], [0, 2]])
    again = GrowingVotes(Votes.of_arrays(votes.arrays()))
    again.add_round(np.array([7]), np.array([0]), np.array([5.0]))
    assert again.so_far.weights(101, 2)[7].tolist() == [6.0, 6.0]
    assert len(votes.upto(0).learners) == 0


def test_outputs_are_decoded_by_their_exponential_loss():
    rng = np.random.default_rng(0)
    code, f = rng.choice([-1, 0, 1], (5, 7)).astype(np.int8), 5 * rng.standard_normal((11, 7))
    losses = np.where(code[None] == 0, 0.0, np.exp(-code[None] * f[:, None])).sum(axis=2)
    np.testing.assert_allclose(decoded(f, code), -losses)
    assert np.isfinite(decoded(1e4 * f, code)).all()
