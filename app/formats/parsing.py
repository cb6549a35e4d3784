"""Reads a file of any format: its rows, or its columns as they are written."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from app.datasets.formats import FORMATS
from app.datasets.recipe_schemas import TableColumns
from app.datasets.schemas import ImportOptions
from app.descriptions import loaded
from app.formats.detection import check_format
from app.formats.indicator_columns import as_numbers, with_indicator_labels
from app.formats.inference import inferred
from app.formats.label_forms import with_label_forms
from app.formats.plain_file import MostUnpacked, head_of, plain_file
from app.formats.table import Parsed
from app.formats.zeros import require_no_zeros


def parse(
    path: Path, format: str, options: ImportOptions | None = None, most_unpacked: MostUnpacked | None = None
) -> Parsed:
    """Read a file, compressed or not.

    Parameters
    ----------
    path : Path
        The file; it is read in blocks and may be larger than the memory that its arrays need.
    format : str
        A name in FORMATS.
    options : ImportOptions, optional
        What else is known about the file.
    most_unpacked : MostUnpacked, optional
        Limits of a decompressed file.

    Raises
    ------
    FormatError
        With the lines that break the format.
    KeyError
        If there is no such format.
    """
    options, most = options or ImportOptions(), most_unpacked or MostUnpacked()
    entry = FORMATS[format]
    check_format(head_of(path, 1024), format, options)
    given = options
    if given.label_columns:
        options = as_numbers(given)
    with plain_file(path, most, options.encoding if entry.is_text else "utf-8") as plain:
        left_out: dict[str, str] = {}
        if options.infer_columns:
            options, left_out = inferred(plain, format, options, most)
        parsed = entry.read(plain, options, most)
        require_no_zeros(parsed, plain if entry.is_text else None)
    if given.label_columns:
        parsed = with_indicator_labels(parsed, given)
    parsed = with_label_forms(parsed, given)
    if not options.infer_columns:
        return parsed
    columns = parsed.columns or TableColumns(texts=options.text_columns, inferred=True)
    return replace(parsed, columns=columns.model_copy(update={"left_out": columns.left_out | left_out}))


@contextmanager
def source_columns(
    path: Path, format: str, options: ImportOptions, most: MostUnpacked
) -> Iterator[tuple[list[str], Iterator[pa.Table]]]:
    """The names of a file's columns and its rows in blocks, to be used within the context.

    Parameters
    ----------
    format : str
        A name in FORMATS, of a format with columns.
    options : ImportOptions
        Those that the file was imported with.

    Notes
    -----
    Cells of CSV files and workbooks are strings, those of Parquet and Arrow have their types. Values of JSON lines are
    JSON, in fields with the metadata JSON_FIELD; keys that a row lacks are null.
    """
    entry = FORMATS[format]
    assert entry.columns is not None
    with (
        plain_file(path, most, options.encoding if entry.is_text else "utf-8") as plain,
        loaded(entry.columns.blocks)(plain, options, most) as found,
    ):
        yield found
