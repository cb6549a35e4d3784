"""Output codes: what makes a matrix one, distances, decoding, and the design of single columns for given classifiers.

A code is a matrix M with one row a class and one column a binary problem: +1 and -1 say on which side of the column
the class stands, 0 that its examples are left out (Dietterich and Bakiri 1995; Allwein, Schapire and Singer 2000). A
continuous code has real entries, whose size is the confidence in the side (Crammer and Singer 2002, section 5).
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.core.problem import ProblemError

Code = NDArray[np.int8]
Floats = NDArray[np.float64]
Loss = Literal["hinge", "squared_hinge", "exponential", "logistic"]

NAMED = 3
CHUNK_BYTES = 32 << 20


class CodeError(ProblemError):
    """A matrix cannot be an output code, or no code of the kind exists; the message says why."""


def check(code: ArrayLike, classes: Sequence[str] | None = None) -> Code:
    """A given matrix as a code.

    Parameters
    ----------
    code : array of -1, 0 and +1, shape (n_classes, n_columns)
    classes : sequence of str, optional
        Label names, for the messages; their number must be that of the rows.

    Returns
    -------
    int8 array, shape (n_classes, n_columns)

    Raises
    ------
    CodeError
        Another shape, other entries, two equal rows, a row of zeros, or a column whose entries other than 0 all have
        one sign.
    """
    try:
        given = np.asarray(code, dtype=np.float64)
    except (TypeError, ValueError):
        raise CodeError("a code is a matrix of -1, 0 and +1 with one row a class; the rows differ in length") from None
    if given.ndim != 2 or given.shape[0] < 2 or given.shape[1] < 1:
        raise CodeError(f"a code has two rows and one column at least; the shape {given.shape} was given")
    if classes is not None and len(classes) != len(given):
        raise CodeError(f"the code has {len(given)} rows; there are {len(classes)} classes, each of which needs one")
    if not np.isin(given, (-1.0, 0.0, 1.0)).all():
        wrong = given[~np.isin(given, (-1.0, 0.0, 1.0))][0]
        raise CodeError(f"a code holds -1, 0 and +1; {wrong:g} was given")
    matrix = given.astype(np.int8)
    names = list(classes) if classes is not None else [str(r) for r in range(len(matrix))]
    empty = np.flatnonzero(~matrix.any(axis=1))
    if len(empty):
        raise CodeError(f"the row of class {names[empty[0]]!r:.80} is zero: no column would see its examples")
    _, first, group = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
    twin = np.flatnonzero(first[group] != np.arange(len(matrix)))
    if len(twin):
        pair = names[first[group[twin[0]]]], names[twin[0]]
        raise CodeError(f"the rows of classes {pair[0]!r:.80} and {pair[1]!r:.80} are equal: nothing tells them apart")
    constant = np.flatnonzero(~((matrix > 0).any(axis=0) & (matrix < 0).any(axis=0)))
    if len(constant):
        shown = ", ".join(map(str, constant[:NAMED])) + (" ..." if len(constant) > NAMED else "")
        raise CodeError(f"{len(constant)} column(s) have no class on one of their sides: {shown}")
    return matrix


def row_distances(code: NDArray[Any], *, discrete: bool | None = None) -> Floats:
    """Distances between the rows, shape (n_classes, n_classes).

    For entries -1, 0 and +1 the generalised Hamming distance ``sum_t (1 - M_rt M_st) / 2``, where a zero counts one
    half (Allwein, Schapire and Singer 2000, section 3); for all others the Euclidean distance. Zero on the diagonal.
    ``discrete`` says which of the two where ``code`` is a part of another.
    """
    distances = _hamming(code) if _counts(code, discrete) else _euclidean(code)
    np.fill_diagonal(distances, 0.0)
    return distances


def participants(code: Code, y: NDArray[np.int32]) -> NDArray[np.int64]:
    """How many examples take part in each column, shape (n_columns,); ``y`` holds their class indices."""
    counts, sizes = np.bincount(y, minlength=len(code)), np.zeros(code.shape[1], np.int64)
    chunk = max(1, CHUNK_BYTES // (8 * code.shape[1]))
    for begin in range(0, len(code), chunk):
        sizes += counts[begin : begin + chunk] @ (code[begin : begin + chunk] != 0)
    return sizes


def closest_rows(code: Code) -> tuple[float, int]:
    """The least of the distances between two rows of a code, and how many pairs have it.

    As :func:`row_distances` has them, which takes memory for all pairs; this does not.
    """
    least, count = np.inf, 0
    size = max(1, CHUNK_BYTES // (8 * len(code)))
    for begin in range(0, len(code) - 1, size):
        rows = code[begin : begin + size].astype(np.float64)
        distances = 0.5 * (code.shape[1] - products(rows, code[begin + 1 :]))
        later = distances[np.arange(len(rows))[:, None] <= np.arange(distances.shape[1])]
        if float(later.min()) < least:
            least, count = float(later.min()), 0
        count += int(np.count_nonzero(later == least))
    return least, count


def products(h: NDArray[Any], code: NDArray[Any]) -> Floats:
    """``h @ code.T`` in float64 without a copy of the whole code in float64, shape (n_samples, n_classes)."""
    answers, size = np.asarray(h, np.float64), max(1, CHUNK_BYTES // (8 * code.shape[1]))
    if len(code) <= size:
        return np.asarray(answers @ code.astype(np.float64).T)
    scores = np.empty((len(answers), len(code)))
    for begin in range(0, len(code), size):
        scores[:, begin : begin + size] = answers @ code[begin : begin + size].astype(np.float64).T
    return scores


def column_distances(code: NDArray[Any], *, discrete: bool | None = None) -> Floats:
    """Distances between the columns up to their sign, shape (n_columns, n_columns).

    A column and its complement are one binary problem, so each distance is the smaller of those to the other column
    and to its complement. Measured as the rows' are.
    """
    if _counts(code, discrete):
        distances = _hamming(code.T)
        distances = np.minimum(distances, code.shape[0] - distances)
    else:
        distances = np.minimum(_euclidean(code.T), _euclidean(code.T, -1.0))
    np.fill_diagonal(distances, 0.0)
    return distances


def is_discrete(code: NDArray[Any]) -> bool:
    """Whether all entries are -1, 0 or +1."""
    return bool(np.isin(code, (-1, 0, 1)).all())


def decode(h: NDArray[Any], code: NDArray[Any], how: str = "inner_product", loss: Loss = "hinge") -> Floats:
    """Scores of the classes from the answers of the columns; the largest is the prediction.

    Parameters
    ----------
    h : float array, shape (n_samples, n_columns)
        Margins of the binary machines.
    code : array, shape (n_classes, n_columns)
    how : str
        ``inner_product``: ``M h``. ``votes``: ``M sign(h)``. ``hamming``: less the distance
        ``sum_t (1 - sign(M_rt h_t)) / 2``. ``loss``: less ``sum_t loss(M_rt h_t)`` (Allwein, Schapire and Singer
        2000, equations 4 and 5).
    loss : str
        For ``loss``: ``hinge`` (1 - z)_+, its square, ``exponential`` exp(-z), or ``logistic`` log(1 + exp(-2 z)).

    Returns
    -------
    float64 array, shape (n_samples, n_classes)
    """
    h = np.asarray(h, dtype=np.float64)
    if how == "inner_product":
        return products(h, np.asarray(code))
    if how == "votes":
        return products(np.sign(h), np.asarray(code))
    if how == "hamming":
        return np.asarray(0.5 * products(np.sign(h), np.sign(code)) - 0.5 * code.shape[1])
    if how != "loss":
        raise ValueError(f"{how!r:.80} is no decoding; known are inner_product, votes, hamming and loss")
    of = _LOSSES[loss]
    if not is_discrete(code):
        return np.asarray(-np.stack([of(h * row).sum(axis=1) for row in code.astype(np.float64)], axis=1))
    zeros = (code == 0).sum(axis=1) * of(np.zeros(1))
    return np.asarray(-(products(of(h), code > 0) + products(of(-h), code < 0) + zeros))


def expected_error(h: NDArray[Any], y: NDArray[Any], code: NDArray[Any]) -> float:
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


def best_first_column(h: NDArray[Any], y: NDArray[Any], n_classes: int) -> tuple[Code, float]:
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


def next_column(h: NDArray[Any], y: NDArray[Any], code: NDArray[Any], h_next: NDArray[Any]) -> tuple[Code, float]:
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


def greedy_code(h: NDArray[Any], y: NDArray[Any], n_classes: int) -> tuple[Code, Floats]:
    """A code for given classifiers, column by column: the first one best, the others by :func:`next_column`.

    Parameters
    ----------
    h : array of -1 and +1, shape (n_samples, n_columns)
    y : int array, shape (n_samples,)
    n_classes : int

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


