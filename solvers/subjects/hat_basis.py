"""Numbers in a piecewise linear basis: what is linear in the basis is any broken line in each number."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_QUANTILES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95, 0.98, 0.995, 0.999, 1.0)
_MOST_ROWS, _MOSTLY_ZERO, _LEAST_DEVIATION = 100_000, 0.3, 0.15
# rows that are converted at a time: the basis of all pairs is the largest array of a training, and exists once
_BLOCK = 1 << 15


class HatBasis:
    """Hat functions of each of some numbers, and products of some of these with flags; centred and scaled.

    Parameters
    ----------
    knots : sequence of float64 array
        Of each number, ascending; of fewer than three the number is kept as it is.
    crossed : sequence of (int, int)
        The hat functions of the first number times the second, which is 0 or 1.
    mean, deviation : float64 array, shape (n_columns,)
    """

    def __init__(
        self,
        knots: list[NDArray[np.float64]],
        crossed: tuple[tuple[int, int], ...],
        mean: NDArray[np.float64],
        deviation: NDArray[np.float64],
    ) -> None:
        self.knots, self.crossed, self.mean, self.deviation = knots, crossed, mean, deviation

    @classmethod
    def fit(cls, X: NDArray[np.float32], crossed: tuple[tuple[int, int], ...]) -> tuple[HatBasis, NDArray[np.float32]]:
        """The basis of numbers like these, with knots at their quantiles, and these numbers in it."""
        some = X[np.linspace(0, len(X) - 1, min(len(X), _MOST_ROWS)).astype(np.int64)].astype(np.float64)
        knots = []
        for column in some.T:
            apart = bool((column == 0).mean() > _MOSTLY_ZERO)
            values = column[column != 0] if apart else column
            places = np.quantile(values, _QUANTILES) if len(values) else np.empty(0)
            knots.append(np.unique(np.concatenate([np.zeros(int(apart)), places]).round(6)))
        basis = cls(knots, crossed, np.empty(0), np.empty(0))
        made = basis._raw(X)
        blocks = [made[at : at + _BLOCK] for at in range(0, len(made), _BLOCK)]
        basis.mean = np.sum([block.sum(axis=0, dtype=np.float64) for block in blocks], axis=0) / len(made)
        squares = np.sum([np.square(block - basis.mean).sum(axis=0) for block in blocks], axis=0)
        basis.deviation = np.maximum(np.sqrt(squares / len(made)), _LEAST_DEVIATION)
        return basis, basis._scaled(made)

    def transform(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Numbers in the basis, shape (n, n_columns)."""
        return self._scaled(self._raw(X))

    def owners(self) -> NDArray[np.int64]:
        """The number that each column is made of, shape (n_columns,)."""
        widths = [max(1, len(knots) - 1) if len(knots) > 2 else 1 for knots in self.knots]
        own = np.repeat(np.arange(len(widths)), widths)
        return np.concatenate([own, *(np.full(widths[number], number) for number, _ in self.crossed)])

    def _scaled(self, made: NDArray[np.float32]) -> NDArray[np.float32]:
        made -= self.mean.astype(np.float32)
        made /= self.deviation.astype(np.float32)
        return made

    def _raw(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        made = np.empty((len(X), len(self.owners())), np.float32)
        for begin in range(0, len(X), _BLOCK):
            block = X[begin : begin + _BLOCK]
            parts = [self._hats(block[:, at].astype(np.float64), knots) for at, knots in enumerate(self.knots)]
            crossed = [parts[number] * block[:, flag : flag + 1] for number, flag in self.crossed]
            np.concatenate([*parts, *crossed], axis=1, out=made[begin : begin + _BLOCK])
        return made

    @staticmethod
    def _hats(values: NDArray[np.float64], knots: NDArray[np.float64]) -> NDArray[np.float32]:
        """All but the first hat function, whose sum with the others is 1."""
        if len(knots) < 3:
            return values[:, None].astype(np.float32)
        at = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, len(knots) - 2)
        share = np.clip((values - knots[at]) / (knots[at + 1] - knots[at]), 0.0, 1.0)
        hats = np.zeros((len(values), len(knots)), np.float32)
        row = np.arange(len(values))
        hats[row, at] = 1.0 - share
        hats[row, at + 1] = share
        return hats[:, 1:]

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """As :meth:`from_arrays` takes them."""
        begin = np.cumsum([0, *map(len, self.knots)])
        crossed = np.array(self.crossed, np.int64).reshape(-1, 2)
        knots = np.concatenate(self.knots)
        return {"knots": knots, "begin": begin, "crossed": crossed, "mean": self.mean, "deviation": self.deviation}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> HatBasis:
        """The basis whose :meth:`arrays` these are."""
        knots, begin = np.asarray(arrays["knots"], np.float64), np.asarray(arrays["begin"]).tolist()
        if begin[0] != 0 or begin[-1] != len(knots) or any(i >= j for i, j in pairwise(begin)):
            raise ValueError("the array begin does not rise from 0 to the number of knots")
        pairs = tuple((int(number), int(flag)) for number, flag in np.asarray(arrays["crossed"]))
        if any(not 0 <= number < len(begin) - 1 for pair in pairs for number in pair):
            raise ValueError("the array crossed contains a number out of range")
        cut = [knots[i:j] for i, j in pairwise(begin)]
        basis = cls(cut, pairs, np.asarray(arrays["mean"], np.float64), np.asarray(arrays["deviation"], np.float64))
        if not len(basis.owners()) == len(basis.mean) == len(basis.deviation):
            raise ValueError("the arrays mean and deviation do not have the length of the basis")
        return basis
