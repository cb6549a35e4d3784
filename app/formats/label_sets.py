"""The labels of a file whose rows have sets of them, whatever its format."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from app.formats.growing import Growing
from app.formats.label_names import label_problem
from app.formats.labels import Labels, integers
from app.formats.row_groups import RowGroups
from app.formats.table import Problems
from app.values import normalized

# what can separate the labels of a cell, the first choice first
SEPARATORS = (";", "|", "\t")


class LabelSets:
    """Rows' sets of label names, kept as one int32 a label; names are in NFC, without surrounding white space.

    Parameters
    ----------
    separator : str
        What separates the labels of a cell; a blank cell is an empty set.
    """

    def __init__(self, separator: str = ",") -> None:
        self._separator = separator
        self._ids: dict[str, int] = {}
        self._members = Growing(np.int32)
        self._lengths = Growing(np.int64)

    def add(
        self,
        codes: npt.NDArray[np.int64],
        names: Sequence[str | bytes],
        rows: npt.NDArray[np.int64],
        problems: Problems,
    ) -> None:
        """Append rows of which row k has the labels in the cell `names[codes[k]]` and is on line `rows[k]`.

        Names that cannot be labels are noted in `problems` with the lines that have them.
        """
        cells = [name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name for name in names]
        sets = [cell.split(self._separator) if cell.strip() else [] for cell in cells]
        if self._separator == " ":  # several blanks are one
            sets = [[name for name in names if name] for names in sets]
        self.add_sets(codes, sets, rows, problems)

    def add_sets(
        self,
        codes: npt.NDArray[np.int64],
        sets: Sequence[Sequence[str]],
        rows: npt.NDArray[np.int64],
        problems: Problems,
    ) -> None:
        """As `add`, of lists of names."""
        lengths = np.array([len(names) for names in sets], dtype=np.int64)
        members = np.empty(int(lengths.sum()), dtype=np.int32)
        at, groups = 0, RowGroups(codes, rows)
        for k, names in enumerate(sets):
            for name in names:
                stripped = normalized(name)
                detail = label_problem(stripped)
                if detail is not None:
                    if any("\udc80" <= character <= "\udcff" for character in stripped):
                        detail = "the label is not valid UTF-8"
                    for row in groups.rows_with(k):
                        problems.add(row, detail, "label")
                members[at] = self._ids.setdefault(stripped, len(self._ids))
                at += 1
        widths = lengths[codes]
        begin = np.cumsum(lengths) - lengths
        offsets = np.arange(int(widths.sum())) - np.repeat(np.cumsum(widths) - widths, widths)
        self._members.extend(members[np.repeat(begin[codes], widths) + offsets])
        self._lengths.extend(widths)

    def build(self, numbers: bool = False) -> tuple[list[str], npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Sorted names; the indices of each row's names among them, ascending, each once; and where rows begin.

        Parameters
        ----------
        numbers : bool
            As `Labels.take` has it.

        Returns
        -------
        labels : list of str
        y : int32 array, shape (n_labels,)
        indptr : int64 array, shape (n_rows + 1,)
        """
        names = integers(list(self._ids)) if numbers else list(self._ids)
        labels = sorted(set(names))
        place = {name: index for index, name in enumerate(labels)}
        index = np.array([place[name] for name in names], dtype=np.int64)
        lengths = self._lengths.build()
        row = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
        keys = np.unique(row * max(1, len(labels)) + index[self._members.build()])
        row, y = np.divmod(keys, max(1, len(labels)))
        counts = np.bincount(row, minlength=len(lengths))
        return labels, y.astype(np.int32), np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def build_labels(
    labels: Labels | LabelSets, numbers: bool = False
) -> tuple[list[str], npt.NDArray[np.int32], npt.NDArray[np.int64] | None]:
    """Names, their indices, and where rows begin: None where each row has one label."""
    if isinstance(labels, LabelSets):
        return labels.build(numbers)
    return *labels.build(numbers), None


def separator_for(labels: Iterable[str], preferred: str | None) -> str:
    """The preferred separator, or else the first that no label contains."""
    if preferred is not None:
        return preferred
    listed = list(labels)
    free = (mark for mark in SEPARATORS if not any(mark in label for label in listed))
    return next(free, "\n")
