"""Nested objects and lists of JSON."""

from app.descriptions import Shape
from app.hierarchies.formats.format import Format

JSON = Format(
    "json",
    "JSON: nested objects and lists",
    "nested objects and lists",
    "app.formats.hierarchies.nested_json:parse_nested_json",
    '`{"comp": {"sys": ["mac", "ibm"]}, "rec": null}`, or objects with `name` and `children`',
    "above the outermost keys, or the outermost object with a name",
    (
        Shape("nested JSON", "good.json"),
        Shape("JSON with `name` and `children`, as D3 has it", "children.json"),
    ),
    endings={".json": None},
    options=frozenset({"root", "id_field", "name_field", "notation_field"}),
    is_simple=True,
    has_escapes=True,
)
