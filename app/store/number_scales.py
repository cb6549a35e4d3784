"""The scales of a dataset's numbers, as its statistics show them."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.sparse import csr_matrix

from app.datasets.statistics_schemas import ColumnSpread, NumberScales
from solvers.numerics import number_scales as scales
from solvers.numerics.number_scales import scales_of


def number_scales(X: csr_matrix, names: Sequence[str] | None) -> NumberScales:
    """The largest number and, of dense columns, the smallest and the largest standard deviation.

    Parameters
    ----------
    X : csr_matrix of float64, shape (n_rows, n_features)
        NaN is a missing number, and is left out.
    names : sequence of str, optional
        Of all columns.
    """
    found = scales_of(X)
    least, most = (
        None
        if spread is None
        else ColumnSpread(
            column=str(spread.column) if names is None else names[spread.column], deviation=spread.deviation
        )
        for spread in (found.least, found.most)
    )
    return NumberScales(largest=found.largest, least_spread=least, most_spread=most)


def why_scaled(numbers: NumberScales) -> str | None:
    """Why numbers are scaled by default; None where they are taken as they are."""
    least, most = (
        None if spread is None else (spread.column, spread.deviation)
        for spread in (numbers.least_spread, numbers.most_spread)
    )
    return scales.why_scaled(numbers.largest, least, most)
