"""How far the optimum is, and how exactly it has to be approached."""

import numpy as np
import pytest
from test_pair_loss import random_loss

from solvers.boosting.pair_boosting import Certificate
from solvers.boosting.weak_learners.channels import Found
from solvers.numerics.thread_pool import ThreadPool


def test_bounds_only_rise_and_grow_finer_as_they_close():
    loss, certificate = random_loss(), Certificate(0.1)
    with ThreadPool(1) as thread_pool:
        channels = loss.measure(thread_pool)
    sizes = channels.masses * 0.5
    primal, first = certificate.update(loss, 0.0, channels, Found(np.zeros(5, np.int64), sizes))
    assert primal == pytest.approx(loss.rate * loss.mass)
    _, second = certificate.update(loss, 0.0, channels, Found(np.zeros(5, np.int64), 2 * sizes))
    assert second == first
    assert np.isnan(certificate.update(loss, 0.0, channels, None)[1])
    certificate.tighten(still=True)
    assert certificate.eps == pytest.approx(0.01)
    certificate.dual, certificate.primal, certificate.edge = 1.0 - 1e-9, 1.0, 0.5
    assert not certificate.wants_fine(1000, 1e-3)
    assert certificate.wants_fine(1000, 1e-9)
    certificate.dual = 0.5
    assert not certificate.wants_fine(1000, 1e-9)


def test_a_restored_certificate_goes_on_where_it_stood():
    one, other = Certificate(0.1), Certificate(0.1)
    one.dual, one.primal, one.edge = 0.4, 0.5, 0.25
    one.tighten(still=False)
    other.restore({name: array.copy() for name, array in one.arrays().items()})
    assert (other.dual, other.primal, other.eps, other.edge) == (0.4, 0.5, one.eps, 0.25)
    assert other.eps < 0.1
