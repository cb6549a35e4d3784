"""Rows to come with labels that no training row has, made of rows held out.

Every label keeps a row to train on, so that no row held out has a label that is unknown. Of the rows to come a share
has: by the estimate of Good (1953), as many as there are labels with a single row among all rows. Answers to them are
wrong. How sure they are is seen on the rows held out with the rarest labels, whose own label is taken from the answers.
"""

import numpy as np

from solvers.numerics.array_types import Floats32, Ints, Ints32
from solvers.selection.pooling import log_softmax

# logarithms of probabilities are not lessened below this part, which is found in so many steps
LEAST_FACTOR, HALVINGS = 0.25, 7


def with_unseen(said: Floats32, y: Ints32, counts: Ints) -> tuple[Floats32, Ints32]:
    """The answers to the rows held out, and after them those to rows with labels that are not known.

    Parameters
    ----------
    said : float32 array, shape (n_rows, n_classes)
        Logarithms of the probabilities of rows held out.
    y : int32 array, shape (n_rows,)
    counts : int array, shape (n_classes,)
        Rows of each class, those held out among them.

    Returns
    -------
    said : float32 array, shape (n_rows + n_unseen, n_classes)
    y : int32 array, shape (n_rows + n_unseen,)
        Of the added rows the class whose probability is 0: an answer is right at the broader nodes that it has.
    """
    share = float((counts == 1).sum() / max(1, counts.sum()))
    n_unseen = min(len(y), round(len(y) * share / (1.0 - share))) if share < 1.0 else len(y)
    if n_unseen == 0 or said.shape[1] < 2:
        return said, y
    rows = np.argsort(counts[y], kind="stable")[:n_unseen]
    unseen = said[rows]
    unseen[np.arange(n_unseen), y[rows]] = -np.inf
    return np.concatenate([said, log_softmax(unseen)]), np.concatenate([y, y[rows]])


def sure_factor(said: Floats32, y: Ints32) -> float:
    """The factor of logarithms of probabilities, at most 1, with which answers are as sure as they are right, by means.

    Parameters
    ----------
    said, y
        As :func:`with_unseen` returns them.
    """
    right = float((said.argmax(axis=1) == y).mean())
    low, high = LEAST_FACTOR, 1.0
    for _ in range(HALVINGS):
        factor = (low + high) / 2.0
        sure = float(np.exp(log_softmax(np.float32(factor) * said).max(axis=1)).mean())
        low, high = (low, factor) if sure > right else (factor, high)
    return high
