"""Exports of annotation tools, which are recognised by their keys."""

import json
from collections.abc import Sequence
from typing import Any

from app.datasets.formats.delimited import cells_of
from app.datasets.formats.format import Format, Reference
from app.descriptions import Shape

# what Label Studio's JSON-MIN and CSV have of each annotation
MIN = frozenset({"annotator", "annotation_id", "lead_time"})


def _is_annotations(lines: Sequence[str], labels: frozenset[str]) -> bool:
    if set(cells_of(lines[0], ",")) >= MIN:
        return True
    text = "\n".join(lines).lstrip("[ \n\t\r")
    try:
        record, _ = json.JSONDecoder().raw_decode(text)
    except (json.JSONDecodeError, RecursionError):
        return False
    return isinstance(record, dict) and _is_beyond_doubt(record)


def _is_beyond_doubt(record: dict[str, Any]) -> bool:
    """Whether no other file has a record like this one."""
    keys = set(record)
    return (
        keys >= {"data", "annotations"}
        or keys >= MIN
        or keys >= {"fields", "responses"}
        or (keys >= {"annotation", "prediction"} and bool(keys & {"text", "inputs"}))
        or (
            bool(keys & {"Comments", "comments"}) and bool(keys & {"text", "data"}) and bool(keys & {"label", "labels"})
        )
    )


ANNOTATIONS = Format(
    "annotations",
    "Label Studio, doccano, Argilla",
    "app.formats.annotations:parse_annotations",
    frozenset({"label_column", "unlabelled", "without_label", "languages", "text_columns", "encoding"}),
    Reference(
        "exports of Label Studio (JSON, JSON-MIN, CSV), doccano and Argilla (JSON, JSON lines) of texts that are "
        "classified",
        "the answers to a question, or to the one that `label_column` names",
    ),
    (
        Shape("Label Studio: JSON", "studio.annotations"),
        Shape("Label Studio: JSON with a taxonomy", "taxonomy.annotations"),
        Shape("Label Studio: JSON-MIN", "studio_min.annotations"),
        Shape("Label Studio: CSV", "studio.csv.annotations"),
        Shape("doccano: JSON lines", "doccano.annotations"),
        Shape("Argilla: JSON", "argilla.annotations"),
    ),
    recognises=_is_annotations,
)
