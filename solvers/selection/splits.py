"""Holding rows out for testing, class by class; of rows with sets of labels label by label.

The latter is iterative stratification (Sechidis, Tsoumakas, Vlahavas: On the Stratification of Multi-Label Data, ECML
2011, Algorithm 1) for two parts.
"""

import heapq

import numpy as np
from numpy.typing import NDArray

from solvers.numerics.array_types import Bools, Ints


def stratified(
    y: NDArray[np.integer], fraction: float, seed: int, *, part: int = 0, trained: Bools | None = None
) -> Bools:
    """Choose about ``fraction`` of the rows of every class; at least one row of each stays for training.

    Parameters
    ----------
    y : int array, shape (n_samples,)
        Class indices.
    fraction : float
        In [0, 1).
    part : int
        Rows that come later are chosen by a randomness of their own.
    trained : bool array, shape (n_classes,), optional
        Classes that earlier rows for training have: all rows of these may be held out.

    Returns
    -------
    bool array, shape (n_samples,)
        True for the rows held out. Rare classes are rounded up or down at random, so that the share is right
        over all classes even where each has one or two rows.
    """
    random = np.random.default_rng([seed, 0x5EED, *([part] if part else [])])
    counts = np.bincount(y)
    ends = np.cumsum(counts * fraction) + random.random()
    wanted = np.diff(np.floor(ends), prepend=np.floor(ends[:1] - counts[:1] * fraction)).astype(np.int64)
    spared = np.ones(len(counts), np.int64) if trained is None else (~trained[: len(counts)]).astype(np.int64)
    wanted = np.minimum(wanted, np.maximum(counts - spared, 0))
    shuffled = random.permutation(len(y))
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    rank = np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)
    held_out = np.zeros(len(y), bool)
    held_out[by_class[rank < np.repeat(wanted, counts)]] = True
    return held_out


def stratified_sets(
    indptr: NDArray[np.integer],
    labels: NDArray[np.integer],
    fraction: float,
    seed: int,
    *,
    part: int = 0,
    dealt: "tuple[Ints, Ints] | None" = None,
) -> Bools:
    """Choose about ``fraction`` of the rows of every label, where rows have sets of them.

    The rarest label's rows are dealt out first, each to the part that lacks most of it. Rows without labels are dealt
    out last.

    Parameters
    ----------
    indptr : int array, shape (n_samples + 1,)
        Where the labels of each row begin in ``labels``.
    labels : int array, shape (n_labels,)
    fraction : float
        In [0, 1).
    part : int
        Rows that come later are dealt out by a randomness of their own.
    dealt : (int array, int array), optional
        How many earlier rows with each label are held out and train, shape (n_labels,); last the rows themselves.

    Returns
    -------
    bool array, shape (n_samples,)
        True for the rows held out; the only row of a label is not.
    """
    n, order = len(indptr) - 1, np.random.default_rng([seed, 0x5E75, *([part] if part else [])])
    sets = [labels[indptr[row] : indptr[row + 1]].tolist() for row in range(n)]
    held_out, done = np.zeros(n, bool), np.zeros(n, bool)
    shuffled = order.permutation(n)
    rows_of: dict[int, list[int]] = {}
    for row in shuffled.tolist():
        for label in sets[row]:
            rows_of.setdefault(label, []).append(row)
    left = {label: len(rows) for label, rows in rows_of.items()}
    # what the held-out part still lacks of each label, and what the other does
    out_before, in_before = (None, None) if dealt is None else (each.tolist() for each in dealt)

    def lacking_of(count: int, label: int) -> tuple[float, float]:
        out, kept = (0, 0) if out_before is None or in_before is None else (out_before[label], in_before[label])
        wanted = fraction * (count + out + kept)
        return wanted - out, count + out - wanted

    lacks = {label: lacking_of(count, label) for label, count in left.items()}
    test = {label: each for label, (each, _) in lacks.items()}
    train = {label: each for label, (_, each) in lacks.items()}
    lacks_test, lacks_train = lacking_of(n, -1)
    rarest = [(count, label) for label, count in left.items()]
    heapq.heapify(rarest)
    while rarest:
        count, label = heapq.heappop(rarest)
        if count != left[label]:
            if left[label]:
                heapq.heappush(rarest, (left[label], label))
            continue
        for row in rows_of[label]:
            if done[row]:
                continue
            done[row] = True
            out = (test[label], lacks_test) > (train[label], lacks_train)
            held_out[row] = out
            lacks_test, lacks_train = lacks_test - out, lacks_train - (not out)
            lacking = test if out else train
            for other in sets[row]:
                lacking[other] -= 1
                left[other] -= 1
    rest = shuffled[~done[shuffled]]
    held_out[rest[: max(0, round(min(lacks_test, len(rest))))]] = True
    return held_out


def stratified_folds(y: NDArray[np.integer], n_folds: int, seed: int) -> Ints:
    """Divide the rows of every class over folds; every fold leaves at least one row of each class to train on.

    Parameters
    ----------
    y : int array, shape (n_samples,)
        Class indices.
    n_folds : int
        At least 2.

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
