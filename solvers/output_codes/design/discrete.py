"""Codes of -1 and +1 designed for given classifiers, column by column; Crammer and Singer 2002, section 3."""

import numpy as np

from solvers.numerics.array_types import Array, Floats
from solvers.output_codes.codes import Code, CodeError, is_discrete


def expected_error(h: Array, y: Array, code: Array) -> float:
    """The error of the inner-product decoding where ties are broken by chance (Crammer and Singer 2002, equation 1).

    Parameters
    ----------
    h : array of -1 and +1, shape (n_samples, n_columns)
    y : int array, shape (n_samples,)
        Class indices.
    code : array, shape (n_classes, n_columns)
        Ties are exact where its entries are integers.
    """
    scores = _products(h, code)
    winners = scores == scores.max(axis=1, keepdims=True)
    return float(1.0 - (winners[np.arange(len(y)), y] / winners.sum(axis=1)).mean())


def best_first_column(h: Array, y: Array, n_classes: int) -> tuple[Code, float]:
    """The single column that makes the most of one classifier (Crammer and Singer 2002, Theorem 1).

    For a given number w of +1 the best column has them at the largest ``a_r+ / w - a_r- / (k - w)`` (equation 6),
    where a_r+ and a_r- count the examples of class r by the classifier's answer; all w from 1 to k - 1 are tried. A
    column without two sides would leave everything to chance.

    Parameters
    ----------
    h : array of -1 and +1, shape (n_samples,)
        The classifier's answers.
    y : int array, shape (n_samples,)
        Class indices.
    n_classes : int
        k; at least 2.

    Returns
    -------
    column : int8 array, shape (n_classes,)
    expected_error : float
        As :func:`expected_error`, in O(n + k^2 log k).
    """
    h, y = _answers(h, y)
    if n_classes < 2:
        raise CodeError(f"a column needs at least two classes; {n_classes} was given")
    plus = np.bincount(y[h > 0], minlength=n_classes).astype(np.float64)
    minus = np.bincount(y[h < 0], minlength=n_classes).astype(np.float64)
    best, column = -1.0, np.empty(0, np.int8)
    for w in range(1, n_classes):
        order = np.argsort(minus / (n_classes - w) - plus / w, kind="stable")
        value = plus[order[:w]].sum() / w + minus[order[w:]].sum() / (n_classes - w)
        if value > best:
            best = value
            column = np.full(n_classes, -1, np.int8)
            column[order[:w]] = 1
    return column, float(1.0 - best / len(y))


def next_column(h: Array, y: Array, code: Array, h_next: Array) -> tuple[Code, float]:
    """A column for one more classifier beside a code whose columns are kept: a heuristic.

    To find the best code for given classifiers is NP-complete (Crammer and Singer 2002, Theorem 2), and the paper
    leaves open whether the best next column can be found efficiently. This is a descent from three columns: the one
    of :func:`best_first_column`, the side that most of each class's examples take, and a constant one. Of all single
    entries the one whose change lowers the expected error most is changed, until none lowers it. The error is never
    above that of ``code`` alone, but nothing says how far it is from the best.

    Parameters
    ----------
    h : array of -1 and +1, shape (n_samples, n_columns)
        The answers of the classifiers that ``code`` is for.
    y : int array, shape (n_samples,)
    code : array of integers, shape (n_classes, n_columns)
    h_next : array of -1 and +1, shape (n_samples,)

    Returns
    -------
    column : int8 array, shape (n_classes,)
        Constant where the classifier seems to be of no use.
    expected_error : float
        Of the code with that column.
    """
    h_next, y = _answers(h_next, y)
    n_classes = code.shape[0]
    groups, scores, counts = _grouped(_products(h, code), h_next, y, n_classes)
    lean = np.bincount(y, h_next, n_classes)
    starts = [np.ones(n_classes, np.int8), np.where(lean >= 0, 1, -1), best_first_column(h_next, y, n_classes)[0]]
    found = [_descend(groups, scores, counts, np.asarray(start, np.int8)) for start in starts]
    hits, column = max(found, key=lambda one: one[0])
    return column, float(1.0 - hits / len(y))


