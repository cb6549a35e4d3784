"""A table of edges, or a flat list, as CSV or in a workbook."""

from app.descriptions import Shape
from app.hierarchies.formats.format import Format

CSV = Format(
    "csv",
    "CSV, workbook: parent, child",
    "columns of labels and their parents, also in a workbook",
    "app.formats.hierarchies.edge_list:parse_edge_list",
    "a header with a column of labels and one of parents, and a row per edge; cells separated by commas, "
    "semicolons, tabs or bars",
    "`root`, or an empty cell, or the value of `root=NAME`",
    (
        Shape("edges: child, parent", "good.csv"),
        Shape("Eurostat's tables: code, parent, description", "names.csv"),
        Shape("a list of codes and titles", "flat.csv"),
        Shape("Annif: vocabulary in TSV", "annif_uris.csv"),
        Shape("Annif: vocabulary in CSV", "annif_names.csv"),
    ),
    endings={".csv": None, ".tsv": None, ".xlsx": None, ".ods": None},
    options=frozenset({"root", "parent_field", "id_field", "name_field", "notation_field", "delimiter", "sheet"}),
    in_sheets=True,
    is_simple=True,
)