def _squared_hinge(z: Floats) -> Floats:
    return np.maximum(1.0 - z, 0.0) ** 2


def _exponential(z: Floats) -> Floats:
    # sums over any number of columns stay finite
    return np.exp(np.minimum(-z, 600.0))


_LOSSES: dict[str, Callable[[Floats], Floats]] = {
    "hinge": lambda z: np.maximum(1.0 - z, 0.0),
    "squared_hinge": _squared_hinge,
    "exponential": _exponential,
    "logistic": lambda z: np.logaddexp(0.0, -2.0 * z),
}


def _counts(code: NDArray[Any], discrete: bool | None) -> bool:
    return is_discrete(code) if discrete is None else discrete


def _hamming(rows: NDArray[Any]) -> Floats:
    signed = rows.astype(np.float64)
    return np.asarray((rows.shape[1] - signed @ signed.T) / 2.0)


def _euclidean(rows: NDArray[Any], sign: float = 1.0) -> Floats:
    squares = (rows**2).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(squares[:, None] + squares[None, :] - 2.0 * sign * (rows @ rows.T), 0.0)))


def _products(h: NDArray[Any], code: NDArray[Any]) -> NDArray[Any]:
    """``M h`` of every row, in integers where both are."""
    whole = is_discrete(code)
    return (
        np.asarray(h).astype(np.int64 if whole else np.float64)
        @ np.asarray(code).astype(np.int64 if whole else np.float64).T
    )


