"""A dataset's rows as a training problem: split into parts, with the labels of the training part as classes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.errors import InvalidInput
from app.schemas.jobs import TrainRequest
from app.services.splits import stratified
from app.store.corpus import Corpus


@dataclass(frozen=True, eq=False)
class Rows:
    """Which rows train and which test.

    Attributes
    ----------
    train, test : int64 arrays
        Row numbers, ascending.
    classes : list of str
        The labels of the training rows, sorted.
    y_train, y_test : int32 arrays
        Indices into ``classes``; -1 for a test row whose label no training row has.
    weights : float64 array, shape (n_train,), or None
        Of the training rows; None where the dataset gives none.
    """

    train: NDArray[np.int64]
    test: NDArray[np.int64]
    classes: list[str]
    y_train: NDArray[np.int32]
    y_test: NDArray[np.int32]
    weights: NDArray[np.float64] | None


def split_rows(corpus: Corpus, request: TrainRequest) -> Rows:
    """Split by the dataset's own split, or else by class at random from the request's seed.

    Raises
    ------
    InvalidInput
        Test rows have labels that no training row has, and the request refuses those.
    """
    y = np.asarray(corpus.y)
    held_out = (
        stratified(y, request.test_fraction, request.seed) if corpus.split is None else np.asarray(corpus.split) == 1
    )
    train, test = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    present = np.unique(y[train])
    index = np.full(len(corpus.labels), -1, np.int32)
    index[present] = np.arange(len(present), dtype=np.int32)
    y_test = index[y[test]]
    if request.unseen_labels == "refuse" and (y_test < 0).any():
        raise InvalidInput(f"{int((y_test < 0).sum())} test row(s) have labels that no training row has")
    weights = None if corpus.weights is None else np.asarray(corpus.weights)[train]
    return Rows(train, test, [corpus.labels[c] for c in present], index[y[train]], y_test, weights)