def greedy_code(h: Array, y: Array, n_classes: int) -> tuple[Code, Floats]:
    """A code for given classifiers, column by column: the first one best, the others by :func:`next_column`.

    Parameters
    ----------
    h : array of -1 and +1, shape (n_samples, n_columns)
    y : int array, shape (n_samples,)

    Returns
    -------
    code : int8 array, shape (n_classes, n_columns)
    errors : float64 array, shape (n_columns,)
        The expected error with the columns up to each; it never rises.
    """
    first, error = best_first_column(h[:, 0], y, n_classes)
    code, errors = first[:, None], [error]
    for t in range(1, h.shape[1]):
        column, error = next_column(h[:, :t], y, code, h[:, t])
        code = np.concatenate([code, column[:, None]], axis=1)
        errors.append(error)
    return code, np.array(errors)


def _products(h: Array, code: Array) -> Array:
    """``M h`` of every row, in integers where both are."""
    whole = is_discrete(code)
    return (
        np.asarray(h).astype(np.int64 if whole else np.float64)
        @ np.asarray(code).astype(np.int64 if whole else np.float64).T
    )


def _answers(h: Array, y: Array) -> tuple[Array, Array]:
    h, y = np.asarray(h), np.asarray(y)
    if h.shape != y.shape or h.ndim != 1 or len(h) == 0:
        raise CodeError(f"answers of shape {h.shape} and labels of shape {y.shape}; expected one of each per example")
    if not np.isin(h, (-1, 1)).all():
        raise CodeError("the answers of a classifier are -1 and +1")
    return h, y


def _grouped(scores: Array, h: Array, y: Array, n_classes: int) -> tuple[Array, Array, Floats]:
    """Examples with the same scores and the same answer as one: their answers, scores, and counts by class."""
    kinds, group = np.unique(np.column_stack([h, scores]), axis=0, return_inverse=True)
    counts = np.bincount(group.ravel() * n_classes + y, minlength=len(kinds) * n_classes)
    return kinds[:, :1], kinds[:, 1:], counts.reshape(-1, n_classes).astype(np.float64)


def _descend(h: Array, scores: Array, counts: Floats, column: Code) -> tuple[float, Code]:
    """Change the entry that gains most until none gains; how many examples are right in expectation, and the column.

    Changing the entry of class r moves only its own score, so that the best of the other classes decides: with the
    two largest scores at hand all n_classes changes are weighed in one pass.
    """
    column = column.copy()
    each = np.arange(len(scores))[:, None]
    hits = _hits(scores + h * column, counts)
    while True:
        now = scores + h * column
        most = now.max(axis=1, keepdims=True)
        at_most = now == most
        n_most = at_most.sum(axis=1, keepdims=True)
        below = np.where(at_most, np.iinfo(np.int64).min // 2, now).max(axis=1, keepdims=True)
        alone = at_most & (n_most == 1)
        rival = np.where(alone, below, most)
        tied = now == below
        n_rivals = np.where(alone, tied.sum(axis=1, keepdims=True), n_most - at_most)
        held_most = (counts * at_most).sum(axis=1, keepdims=True)
        held_below = (counts * tied).sum(axis=1, keepdims=True)
        held = np.where(alone, held_below, held_most - counts * at_most)
        moved = now - 2 * h * column
        right = np.where(
            moved > rival, counts, np.where(moved == rival, (held + counts) / (n_rivals + 1), held / n_rivals)
        )
        gains = right[each[:, 0]].sum(axis=0)
        r = int(gains.argmax())
        # rounding alone is no gain
        if gains[r] <= hits + 1e-9 * max(1.0, hits):
            return hits, column
        column[r] = -column[r]
        hits = _hits(scores + h * column, counts)


def _hits(scores: Array, counts: Floats) -> float:
    winners = scores == scores.max(axis=1, keepdims=True)
    return float(((counts * winners).sum(axis=1) / winners.sum(axis=1)).sum())
