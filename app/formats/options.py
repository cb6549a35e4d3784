"""What a caller may say about a file besides its format."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """Options of the parsers; each parser uses those that its format knows.

    Attributes
    ----------
    label_column : str
        The CSV column, or the JSON key, that holds the label.
    weight_column : str or None
        The CSV column, or the JSON key, that holds the weight of a row. None: no column of a CSV file, and the key
        `weight` of a JSON lines file where it is there.
    label_separator : str or None
        What stands between the labels of a row in CSV and svmlight files, where it is a comma. None: rows have one
        label. JSON lines have lists instead.
    """

    label_column: str = "label"
    weight_column: str | None = None
    label_separator: str | None = None
