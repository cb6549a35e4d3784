"""Holding rows out for testing, class by class."""

import numpy as np
from numpy.typing import NDArray


def stratified(y: NDArray[np.integer], fraction: float, seed: int) -> NDArray[np.bool_]:
    """Choose about ``fraction`` of the rows of every class; at least one row of each stays for training.

    Parameters
    ----------
    y : int array, shape (n_samples,)
        Class indices.
    fraction : float
        In [0, 1).
    seed : int

    Returns
    -------
    bool array, shape (n_samples,)
        True for the rows held out. Rare classes are rounded up or down at random, so that the share is right
        over all classes even where each has one or two rows.
    """
    random = np.random.default_rng([seed, 0x5EED])
    counts = np.bincount(y)
    ends = np.cumsum(counts * fraction) + random.random()
    wanted = np.diff(np.floor(ends), prepend=np.floor(ends[:1] - counts[:1] * fraction)).astype(np.int64)
    wanted = np.minimum(wanted, np.maximum(counts - 1, 0))
    shuffled = random.permutation(len(y))
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    rank = np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)
    held_out = np.zeros(len(y), bool)
    held_out[by_class[rank < np.repeat(wanted, counts)]] = True
    return held_out


def stratified_folds(y: NDArray[np.integer], n_folds: int, seed: int) -> NDArray[np.int64]:
    """Divide the rows of every class over folds; every fold leaves at least one row of each class to train on.

    Parameters
    ----------
    y : int array, shape (n_samples,)
        Class indices.
    n_folds : int
        At least 2.
    seed : int

    Returns
    -------
    int64 array, shape (n_samples,)
        The fold of each row; -1 for the only row of a class, which is always trained on.
    """
    random = np.random.default_rng([seed, 0xF01D])
    counts = np.bincount(y)
    shuffled = random.permutation(len(y))
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    rank = np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)
    # where one class ends the next goes on, so that the folds are of one size also where classes are small
    folds = np.empty(len(y), np.int64)
    folds[by_class] = (rank + np.repeat(random.integers(n_folds, size=len(counts)), counts)) % n_folds
    folds[counts[y] == 1] = -1
    return folds
