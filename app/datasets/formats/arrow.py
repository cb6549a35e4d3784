"""Parquet and Arrow: tables of typed columns."""

from app.datasets.formats.format import TABLE, Columns, Format, Reference
from app.descriptions import Shape

_REFERENCE = Reference(
    "texts; or columns of numbers, or of lists of equally many (`v` becomes `v.0`, `v.1`, ...); or lists `indices` and "
    "`values`",
    "column of strings, whole numbers or booleans, or lists of them",
    "column `split`",
    "the column that `weight_column` names",
)

PARQUET = Format(
    "parquet",
    "Parquet",
    "app.formats.arrow_tables:parse_parquet",
    TABLE,
    _REFERENCE,
    (Shape("Parquet", "good.parquet"), Shape("Parquet with lists of labels", "sets.parquet")),
    extensions=("parquet",),
    begins=lambda head: head.startswith(b"PAR1"),
    columns=Columns(
        "app.formats.arrow_tables:first_values_of_parquet", "app.formats.arrow_tables:blocks_of_parquet", typed=True
    ),
)
ARROW = Format(
    "arrow",
    "Arrow, Feather",
    "app.formats.arrow_tables:parse_arrow",
    TABLE,
    _REFERENCE,
    (Shape("Arrow, Feather", "good.arrow"),),
    extensions=("arrow", "feather"),
    begins=lambda head: head.startswith((b"ARROW1", b"\xff\xff\xff\xff")),
    columns=Columns(
        "app.formats.arrow_tables:first_values_of_arrow", "app.formats.arrow_tables:blocks_of_arrow", typed=True
    ),
)
