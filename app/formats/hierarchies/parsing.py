"""Reads a file of labels of any format."""

from dataclasses import replace
from pathlib import Path

from app.descriptions import loaded
from app.formats.hierarchies.exclusion import Exclusion
from app.formats.hierarchies.source import Bounds
from app.formats.hierarchies.vocabulary import Vocabulary
from app.formats.plain_file import MostUnpacked
from app.formats.table import row_error
from app.formats.workbooks import as_lines
from app.formats.zeros import require_storable_file
from app.hierarchies.formats import FORMATS
from app.hierarchies.schemas import HierarchyOptions

# how a sheet of a workbook is read, which is written as CSV
_OF_SHEETS = {"sheet": None, "delimiter": "comma"}


def parse_hierarchy(
    path: Path, format: str, options: HierarchyOptions | None = None, bounds: Bounds | None = None
) -> Vocabulary:
    """Read a file of labels.

    Parameters
    ----------
    path : Path
        The file; it is read into memory. Formats csv and codes take a sheet of a workbook, too; errors then have the
        numbers of its rows.
    format : str
        A name in FORMATS.
    options : HierarchyOptions, optional
        What else is known about the file.
    bounds : Bounds, optional
        What the tree may come to.

    Raises
    ------
    FormatError
        With the lines that break the format, keep the edges from being a tree, or have U+0000 or half of a surrogate
        pair.
    KeyError
        If there is no such format.
    """
    options, bounds, entry = options or HierarchyOptions(), bounds or Bounds(), FORMATS[format]
    if entry.in_sheets and is_workbook(path):
        with as_lines(path, MostUnpacked(n_bytes=bounds.n_bytes), options.sheet) as (sheet, name):
            found = parse_hierarchy(sheet, format, options.model_copy(update=_OF_SHEETS), bounds)
        read_as = {key: value for key, value in found.read_as.items() if key != "delimiter"}
        return replace(found, read_as={"sheet": name, **read_as})
    if options.sheet is not None:
        raise row_error(1, "sheet is an option of workbooks (.xlsx, .ods), and the file is none")
    excluded = Exclusion.parse(options.exclude)
    if not entry.excludes:
        excluded.require_no_groups(format)
    vocabulary: Vocabulary = loaded(entry.parser)(path, options, bounds)
    require_storable_file(path, escapes=entry.has_escapes)
    return vocabulary if entry.excludes else excluded.apply(vocabulary)


def is_workbook(path: Path) -> bool:
    """Whether a file begins as a workbook does, which is a zip archive."""
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"
