"""The formats by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from app.formats.csv_table import parse_csv
from app.formats.json_lines import parse_jsonl
from app.formats.plain_file import MostUnpacked, plain_file
from app.formats.svmlight import parse_svmlight
from app.formats.table import Parsed
from app.schemas.datasets import ImportOptions

Parser = Callable[[Path, ImportOptions], Parsed]

FORMATS: Mapping[str, Parser] = MappingProxyType(
    {
        "svmlight": parse_svmlight,
        "csv": parse_csv,
        "jsonl": parse_jsonl,
    }
)


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
    parser = FORMATS[format]
    with plain_file(path, most_unpacked) as plain:
        return parser(plain, options or ImportOptions())
