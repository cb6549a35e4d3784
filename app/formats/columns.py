"""Which column of a table is what, whatever the table's format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.formats.table import Kind, row_error, shorten
from app.plurals import counted
from app.schemas.datasets.datasets import ImportOptions
from app.schemas.datasets.tables import TableColumns


@dataclass(frozen=True)
class Columns:
    """Places of columns among `names`.

    Attributes
    ----------
    names : list of str
        Of all columns of the file.
    label : int or None
        None of rows without labels.
    split, weight, id : int or None
    texts : list of int
        Joined to the row's text, in this order.
    numeric, categories : list of int
    left_out : dict of str to str
        Names of columns that are not read, and why.
    kind : "text", "sparse" or "table"
        What they make together.
    """

    names: list[str]
    label: int | None
    split: int | None
    weight: int | None
    id: int | None
    texts: list[int]
    numeric: list[int]
    categories: list[int]
    left_out: dict[str, str]
    kind: Kind

    def reported(self, numbers: Sequence[str], options: ImportOptions) -> TableColumns | None:
        """What is kept of them, of a table or where their values told them; `numbers` are the features' names."""
        if self.kind != "table" and not options.infer_columns:
            return None
        return TableColumns(
            texts=tuple(self.names[at] for at in self.texts),
            numbers=tuple(numbers),
            categories=tuple(self.names[at] for at in self.categories),
            left_out=self.left_out,
            missing=options.missing == "keep",
            inferred=options.infer_columns,
        )


def find_columns(names: Sequence[str], options: ImportOptions, hint: str = "") -> Columns:
    """The columns of a table with these names.

    The columns that the options name as texts, else one called `text`, are the text; those that they name as numbers
    or categories are these. Where they name neither and there is no text, all others are numbers.

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
    for wanted in named_columns(options):
        if wanted not in place:
            shown = ", ".join(f"'{shorten(name)}'" for name in names[:5]) + (", ..." if len(names) > 5 else "")
            detail = f"no column '{shorten(wanted)}' among the {len(names)} columns of the header ({shown}){hint}"
            if wanted == ImportOptions.model_fields["label_column"].default and not hint:
                detail += "; say which one has the labels (label_column)"
            raise row_error(1, detail)
    label = None if options.unlabelled else place[options.label_column]
    weight = place.get(options.weight_column or "")
    ignored = [place[name] for name in options.ignore_columns]
    numbers = [place[name] for name in options.number_columns]
    categories = [place[name] for name in options.category_columns]
    at = place.get(options.label_column)
    if options.unlabelled and at is not None and options.label_column not in named_columns(options):
        detail = "no row has a label by unlabelled, and here are some: leave it out, or name them in ignore_columns"
        raise row_error(1, detail, options.label_column)
    taken = {label, weight, *ignored, *numbers, *categories}
    split, text = (None if at in taken else at for at in map(place.get, ("split", "text")))
    id = place.get("id" if options.id_column is None else options.id_column)
    id = None if options.id_column is None and id in taken else id
    texts = [place[name] for name in options.text_columns] or ([] if text is None else [text])
    known = [at for at in (label, weight, split, id, *ignored, *numbers, *categories, *texts) if at is not None]
    _check_once(names, known, texts)
    spoken_for = set(known)
    others = [index for index in range(len(names)) if index not in spoken_for]
    declared = texts + numbers + categories
    if declared and others:
        named = ", ".join(f"'{shorten(names[index])}'" for index in others[:3])
        what = "beside text only label, split, id and weights may stand; " if not numbers + categories else ""
        detail = (
            f"{what}{counted(len(others), 'more column')}: {named} (text_columns joins several texts, ignore_columns "
            "leaves columns out, number_columns and category_columns keep them, infer_columns looks at their values)"
        )
        raise row_error(1, detail, names[others[0]])
    if not declared and not others:
        raise row_error(1, "neither a text column nor numeric columns beside the label")
    numeric = numbers if declared else others
    mixed = bool(categories or (texts and numeric) or (numeric and options.missing == "keep"))
    kind: Kind = "table" if mixed else "text" if texts else "sparse"
    _check_levels(names, numeric, categories)
    left_out = {names[at]: "ignored" for at in ignored}
    return Columns(list(names), label, split, weight, id, texts, numeric, categories, left_out, kind)


def named_columns(options: ImportOptions) -> list[str]:
    """The columns that options name, each of which must be there."""
    label = None if options.unlabelled else options.label_column
    single = (label, options.weight_column, options.id_column)
    return [
        *(name for name in single if name is not None),
        *options.text_columns,
        *options.ignore_columns,
        *options.number_columns,
        *options.category_columns,
    ]


def _check_once(names: Sequence[str], known: Sequence[int], texts: Sequence[int]) -> None:
    seen: set[int] = set()
    for index in known:
        if index in seen:
            what = "a text" if index in texts else "one thing"
            raise row_error(1, f"'{shorten(names[index])}' cannot be {what} and something else as well", names[index])
        seen.add(index)


def _check_levels(names: Sequence[str], numeric: Sequence[int], categories: Sequence[int]) -> None:
    """A level is called column=level: which column that is must be beyond doubt."""
    for index in categories:
        if "=" in names[index]:
            raise row_error(1, f"the category '{shorten(names[index])}' has an equals sign in its name", names[index])
    levelled = {names[index] for index in categories}
    for index in numeric:
        if names[index].partition("=")[0] in levelled:
            raise row_error(1, f"'{shorten(names[index])}' is called like a level of a category", names[index])


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
