"""Detects the format of a file from its content, and names files that cannot be read."""

from collections.abc import Sequence
from pathlib import Path

from app.datasets.formats import FORMATS, most_specific
from app.datasets.formats.delimited import DELIMITERS
from app.datasets.schemas import ImportOptions
from app.formats.plain_file import check_mark, check_text, compression_of, head_of, is_xml_in_utf16
from app.formats.table import FormatError, row_error
from app.formats.window import BOM

HEAD_BYTES = 256 << 10

_XML = (
    "the file is XML or HTML without MARC or Dublin Core records, which are the XML that a dataset may have (pass "
    "format=dublin_core if it has these); SKOS, ClaML and MeSH's descriptors are uploaded as hierarchies"
)
_WEB_PAGE = (
    "the file is a web page, not a table: its address may ask to sign in first, or show the file instead of sending it"
)
_FOREIGN = (
    (b"%PDF", "a PDF document; expected a table of rows"),
    (b"\xd0\xcf\x11\xe0", "an old Excel or Office document: save it as .xlsx or CSV"),
    (b"SQLite format 3", "an SQLite database: export the table as CSV"),
    (b"7z\xbc\xaf", "a 7-Zip archive: unpack it, and use gzip, bzip2, zstd or xz"),
    (b"\x04\x22\x4d\x18", "compressed with LZ4: use gzip, bzip2, zstd or xz"),
    (b"FEA1", "Feather of version 1: write version 2, or Parquet"),
    (b"\x80\x04\x95", "a pickle, which is never loaded: save arrays as NPZ, tables as Parquet"),
    (b"\x89HDF", "an HDF5 file: save arrays as NPZ, tables as Parquet"),
    (b"\x93NUMPY", "a single array (.npy): np.savez_compressed keeps X and y in one file"),
)  # fmt: skip


def binary_format(head: bytes) -> str | None:
    """The binary format of a file by its first bytes; None for text.

    Raises
    ------
    FormatError
        It is something that is never read; the message says what to do.
    """
    fitting = most_specific(each for each in FORMATS.values() if each.begins is not None and each.begins(head))
    if fitting:
        return fitting[0].name
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            raise row_error(1, f"the file is {what}")
    return None


def declared_format(path: Path, options: ImportOptions) -> str:
    """The format of a file by its content.

    Raises
    ------
    FormatError
        No format is beyond doubt.
    """
    head = head_of(path, HEAD_BYTES)
    found = binary_format(head)
    if found is not None:
        return found
    if is_xml_in_utf16(head):
        text = head.decode("utf-16", "replace")
    else:
        check_encoding(head, options)
        text = head.removeprefix(BOM).decode(options.encoding, "replace").removeprefix("\ufeff")
    _refuse_web_page(head)
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise row_error(1, "the file is empty or has only blank lines")
    fitting = recognised(lines, options)
    if len(fitting) == 1:
        return fitting[0]
    if not fitting and lines[0].lstrip().startswith("<"):
        raise row_error(1, _XML)
    raise row_error(
        1,
        f"the format is ambiguous ({' or '.join(fitting)}): pass format"
        if fitting
        else f"the format cannot be detected, and the first line has no column '{options.label_column}': pass format, "
        "and label_column if the label column has another name",
    )


def recognised(lines: Sequence[str], options: ImportOptions) -> list[str]:
    """The text formats that the first lines of a file, which are not blank, fit."""
    labels = frozenset({options.label_column, *options.label_columns})
    texts = (each for each in FORMATS.values() if each.recognises is not None and each.recognises(lines, labels))
    return [each.name for each in most_specific(texts)]


def check_format(head: bytes, format: str, options: ImportOptions) -> None:
    """Refuse a file whose first bytes say that it has another format than the one named."""
    found, entry = binary_format(head), FORMATS[format]
    if found is None and not entry.is_text:
        raise row_error(1, f"the file does not begin like {format}")
    if "sheet" in entry.options and found in ("archive", "npz"):
        raise row_error(1, "the file is a zip archive without a workbook: save it again in a spreadsheet program")
    if found is not None and found != format:
        raise row_error(1, f"the file begins like {found}, not like {format}: pass format={found}, or leave format out")
    if found is None:
        has_encoding = "encoding" in entry.options
        if has_encoding or not is_xml_in_utf16(head):
            check_encoding(head, options, has_option=has_encoding)
        if entry.is_table:
            _refuse_web_page(head)


def unfit_options(path: Path, format: str, options: ImportOptions) -> set[str]:
    """Which of decimal, delimiter and quotes, as another file was read with them, this one cannot be read with.

    The format has no such option, or only one value; or the first line has another delimiter and not this one.
    """
    entry = FORMATS[format]
    unfit = {name for name in ("decimal", "delimiter", "quotes") if name not in entry.options or name in entry.fixed}
    if "delimiter" in unfit or options.delimiter is None:
        return unfit
    try:
        head = head_of(path, HEAD_BYTES)
    except FormatError:  # the import says what is wrong
        return unfit
    line = next(iter(head.decode(options.encoding, "replace").splitlines()), "")
    there = {name for name, mark in DELIMITERS.items() if mark in line}
    says_it = line.removeprefix("\ufeff").startswith("sep=")
    return unfit | {"delimiter"} if says_it or (there and options.delimiter not in there) else unfit


def _refuse_web_page(head: bytes) -> None:
    if head.removeprefix(BOM).lstrip()[:15].lower().startswith((b"<!doctype html", b"<html")):
        raise row_error(1, _WEB_PAGE)


def check_encoding(head: bytes, options: ImportOptions, *, has_option: bool = True) -> None:
    """Refuse a text that begins with the mark of another encoding than the one named, or without the mark it needs."""
    if options.encoding == "utf-8" and compression_of(head) is None:
        check_text(head, has_encoding=has_option)
    if options.encoding == "utf-16" and compression_of(head) is None:
        check_mark(head)
