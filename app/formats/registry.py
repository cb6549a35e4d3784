"""The formats by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from app.formats.annif import parse_annif
from app.formats.arrow_tables import parse_arrow, parse_parquet
from app.formats.csv_table import parse_csv, parse_tsv
from app.formats.detection import check_format
from app.formats.inference import inferred
from app.formats.json_lines import parse_jsonl
from app.formats.npz import parse_npz
from app.formats.plain_file import MostUnpacked, head_of, plain_file
from app.formats.svmlight import parse_svmlight
from app.formats.table import Parsed
from app.schemas.datasets.datasets import ImportOptions
from app.schemas.datasets.tables import TableColumns

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
    encoding = "utf-8" if format in BINARY_FORMATS else options.encoding
    with plain_file(path, most, encoding) as plain:
        left_out: dict[str, str] = {}
        if options.infer_columns:
            options, left_out = inferred(plain, format, options, most)
        if format in BINARY_FORMATS:
            parsed = BINARY_FORMATS[format](plain, options, most)
        else:
            parsed = TEXT_FORMATS[format](plain, options)
    if not options.infer_columns:
        return parsed
    columns = parsed.columns or TableColumns(texts=options.text_columns, inferred=True)
    return replace(parsed, columns=columns.model_copy(update={"left_out": columns.left_out | left_out}))