def _answers(h: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    h, y = np.asarray(h), np.asarray(y)
    if h.shape != y.shape or h.ndim != 1 or len(h) == 0:
        raise CodeError(f"answers of shape {h.shape} and labels of shape {y.shape}; one of each an example is needed")
    if not np.isin(h, (-1, 1)).all():
        raise CodeError("the answers of a classifier are -1 and +1")
    return h, y


def _grouped(
    scores: NDArray[Any], h: NDArray[Any], y: NDArray[Any], n_classes: int
) -> tuple[NDArray[Any], NDArray[Any], Floats]:
    """Examples with the same scores and the same answer as one: their answers, scores, and counts by class."""
    kinds, group = np.unique(np.column_stack([h, scores]), axis=0, return_inverse=True)
    counts = np.bincount(group.ravel() * n_classes + y, minlength=len(kinds) * n_classes)
    return kinds[:, :1], kinds[:, 1:], counts.reshape(-1, n_classes).astype(np.float64)


def _descend(h: NDArray[Any], scores: NDArray[Any], counts: Floats, column: Code) -> tuple[float, Code]:
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


def _hits(scores: NDArray[Any], counts: Floats) -> float:
    winners = scores == scores.max(axis=1, keepdims=True)
    return float(((counts * winners).sum(axis=1) / winners.sum(axis=1)).sum())
