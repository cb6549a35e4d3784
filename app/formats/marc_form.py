"""Recognises MARC 21 and MARCXML by the beginning of a file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from app.datasets.schemas import ImportOptions

LEADER = re.compile(r"\d{5}[\x20-\x7e]{5}22\d{5}[\x20-\x7e]{3}45")

_XML = re.compile(r"MARC21/slim|<(?:\w+:)?leader>")


def is_marc(lines: Sequence[str], options: ImportOptions) -> bool:
    """Whether the lines at the beginning of a file are those of records."""
    if lines[0].lstrip().startswith("<"):
        return _XML.search("\n".join(lines)) is not None
    return LEADER.match(lines[0]) is not None
