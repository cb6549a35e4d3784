"""Splits: by class, at random, and never at the cost of a class."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.selection.splits import stratified, stratified_folds, stratified_sets


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


def test_the_only_row_of_a_class_is_never_held_out() -> None:
    y = np.repeat(np.arange(300), [1, 2, 1] * 100)
    held_out = stratified(y, 0.9, 0)
    assert np.bincount(y[held_out], minlength=300).tolist() == [0, 1, 0] * 100


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


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.frozensets(st.integers(0, 8), max_size=4), min_size=1, max_size=120),
    st.sampled_from([0.0, 0.2, 0.4]),
    st.integers(0, 3),
)
def test_of_sets_no_labels_only_row_is_held_out_and_the_share_is_right(
    sets: list[frozenset[int]], fraction: float, seed: int
) -> None:
    indptr = np.concatenate([[0], np.cumsum([len(labels) for labels in sets])])
    labels = np.array([label for each in sets for label in sorted(each)], np.int32)
    held_out = stratified_sets(indptr, labels, fraction, seed)
    np.testing.assert_array_equal(held_out, stratified_sets(indptr, labels, fraction, seed))
    row = np.repeat(np.arange(len(sets)), np.diff(indptr))
    counts = np.bincount(labels, minlength=9)
    assert not np.bincount(labels[held_out[row]], minlength=9)[counts == 1].any()
    if fraction == 0:
        assert not held_out.any()


def test_of_sets_each_label_has_its_share_also_where_chance_would_miss_rare_ones() -> None:
    random = np.random.default_rng(0)
    there = random.random((2000, 40)) < np.geomspace(0.005, 0.3, 40)
    indptr, labels = np.concatenate([[0], np.cumsum(there.sum(1))]), np.nonzero(there)[1]
    held_out = stratified_sets(indptr, labels, 0.2, 0)
    shares = there[held_out].sum(0) / there.sum(0)
    by_chance = there[random.random(2000) < 0.2].sum(0) / there.sum(0)
    assert np.abs(shares - 0.2).max() < 0.07 < np.abs(by_chance - 0.2).max()
    assert abs(held_out.mean() - 0.2) < 0.02
