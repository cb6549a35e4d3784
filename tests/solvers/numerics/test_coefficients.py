"""Lists of dual variables that grow."""

import numpy as np

from solvers.numerics import coefficients


def test_lists_survive_growth_and_compaction():
    rng = np.random.default_rng(0)
    pool = coefficients.empty(20, 8)
    expected = {}
    for _ in range(300):
        i, n = int(rng.integers(20)), int(rng.integers(0, 7))
        classes, numbers = rng.permutation(50)[:n].astype(np.int32), rng.standard_normal(n)
        pool = coefficients.with_capacity(pool, 7)
        coefficients.put(pool, i, classes, numbers, n)
        expected[i] = (classes.tolist(), numbers.tolist())
    for i, entries in expected.items():
        at = slice(pool.start[i], pool.start[i] + pool.length[i])
        assert (pool.classes[at].tolist(), pool.values[at].tolist()) == entries
    assert len(pool.classes) < 20 * 7 * 3
