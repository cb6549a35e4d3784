"""Codes that say their parents."""

from app.descriptions import Shape
from app.hierarchies.formats.format import Format

CODES = Format(
    "codes",
    "Codes: ISCO, NACE, UNSPSC and others",
    "a table of codes that say their parents, such as ISCO or UNSPSC, also in a workbook",
    "app.formats.hierarchies.codes:parse_codes",
    "a table of codes and names without parents: ISCO, NACE, ISIC, CPA, NAICS, UNSPSC, CPV, GS1's GPC",
    "above the shortest codes, or above sections",
    (
        Shape("ISCO: codes that begin with their parents", "good.codes"),
        Shape("NACE, ISIC, CPA: sections and divisions", "sections.codes"),
        Shape("NAICS: ranges of sectors", "ranges.codes"),
        Shape("UNSPSC: pairs of digits", "pairs.codes"),
        Shape("CPV: digits", "digits.codes", {"name_field": "EN", "code_lengths": "2,3,4,5,6,7,8"}),
        Shape("GS1 GPC: columns for each level", "levels.codes"),
    ),
    options=frozenset({"id_field", "name_field", "delimiter", "sheet", "code_lengths"}),
    in_sheets=True,
)
