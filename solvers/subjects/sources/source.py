"""What a source of learnt scores promises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.numerics.array_types import Array, Bools, Floats, Ints

Floats32 = NDArray[np.float32]


class Task(NamedTuple):
    """What a source learns from.

    Attributes
    ----------
    terms : csr_matrix of float64, shape (n_rows, n_terms)
        Rows of length one.
    Y : csr_matrix, shape (n_rows, n_learnt)
        Which of the concepts with training rows a row has; each has one.
    weights : float64 array, shape (n_rows,)
    fold : int64 array, shape (n_rows,)
        From 0.
    regularization : float
        Of kernel machines.
    seed, threads : int
    """

    terms: sp.csr_matrix
    Y: sp.csr_matrix
    weights: Floats
    fold: Ints
    regularization: float
    seed: int
    threads: int


class Scorer(Protocol):
    """Scores of the concepts that training rows have; a part of stored models."""

    kind: ClassVar[str]

    def scores(self, terms: sp.csr_matrix) -> Floats32:
        """Scores of rows of length one: shape (n_rows, n_learnt)."""

    def parts(self, terms: sp.csr_matrix, concept: int) -> Floats:
        """What each term of a single row adds to the score of a learnt concept: shape (terms.nnz,)."""

    def merged(self, kept: Bools, of: Ints) -> Scorer:
        """The scorer of fewer concepts: those that are kept, each under the number in ``of``, which may be shared."""

    def arrays(self) -> Mapping[str, Array]:
        """What is stored."""

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], n_learnt: int, n_terms: int) -> Scorer:
        """The scorer of stored arrays.

        Raises
        ------
        ValueError, KeyError
            They do not fit one another.
        """


class Learnt(NamedTuple):
    """What a source has learnt.

    Attributes
    ----------
    scorer : Scorer
        Of all rows.
    without : callable
        ``without(fold, rows)``: scores of rows of a fold, shape (n_rows, n_learnt), by a machine that was trained
        without this fold. Folds are asked for in ascending order.
    """

    scorer: Scorer
    without: Callable[[int, Ints], Floats32]


Source = Callable[[Task], Learnt]
