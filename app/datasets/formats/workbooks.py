"""Workbooks of Excel and LibreOffice, of which one sheet is read."""

from app.datasets.formats.format import TABLE, Columns, Format, Reference
from app.descriptions import Shape

# names of the first entries that Excel, openpyxl, XlsxWriter, LibreOffice and Google write
_OFFICE = (b"[Content_Types].xml", b"_rels/", b"docProps/", b"xl/", b"word/")
_OPEN_DOCUMENT = b"application/vnd.oasis.opendocument."
_REFERENCE = Reference(
    "Excel's and LibreOffice's: a sheet with a header, then as in CSV",
    "column `label`, or `label_column`",
    "column `split`",
    "the column that `weight_column` names",
)
_COLUMNS = Columns("app.formats.workbooks:first_values", "app.formats.workbooks:blocks", typed=False)


def _first_entry(head: bytes) -> bytes:
    return head[30 : 30 + int.from_bytes(head[26:28], "little")]


def _is_ods(head: bytes) -> bool:
    return head.startswith(b"PK\x03\x04") and _first_entry(head) == b"mimetype" and _OPEN_DOCUMENT in head[:128]


def _is_xlsx(head: bytes) -> bool:
    return head.startswith(b"PK\x03\x04") and (
        _first_entry(head).startswith(_OFFICE) or b"[Content_Types].xml" in head[:512]
    )


XLSX = Format(
    "xlsx",
    "Excel (xlsx)",
    "app.formats.workbooks:parse_workbook",
    TABLE | {"sheet"},
    _REFERENCE,
    (Shape("Excel", "good.xlsx"),),
    extensions=("xlsx",),
    begins=_is_xlsx,
    columns=_COLUMNS,
)
ODS = Format(
    "ods",
    "LibreOffice (ods)",
    "app.formats.workbooks:parse_workbook",
    TABLE | {"sheet"},
    _REFERENCE,
    (Shape("LibreOffice", "good.ods"),),
    extensions=("ods",),
    begins=_is_ods,
    columns=_COLUMNS,
)
