"""JSON: one object per line, or an array of objects."""

import re
from collections.abc import Sequence

from app.datasets.formats.format import COLUMNS, Columns, Format, Reference
from app.descriptions import Shape

_OBJECT = re.compile(r"\s*(?:\{|\[\s*\{)")
_RAW_XMC = {
    "label_column": "target_ind",
    "text_columns": ("title", "content"),
    "id_column": "uid",
    "ignore_columns": ("target_rel",),
}


def _is_jsonl(lines: Sequence[str], labels: frozenset[str]) -> bool:
    return _OBJECT.match(" ".join(lines[:2])) is not None


JSONL = Format(
    "jsonl",
    "JSON, JSON lines",
    "app.formats.json_lines:parse_jsonl",
    COLUMNS | {"encoding"},
    Reference(
        "one object per line, or one JSON array of objects, with `text`, or `features` (an object of numbers), or "
        "`indices` and `values`",
        "key `label`, or `label_column`",
        "key `split`",
        "key `weight`, or `weight_column`",
    ),
    (
        Shape("JSON lines of features", "good.jsonl"),
        Shape("JSON lines of texts with lists of labels", "texts.jsonl"),
        Shape("a JSON array", "array.jsonl"),
        Shape("Extreme Classification Repository: raw texts", "raw_xmc.jsonl", _RAW_XMC),
    ),
    extensions=("jsonl", "ndjson", "json"),
    recognises=_is_jsonl,
    general=True,
    columns=Columns("app.formats.json_records:first_values", "app.formats.json_records:blocks", typed=True),
)
