"""Authority records in MARC 21 or MARCXML."""

from app.descriptions import Shape
from app.hierarchies.formats.format import Format

MARC = Format(
    "marc",
    "MARC 21, MARCXML: authority records",
    "authority records",
    "app.formats.hierarchies.marc:parse_marc_authorities",
    "authority records in MARC 21 or MARCXML: headings (`150` and others) below those that `550` and others "
    "mark as broader (`$w` g)",
    "above records without a broader one",
    (
        Shape("MARCXML: authority records", "good.marc"),
        Shape("MARC 21: authority records", "iso.marc"),
    ),
    endings={".mrc": None, ".marc": None, ".marcxml": None},
    options=frozenset({"id_field"}),
    mark=b"MARC21/slim",
    is_streamed=True,
)
