"""Which shard has which class."""

import numpy as np
import pytest

from solvers.sharding.partition import partition_classes


def test_classes_are_partitioned_evenly_in_number_and_in_examples():
    y = np.repeat(np.arange(40), np.arange(40, 0, -1)).astype(np.int32)
    owner = partition_classes(y, 40, 4)
    assert np.bincount(owner).tolist() == [10] * 4
    examples = np.bincount(owner[y])
    assert examples.max() <= 1.1 * examples.min()
    with pytest.raises(ValueError, match="41 shards for 40 classes"):
        partition_classes(y, 40, 41)
