"""Recognises the exports of annotation tools by their keys."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from app.datasets.schemas import ImportOptions
from app.formats.csv_header import cells_of

# what Label Studio's JSON-MIN and CSV have of each annotation
MIN = frozenset({"annotator", "annotation_id", "lead_time"})


def is_annotations(lines: Sequence[str], options: ImportOptions) -> bool:
    """Whether the lines at the beginning of a file are those of an export."""
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
