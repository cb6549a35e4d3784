"""How features are spread over rows, whatever the number of features that no row has."""

import numpy as np
from scipy.sparse import csr_matrix

from app.store import row_statistics


def test_features_that_no_row_has_are_counted_without_memory_for_each():
    indices = np.array([0, 2, 2, 5, 2, 0], np.int32)
    narrow, wide = (csr_matrix((np.ones(6), indices, [0, 2, 6]), shape=(2, width)) for width in (7, 2**31 - 1))
    assert row_statistics.feature_rows(narrow).counts == {"features": [4, 1, 1, 1]}
    found = row_statistics.feature_rows(wide)
    assert found.edges == [0, 1, 2, 3, 4]
    assert found.counts == {"features": [2**31 - 4, 1, 1, 1]}


def test_of_no_features_none_is_counted():
    assert sum(row_statistics.feature_rows(csr_matrix((2, 0))).counts["features"]) == 0
