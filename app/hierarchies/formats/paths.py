"""Paths from the top, one per line."""

from app.descriptions import Shape
from app.hierarchies.formats.format import Format

PATHS = Format(
    "paths",
    "Paths: one label per line",
    "one label per line, such as comp.sys.mac or 12 - A > B",
    "app.formats.hierarchies.paths:parse_paths",
    "one label per line, such as `comp.sys.mac`; `comp` and `comp.sys` need no lines. Or an "
    "id and a path, such as `537 - Toys > Puzzles`",
    "above all paths",
    (
        Shape("dotted paths", "good.paths"),
        Shape("Google's product taxonomy", "products.paths"),
        Shape("Shopify's product taxonomy", "gid.paths"),
    ),
    endings={".paths": None},
    options=frozenset({"separator", "id_separator", "comment"}),
    is_simple=True,
)
