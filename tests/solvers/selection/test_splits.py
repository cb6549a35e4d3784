"""Splits: by class, at random, and never at the cost of a class."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.selection.splits import stratified, stratified_folds


@settings(deadline=None)
@given(
    counts=st.lists(st.integers(0, 30), min_size=1, max_size=30),
    fraction=st.floats(0, 0.99),
    seed=st.integers(0, 2**31 - 1),
)
def test_every_class_gives_about_its_share_and_keeps_a_row(counts: list[int], fraction: float, seed: int) -> None:
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    held_out = np.bincount(y[stratified(y, fraction, seed)], minlength=len(counts))
    for held, count in zip(held_out, counts, strict=True):
        assert held <= max(count - 1, 0)
        assert held <= np.floor(fraction * count) + 1
        assert held >= min(np.floor(fraction * count), max(count - 1, 0))


@pytest.mark.parametrize("fraction", [0.1, 0.25, 0.5])
def test_the_share_is_right_over_many_rare_classes(fraction: float) -> None:
    y = np.repeat(np.arange(1000), 4)
    assert abs(stratified(y, fraction, 1).mean() - fraction) < 0.002


def test_the_seed_decides() -> None:
    y = np.repeat(np.arange(10), 20)
    np.testing.assert_array_equal(stratified(y, 0.3, 5), stratified(y, 0.3, 5))
    assert (stratified(y, 0.3, 5) != stratified(y, 0.3, 6)).any()


def test_nothing_is_held_out_on_request() -> None:
    assert not stratified(np.repeat(np.arange(5), 7), 0.0, 1).any()


@given(st.lists(st.integers(0, 6), min_size=1, max_size=80), st.integers(2, 6), st.integers(0, 5))
def test_every_row_is_in_one_fold_and_every_class_is_left_to_train_on(labels, n_folds, seed):
    y = np.array(labels)
    folds = stratified_folds(y, n_folds, seed)
    counts = np.bincount(y)
    assert ((folds == -1) == (counts[y] == 1)).all()
    for fold in range(n_folds):
        assert set(y[folds != fold]) == set(y)
        within = np.bincount(y[folds == fold], minlength=len(counts))
        assert (within >= np.where(counts > 1, counts // n_folds, 0)).all()
        assert (within <= -(-counts // n_folds)).all()
