"""The mean of the weights over the passes of an epoch, and what is stored of it."""

import numpy as np

from solvers.hierarchical.hinges.acceleration import WEIGHTS_A_VISIT, Acceleration


def test_the_mean_is_over_passes_of_which_short_ones_count_together():
    shape, most = (8, WEIGHTS_A_VISIT), 8
    made = Acceleration(np.zeros(shape))
    ends = [np.full(shape, value) for value in (1.0, 2.0, 4.0, 8.0, 16.0)]
    made.average(ends[0], most, is_last=False)
    # two passes have visits enough between them alone
    made.average(ends[1], most - 1, is_last=False)
    assert (made.mean == 1.0).all()
    made.average(ends[2], 1, is_last=False)
    np.testing.assert_allclose(made.mean, (1.0 + 4.0 + 4.0) / 3)
    made.average(ends[3], 1, is_last=False)
    made.average(ends[4], 1, is_last=True)
    np.testing.assert_allclose(made.mean, (1.0 + 4.0 + 4.0 + 16.0 + 16.0) / 5)


def test_passes_that_are_not_counted_yet_are_taken_up_where_they_stood():
    shape = (8, WEIGHTS_A_VISIT)
    whole = Acceleration(np.zeros(shape))
    whole.average(np.full(shape, 1.0), 8, is_last=False)
    whole.average(np.full(shape, 2.0), 5, is_last=False)
    again = Acceleration.from_state({name: np.array(array) for name, array in whole.state().items()})
    for made in (whole, again):
        made.average(np.full(shape, 4.0), 3, is_last=False)
        assert (made.n_averaged, made.n_passes) == (3, 0)
        np.testing.assert_allclose(made.mean, 3.0)
