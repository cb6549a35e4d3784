"""The formats by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from app.formats.annif import parse_annif
from app.formats.arrow_tables import parse_arrow, parse_parquet
from app.formats.csv_table import parse_csv, parse_tsv
from app.formats.detection import check_format
from app.formats.json_lines import parse_jsonl
from app.formats.npz import parse_npz
from app.formats.plain_file import MostUnpacked, head_of, plain_file
from app.formats.svmlight import parse_svmlight
from app.formats.table import Parsed
from app.schemas.datasets import ImportOptions

TextParser = Callable[[Path, ImportOptions], Parsed]
BinaryParser = Callable[[Path, ImportOptions, MostUnpacked], Parsed]

TEXT_FORMATS: Mapping[str, TextParser] = MappingProxyType(
    {
        "svmlight": parse_svmlight,
        "csv": parse_csv,
        "tsv": parse_tsv,
        "jsonl": parse_jsonl,
        "annif": parse_annif,
    }
)
BINARY_FORMATS: Mapping[str, BinaryParser] = MappingProxyType(
    {
        "parquet": parse_parquet,
        "arrow": parse_arrow,
        "npz": parse_npz,
    }
)
FORMATS = (*TEXT_FORMATS, *BINARY_FORMATS)


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
        What a compressed file may come to.

    Raises
    ------
    FormatError
        With the lines that break the format.
    KeyError
        If there is no such format.
    """
    options, most = options or ImportOptions(), most_unpacked or MostUnpacked()
    check_format(head_of(path, 1024), format, options)
    if format in BINARY_FORMATS:
        with plain_file(path, most) as plain:
            return BINARY_FORMATS[format](plain, options, most)
    with plain_file(path, most, options.encoding) as plain:
        return TEXT_FORMATS[format](plain, options)
