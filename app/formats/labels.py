"""The label column and the split column of a file, whatever its format."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.formats.decimals import pieces
from app.formats.growing import Growing
from app.formats.label_names import NO_LABEL, label_problem
from app.formats.row_groups import RowGroups
from app.formats.table import Problems, shorten
from app.values import normalized

TRAIN, TEST, VALIDATION = 0, 1, 2
PARTS: tuple[Literal["train"], Literal["test"], Literal["validation"]] = ("train", "test", "validation")

_SPLITS = {"train": TRAIN, "test": TEST, "validation": VALIDATION, "valid": VALIDATION, "val": VALIDATION}
_INTEGRAL = re.compile(r"([+-]?)0*([0-9]+)(?:\.0*)?")


class Labels:
    """Rows' label names, kept as one int32 a row; names are in NFC, without surrounding white space.

    Parameters
    ----------
    may_lack : bool
        Whether a row may have none, which is "".
    """

    def __init__(self, may_lack: bool = False) -> None:
        self._may_lack = may_lack
        self._ids: dict[str, int] = {}
        self._y = Growing(np.int32)

    def add(
        self,
        codes: npt.NDArray[np.int64],
        names: Sequence[str | bytes],
        rows: npt.NDArray[np.int64],
        problems: Problems,
    ) -> None:
        """Append rows of which row k has the label `names[codes[k]]` and is on line `rows[k]`.

        Names that cannot be labels are noted in `problems` with the lines that have them.
        """
        ids, groups = np.empty(len(names), dtype=np.int32), RowGroups(codes, rows)
        for k, name in enumerate(names):
            try:
                decoded = normalized(name.decode() if isinstance(name, bytes) else name)
                detail = label_problem(decoded) if decoded or not self._may_lack else None
            except UnicodeDecodeError:
                decoded, detail = "", "the label is not valid UTF-8"
            if detail is not None:
                for row in groups.rows_with(k):
                    problems.add(row, detail, "label", "no_label" if detail == NO_LABEL else None)
            ids[k] = self._ids.setdefault(decoded, len(self._ids))
        self._y.extend(ids[codes])

    def build(self, numbers: bool = False) -> tuple[list[str], npt.NDArray[np.int32]]:
        """Sorted names and the index of each row's name.

        Parameters
        ----------
        numbers : bool
            Write integral numbers as integers ("3", "3.0" and "+3" are "3") if all names are integral numbers.
        """
        names = integers(list(self._ids)) if numbers else list(self._ids)
        labels = sorted(set(names))
        place = {name: index for index, name in enumerate(labels)}
        return labels, np.array([place[name] for name in names], dtype=np.int32)[self._y.build()]


class Splits:
    """Rows' split, one int8 a row."""

    def __init__(self) -> None:
        self._split = Growing(np.int8)

    def add(
        self,
        codes: npt.NDArray[np.int64],
        names: Sequence[str | bytes],
        rows: npt.NDArray[np.int64],
        problems: Problems,
    ) -> None:
        """Append rows of which row k has the split `names[codes[k]]` and is on line `rows[k]`."""
        values, groups = np.empty(len(names), dtype=np.int8), RowGroups(codes, rows)
        for k, name in enumerate(names):
            decoded = name.decode("utf-8", "replace") if isinstance(name, bytes) else name
            values[k] = _SPLITS.get(decoded, TRAIN)
            if decoded not in _SPLITS:
                for row in groups.rows_with(k):
                    problems.add(row, f"the split is '{shorten(decoded)}', expected train, test or validation", "split")
        self._split.extend(values[codes])

    def build(self) -> npt.NDArray[np.int8]:
        """0 train, 1 test, 2 validation, shape (n,)."""
        return self._split.build()


def distinct(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], list[bytes]]:
    """Distinct pieces data[starts[k]:ends[k]], which do not overlap and are in this order, and the index of each.

    Returns
    -------
    codes : int64 array, shape (len(starts),)
    names : list of bytes
    """
    encoded = pieces(data, starts, ends, pa.large_binary()).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def integers(names: list[str]) -> list[str]:
    """Names as integers are written if all of them are integral numbers, else as they are."""
    matches = [_INTEGRAL.fullmatch(name) for name in names]
    return [_integer(match) for match in matches if match is not None] if all(matches) else names


def repeated_name(names: Iterable[str]) -> str | None:
    """The first name that is there a second time, white space around it aside; None if all are different."""
    seen: set[str] = set()
    for name in map(normalized, names):
        if name in seen:
            return name
        seen.add(name)
    return None


def _integer(match: re.Match[str]) -> str:
    sign, digits = match.groups()
    return f"-{digits}" if sign == "-" and digits != "0" else digits
