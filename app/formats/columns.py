"""Which column of a table is what, whatever the table's format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.formats.table import row_error, shorten
from app.schemas.datasets import ImportOptions


@dataclass(frozen=True)
class Columns:
    """Places of columns among `names`.

    Attributes
    ----------
    names : list of str
        Of all columns of the file.
    label : int
    split, weight : int or None
    texts : list of int
        Joined to the row's text, in this order.
    numeric : list of int
        The features; empty where there are texts.
    """

    names: list[str]
    label: int
    split: int | None
    weight: int | None
    texts: list[int]
    numeric: list[int]


def find_columns(names: Sequence[str], options: ImportOptions, hint: str = "") -> Columns:
    """The columns of a table with these names.

    `id` is left out, and so are the columns that the options name as ignored. The columns that they name as texts, else
    one called `text`, are the text; else all others are numbers.

    Parameters
    ----------
    names : sequence of str
    options : ImportOptions
    hint : str
        What may be wrong where a column is not there, for the message.

    Raises
    ------
    FormatError
        Columns have no name, or one twice; a named one is not there, or there is nothing to learn from.
    """
    _check_names(names)
    place = {name: index for index, name in enumerate(names)}
    if options.weight_column == options.label_column:
        raise row_error(1, "one column cannot hold both labels and weights", options.label_column)
    for wanted in (options.label_column, options.weight_column, *options.text_columns, *options.ignore_columns):
        if wanted is not None and wanted not in place:
            shown = ", ".join(f"'{shorten(name)}'" for name in names[:5]) + (", ..." if len(names) > 5 else "")
            detail = f"no column '{shorten(wanted)}' among the {len(names)} columns of the header ({shown}){hint}"
            raise row_error(1, detail)
    label, weight = place[options.label_column], place.get(options.weight_column or "")
    ignored = {place[name] for name in options.ignore_columns}
    taken = {label, weight} | ignored
    split, text, id = (None if at in taken else at for at in map(place.get, ("split", "text", "id")))
    texts = [place[name] for name in options.text_columns] or ([] if text is None else [text])
    for index in texts:
        if index in taken:
            raise row_error(1, f"'{shorten(names[index])}' cannot be a text and something else as well", names[index])
    known = {*taken, split, id, *texts}
    others = [index for index in range(len(names)) if index not in known]
    if texts and others:
        named = ", ".join(f"'{shorten(names[index])}'" for index in others[:3])
        detail = (
            f"beside text only label, split, id and weights may stand; {len(others)} more column(s): {named} "
            "(text_columns joins several texts, ignore_columns leaves columns out)"
        )
        raise row_error(1, detail, names[others[0]])
    if not texts and not others:
        raise row_error(1, "neither a text column nor numeric columns beside the label")
    return Columns(list(names), label, split, weight, texts, others)


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise row_error(1, "the first line is blank, expected a header")
    seen: set[str] = set()
    for number, name in enumerate(names, 1):
        if not name:
            raise row_error(1, f"column {number} has no name")
        if name in seen:
            raise row_error(1, f"two columns are called '{shorten(name)}'", name)
        seen.add(name)
