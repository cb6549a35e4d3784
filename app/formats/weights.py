"""The weights of a file's rows, whatever its format."""

import numpy as np
import numpy.typing as npt

from app.formats.decimals import EMPTY, EXACT, NOT_A_NUMBER, NOT_FINITE, read_decimals
from app.formats.growing import Growing
from app.formats.table import Problems, shorten

_DETAILS = {
    EMPTY: "the weight is empty, expected a number",
    NOT_A_NUMBER: "the weight '{}' is not a number",
    NOT_FINITE: "the weight '{}' is not a finite number",
}


class Weights:
    """Rows' weights, one float64 a row; `column` is their name in errors."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._weights = Growing(np.float64)

    def add(self, values: npt.NDArray[np.float64], rows: npt.NDArray[np.int64], problems: Problems) -> None:
        """Append the weights of rows, of which row k is on line `rows[k]`.

        Weights that are not positive and finite are noted in `problems`.
        """
        for k in np.flatnonzero(~((values > 0) & np.isfinite(values))).tolist():
            detail = "is too large for a 64-bit number" if values[k] > 0 else "is not positive"
            problems.add(int(rows[k]), f"the weight {detail}", self._column)
        self._weights.extend(values)

    def add_decimals(
        self,
        data: npt.NDArray[np.uint8],
        starts: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
        rows: npt.NDArray[np.int64],
        problems: Problems,
        unweighted: npt.NDArray[np.bool_] | None = None,
        written: npt.NDArray[np.uint8] | None = None,
    ) -> None:
        """As `add`, of the decimals at `data[starts[k]:ends[k]]`; rows that are `unweighted` have none and weigh 1.

        `written` is what messages show where the file has decimals in another form than `data`.
        """
        shown = data if written is None else written
        there = np.arange(len(rows)) if unweighted is None else np.flatnonzero(~unweighted)
        found, codes = read_decimals(data, starts[there], ends[there])
        for at in np.flatnonzero(codes != EXACT).tolist():
            k = there[at]
            detail = _DETAILS[int(codes[at])].format(shorten(shown[starts[k] : ends[k]].tobytes()))
            problems.add(int(rows[k]), detail, self._column)
        found[codes != EXACT] = 1.0
        values = np.ones(len(rows))
        values[there] = found
        self.add(values, rows, problems)

    def build(self) -> npt.NDArray[np.float64]:
        """All weights, shape (n,)."""
        return self._weights.build()
