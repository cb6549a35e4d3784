"""Families of codes: shapes, distances, and those that do not exist."""

import itertools

import numpy as np
import pytest

from solvers.output_codes.code_families import FAMILIES, make, most_columns
from solvers.output_codes.codes import CodeError, check, column_distances, row_distances


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("k", [2, 3, 5, 11, 26])
def test_every_family_makes_valid_codes_without_twin_columns(family, k):
    if family == "exhaustive" and k > 11:
        return
    code = make(family, k, seed=1)
    assert code.dtype == np.int8
    np.testing.assert_array_equal(check(code), code)
    np.testing.assert_array_equal(make(family, k, seed=1), code)
    if code.shape[1] > 1:
        apart = column_distances(code)[np.triu_indices(code.shape[1], 1)]
        assert apart.min() > 0
    if k == 2:
        assert code.ravel().tolist() == [-1, 1]


def test_the_families_have_the_shapes_of_the_literature():
    assert make("one_vs_rest", 6).tolist() == (2 * np.eye(6, dtype=int) - 1).tolist()
    assert make("all_pairs", 6).shape == (6, 15)
    assert (np.abs(make("all_pairs", 6)).sum(axis=0) == 2).all()
    assert not make("all_pairs", 6).sum(axis=0).any(), "one class of a pair is on each side"
    assert make("exhaustive", 6).shape == (6, 31)
    assert make("dense_random", 26).shape == (26, 48)
    assert make("sparse_random", 26).shape == (26, 71)
    assert make("dense_random", 26, 20).shape == (26, 20)
    assert make("dense_random", 4, 100).shape == (4, 7)
    share = (make("sparse_random", 100) == 0).mean()
    assert 0.4 < share < 0.6
    assert not np.array_equal(make("dense_random", 26, seed=1), make("dense_random", 26, seed=2))


def test_exhaustive_holds_every_split_once():
    code = make("exhaustive", 5)
    splits = {tuple(column) for column in code.T} | {tuple(-column) for column in code.T}
    assert splits == {tuple(column) for column in itertools.product([-1, 1], repeat=5) if abs(sum(column)) < 5}


@pytest.mark.parametrize(
    ("k", "columns", "least"), [(26, 63, 31), (60, 63, 31), (26, 31, 15), (16, 15, 7), (100, 127, 63)]
)
def test_words_of_bch_codes_keep_their_distance(k, columns, least):
    code = make("bch", k, columns)
    assert code.shape[0] == k
    assert code.shape[1] >= columns - 5
    distances = row_distances(code)[np.triu_indices(k, 1)]
    assert distances.min() >= least - (columns - code.shape[1])


def test_random_codes_are_chosen_for_the_distance_of_their_rows():
    rng = np.random.default_rng(0)
    chosen = row_distances(make("dense_random", 20))[np.triu_indices(20, 1)].min()
    drawn = [row_distances(rng.choice([-1, 1], (20, 44)))[np.triu_indices(20, 1)].min() for _ in range(50)]
    assert chosen > np.median(drawn)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("k", [3, 5, 11])
def test_how_many_columns_there_will_be_is_known_before_a_code_is_made(family, k):
    for columns in (None, 20) if family in ("dense_random", "sparse_random", "bch") else (None,):
        made = make(family, k, columns).shape[1]
        assert made <= most_columns(family, k, columns)
        assert most_columns(family, k, columns) <= max(64, 2 * made)


@pytest.mark.parametrize(
    ("family", "k", "columns", "fault"),
    [
        ("exhaustive", 12, None, "2047 columns; at most 11 classes"),
        ("one_vs_rest", 5, 7, "determines the number of columns"),
        ("dense_random", 1, None, "at least two classes"),
        ("dense_random", 5, 0, "at least one column"),
        ("dense_random", 40, 5, "distinguishes all 40 classes"),
        ("bch", 5, 5000, "at most 4095"),
        ("hadamard", 5, None, "expected one of one_vs_rest"),
    ],
)
def test_codes_that_do_not_exist_are_refused_with_the_reason(family, k, columns, fault):
    with pytest.raises(CodeError, match=fault):
        make(family, k, columns)
