"""Which examples an epoch visits."""

import numpy as np

from solvers.numerics.orders import active, shuffled


def test_examples_that_change_nothing_are_visited_ever_more_rarely_and_each_in_its_turn() -> None:
    examples = np.array([9, 4, 5, 0, 7, 2], np.int32)
    for quiet, every in [(0, 1), (2, 1), (3, 2), (4, 4), (5, 8), (6, 8), (255, 8)]:
        unchanged = np.full(10, quiet, np.uint8)
        visits = [active(examples, unchanged, epoch).tolist() for epoch in range(1, 17)]
        for example in examples:
            times = [epoch for epoch, found in enumerate(visits) if example in found]
            assert len(times) == 16 // every
            assert set(np.diff(times).tolist()) <= {every}
        assert all(found == [e for e in examples if e in found] for found in visits)


def test_examples_that_rest_do_not_all_wake_in_one_epoch() -> None:
    examples = np.arange(16, dtype=np.int32)
    for quiet, every in [(3, 2), (4, 4), (5, 8)]:
        for epoch in range(1, 9):
            assert len(active(examples, np.full(16, quiet, np.uint8), epoch)) == 16 // every


def test_the_order_of_an_epoch_is_that_of_its_seed() -> None:
    order = np.arange(1000, dtype=np.int32)
    first = shuffled(order, 3, 1)
    assert sorted(first.tolist()) == order.tolist()
    np.testing.assert_array_equal(first, shuffled(order, 3, 1))
    for other in (shuffled(order, 3, 2), shuffled(order, 4, 1)):
        assert np.mean(other == first) < 0.02
    assert abs(np.corrcoef(first, order)[0, 1]) < 0.1
