"""svmlight / LIBSVM files: `label index:value ...`, one row per line.

Indices are 1-based, or 0-based where the options say so, and increase within a line; `#` begins a comment; blank lines
are skipped; `qid:` is ignored; a line without features is a row of zeros. Labels are tokens; where all of them are
integral numbers they are written as integers. If the options say that rows have sets, a line begins with its labels,
commas between them, or with its first feature if it has none. `cost:number` is the weight of its row, as in SVM-light;
rows without it then weigh 1.

A file is read as plain blocks, by what others have compiled, and from the first block that is not plain by loops of
our own. Both give the same arrays; the loops alone know all of the format and its errors.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.datasets.schemas import ImportOptions
from app.formats.label_sets import LabelSets, build_labels
from app.formats.labels import Labels, distinct
from app.formats.matrix import Rows
from app.formats.row_groups import RowGroups
from app.formats.svmlight_blocks import PlainBlock, plain_block
from app.formats.svmlight_lines import read_lines
from app.formats.table import Parsed, Problems, row_error
from app.formats.weights import Weights
from app.formats.window import Window, as_array

# what the processor's caches hold along with what is made of it
BLOCK_BYTES = 1 << 19


def parse_svmlight(path: Path, options: ImportOptions) -> Parsed:
    """Read an svmlight file.

    Parameters
    ----------
    path : Path
        The file.
    options : ImportOptions
        `label_separator` makes sets; it can be a comma only.

    Returns
    -------
    Parsed
        Kind "sparse"; X has as many columns as the largest index.

    Raises
    ------
    FormatError
        With the lines that break the format.
    """
    sets = options.unlabelled or options.label_separator is not None
    return read_rows(path, sets, unlabelled=options.unlabelled, zero_based=options.zero_based)


def read_rows(
    path: Path, sets: bool, *, unlabelled: bool = False, zero_based: bool = False, n_header_lines: int = 0
) -> Parsed:
    """The rows of a file after its first lines; raises FormatError."""
    # only the loops know of indices that begin at 0
    plain, line = not zero_based, 1
    found = _Found(sets, unlabelled, 0 if zero_based else 1)
    with Window(path, BLOCK_BYTES) as window:
        while line <= n_header_lines and (unread := window.fill(line)):
            window.consume(unread.find(b"\n") + 1 or len(unread))
            line += 1
        while unread := window.fill(line):
            end = len(unread) if window.at_end else unread.rfind(b"\n") + 1
            block = plain_block(unread[:end], sets) if plain and end else None
            plain = plain and (block is not None or not end)
            if block is not None:
                found.add_block(block, line)
                line += unread.count(b"\n", 0, end)
            elif end:
                line += found.add_lines(unread[:end], line)
            window.consume(end)
    found.problems.raise_if_any()
    if len(found.rows) == 0:
        raise row_error(1, "the file is empty" if line == 1 else "the file has only blank lines or comments")
    label_names, y, indptr = build_labels(found.labels, numbers=True)
    weights = found.weights.build() if found.weighted else None
    return Parsed("sparse", label_names, y, X=found.rows.build(), weights=weights, label_indptr=indptr)


class _Found:
    """What was read of a file so far."""

    def __init__(self, sets: bool, unlabelled: bool, first_index: int) -> None:
        self.sets, self.unlabelled, self.first_index = sets, unlabelled, first_index
        self.labels: Labels | LabelSets = LabelSets() if sets else Labels()
        self.rows, self.weights, self.problems = Rows(), Weights("cost"), Problems()
        self.weighted = False

    def add_block(self, block: PlainBlock, line: int) -> None:
        """Add the rows of a plain block that begins on a line."""
        lines = line + block.lines
        self.rows.add(block.n_features, block.indices, block.values)
        self.weights.add(np.ones(len(lines)) if block.costs is None else block.costs, lines, self.problems)
        self.weighted |= block.costs is not None
        self._add_labels(block.codes, block.names, lines)

    def add_lines(self, block: bytes, line: int) -> int:
        """Add the rows of whole lines, of which the first is a line of the file; how many lines they are."""
        data = as_array(block)
        columns, n_lines = read_lines(data, line, self.sets, self.problems, self.first_index)
        self.rows.add(columns.n_features, columns.indices, columns.values)
        unweighted = columns.costs[:, 0] == 0
        starts, ends = columns.costs.T
        self.weights.add_decimals(data, starts, ends, columns.lines, self.problems, unweighted)
        self.weighted |= not unweighted.all()
        codes, names = distinct(data, columns.labels[:, 0], columns.labels[:, 1])
        self._add_labels(codes, names, columns.lines)
        return n_lines

    def _add_labels(self, codes: npt.NDArray[np.int64], names: Sequence[bytes], lines: npt.NDArray[np.int64]) -> None:
        self.labels.add(codes, names, lines, self.problems)
        if self.unlabelled:
            detail = (
                "unlabelled is set, but this row has a label: leave unlabelled out; rows with labels can be "
                "predicted too"
            )
            groups = RowGroups(codes, lines)
            for code in [code for code, name in enumerate(names) if name.strip()]:
                for line in groups.rows_with(code):
                    self.problems.add(line, detail, "label")
