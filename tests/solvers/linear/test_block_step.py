"""Which classes an exact block step looks at."""

import numpy as np
import pytest

from solvers.linear.steps.block_step import MANY, candidates
from solvers.numerics.block_roots import box_root, simplex_root


@pytest.mark.parametrize("largest_loss", [False, True])
@pytest.mark.parametrize("spread", [1e-3, 0.1, 3.0])
@pytest.mark.parametrize("m", [0, 5, 300])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_candidates_are_all_whose_variables_are_or_become_positive(
    largest_loss: bool, spread: float, m: int, C: float
) -> None:
    rng, k, K = np.random.default_rng(m), 700, 1.5
    f = np.full(704, 9.0)
    f[:k] = spread * rng.standard_normal(k)
    y, held = 3, rng.permutation(np.delete(np.arange(k), 3))[:m].astype(np.int32)
    alpha = np.zeros(k)
    alpha[held] = rng.dirichlet(np.ones(m)) * C if m else 0.0
    S0 = float(alpha.sum())
    g = 1.0 - f[y] + f[:k]
    others = np.arange(k) != y
    every = (g / K + alpha + S0)[others]
    root = simplex_root(every, k - 1, C) if largest_loss else box_root(every, k - 1, C, 1.0, S0)
    wanted = {int(c) for c in np.flatnonzero(others) if g[c] / K + alpha[c] + S0 - root > 1e-9 or alpha[c] > 0.0}

    classes, b, old = np.empty(k + 2, np.int32), np.empty(k + 2 + MANY), np.empty(k + 2)
    classes[:m], old[:m] = held, alpha[held]
    f_y, f[y] = f[y], -np.inf
    n, loss, product = candidates(f, f_y, C, K, S0, m, k, k, largest_loss, classes, b, old)

    assert set(classes[:n].tolist()) >= wanted
    assert len(set(classes[:n].tolist())) == n
    np.testing.assert_allclose(b[:n], (g / K + alpha + S0)[classes[:n]])
    assert loss == pytest.approx(max(0.0, g[others].max()) if largest_loss else np.maximum(g[others], 0.0).sum())
    assert product == pytest.approx(alpha @ g)


def test_many_classes_alike_are_few_candidates() -> None:
    rng, k = np.random.default_rng(0), 3200
    f = 0.2 * rng.standard_normal(k)
    classes, b, old = np.empty(k + 2, np.int32), np.empty(k + 2 + MANY), np.empty(k + 2)
    alone = np.count_nonzero(1.0 + f - f[0] > 0.5 * (1.0 + f.max() - f[0]))
    f_y, f[0] = f[0], -np.inf
    n, *_ = candidates(f, f_y, 1.0, 1.0, 0.0, 0, k, k, False, classes, b, old)
    assert n < 0.1 * alone
