"""What a label may be called, for all who write labels: files, requests, and the client."""

import unicodedata

from app.formats.table import shorten

MAX_LABEL = 1000
NO_LABEL = "the label is empty"


def label_problem(name: str) -> str | None:
    """Why a (stripped) name cannot be a label; None if it can."""
    if not name:
        return NO_LABEL
    if len(name) > MAX_LABEL:
        return f"the label has {len(name)} characters, at most {MAX_LABEL} are allowed"
    if not name.isprintable() and any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        return f"the label '{shorten(name)}' has control characters"
    return None
