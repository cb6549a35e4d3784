"""Which format a file has, where its content leaves no doubt, and what a file is that cannot be read at all."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from app.formats.csv_header import DELIMITERS
from app.formats.plain_file import check_text, compression_of, head_of
from app.formats.table import row_error
from app.formats.window import BOM
from app.schemas.datasets.datasets import DatasetFormat, ImportOptions

HEAD_BYTES = 256 << 10

_SVMLIGHT = re.compile(r"\S+(?:\s+(?:qid|cost|\d+):\S+)+\s*(?:#.*)?")
_ANNIF = re.compile(r"[^\t]*\t\s*(?:<[^<>\s]+>\s*)+")
_ARRAY = re.compile(r"\s*\[\s*[\[{]")
_ARRAY_SAID = "the file is one JSON array: write JSON lines, an object in each line, with no brackets or commas around"
_TAR = (
    "a tar of a folder is not read: write the documents into one file, Annif's TSV (a line for each: its text, a tab, "
    "its subjects as <uri> <uri>) or JSON lines with text and label"
)
_FOREIGN = (
    (b"%PDF", "a PDF document; expected a table of rows"),
    (b"\xd0\xcf\x11\xe0", "an old Excel or Office document: save it as CSV"),
    (b"SQLite format 3", "an SQLite database: export the table as CSV"),
    (b"7z\xbc\xaf", "a 7-Zip archive: unpack it, and use gzip, zstd or xz"),
    (b"BZh", "compressed with bzip2: use gzip, zstd or xz"),
    (b"\x04\x22\x4d\x18", "compressed with LZ4: use gzip, zstd or xz"),
    (b"FEA1", "Feather of version 1: write version 2, or Parquet"),
    (b"\x80\x04\x95", "a pickle, which is never read: save arrays as NPZ, tables as Parquet"),
    (b"\x89HDF", "an HDF5 file: save arrays as NPZ, tables as Parquet"),
    (b"\x93NUMPY", "a single array (.npy): np.savez_compressed keeps X and y in one file"),
)  # fmt: skip


def binary_format(head: bytes) -> DatasetFormat | None:
    """The binary format that the first bytes of a file tell, None for text.

    Raises
    ------
    FormatError
        It is something that is never read; the message says what to do.
    """
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    if head.startswith(b"PK\x03\x04"):
        if b"xl/" in head[:8192] or b"[Content_Types].xml" in head[:8192]:
            raise row_error(1, "the file is an Excel or Office document: save it as CSV")
        if b".npy" not in head[:512]:
            raise row_error(1, "the file is a zip archive: unpack it, and use gzip, zstd or xz")
        return "npz"
    if head[257:262] == b"ustar":
        raise row_error(1, _TAR)
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            raise row_error(1, f"the file is {what}")
    return None


def declared_format(path: Path, options: ImportOptions) -> DatasetFormat:
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
    check_encoding(head, options)
    text = head.removeprefix(BOM).decode(options.encoding, "replace")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise row_error(1, "the file is empty or has only blank lines")
    if lines[0].lstrip().startswith("{"):
        return "jsonl"
    if _ARRAY.match(text):
        raise row_error(1, _ARRAY_SAID)
    fitting: list[DatasetFormat] = []
    rows = [line for line in lines if not line.lstrip().startswith("#")]
    if rows and _SVMLIGHT.fullmatch(rows[0].strip()):
        fitting.append("svmlight")
    if _ANNIF.fullmatch(lines[0]):
        fitting.append("annif")
    if options.label_column in _cells(lines[0], "\t"):
        fitting.append("tsv")
    elif lines[0].startswith("sep=") or any(
        options.label_column in _cells(lines[0], mark) for mark in DELIMITERS.values()
    ):
        fitting.append("csv")
    if len(fitting) == 1:
        return fitting[0]
    raise row_error(
        1,
        f"the content does not tell the format beyond doubt ({' or '.join(fitting)}): name it"
        if fitting
        else f"the content tells no format, and the first line has no column '{options.label_column}': name the "
        "format, and the label's column where it has another name",
    )


def check_format(head: bytes, format: str, options: ImportOptions) -> None:
    """Refuse a file whose first bytes say that it has another format than the one named."""
    found = binary_format(head)
    if found is None and format in ("parquet", "arrow", "npz"):
        raise row_error(1, f"the file does not begin as {format} does")
    if found is not None and found != format:
        raise row_error(1, f"the file begins as {found} does, and not as {format}: name its format, or leave that out")
    if found is None:
        check_encoding(head, options)


def check_encoding(head: bytes, options: ImportOptions) -> None:
    """Refuse a text that begins with the mark of another encoding than the one named."""
    if options.encoding == "utf-8" and compression_of(head) is None:
        check_text(head)


def _cells(header: str, delimiter: str) -> list[str]:
    try:
        cells = next(csv.reader(io.StringIO(header), delimiter=delimiter, strict=True), [])
    except csv.Error:
        return []
    return [cell.strip() for cell in cells] if len(cells) > 1 else []
