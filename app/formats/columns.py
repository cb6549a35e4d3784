"""Roles of a table's columns, for any format."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from app.datasets.recipe_schemas import TableColumns
from app.datasets.schemas import ImportOptions
from app.features.names import list_widths
from app.formats.table import FormatError, Kind, row_error, shorten
from app.plurals import counted
from app.values import ColumnType

# similarity from which a column is proposed
_ALIKE = 0.75


@dataclass(frozen=True)
class Columns:
    """Places of columns among `names`.

    Attributes
    ----------
    names : list of str
        Of all columns of the file.
    label : int or None
        None of rows without labels.
    texts : list of int
        Joined to the row's text, in this order.
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

    def reported(
        self, numbers: Sequence[str], options: ImportOptions, types: Mapping[str, ColumnType]
    ) -> TableColumns | None:
        """The columns to store: of a table, of several texts, or where their roles were inferred from values.

        Parameters
        ----------
        numbers : sequence of str
            Names of the features that are numbers.
        types : mapping of str to str
            Of the categories.
        """
        if self.kind != "table" and len(self.texts) < 2 and not options.infer_columns:
            return None
        return TableColumns(
            texts=tuple(self.names[at] for at in self.texts),
            numbers=tuple(numbers),
            categories=tuple(self.names[at] for at in self.categories),
            left_out=self.left_out,
            missing=options.missing == "keep",
            inferred=options.infer_columns,
            types=dict(types),
        )


def find_columns(names: Sequence[str], options: ImportOptions, hint: str = "") -> Columns:
    """The columns of a table with these names.

    The columns that the options name as texts, else one called `text`, are the text; those that they name as numbers
    or categories are these. Where they name neither and there is no text, all others are numbers.

    Parameters
    ----------
    hint : str
        What may be wrong where a column is not there, for the message.

    Raises
    ------
    FormatError
        Columns have no name, or one twice; a named one is not there, or there is nothing to learn from.
    """
    check_names(names)
    place = {name: index for index, name in enumerate(names)}
    if options.weight_column == options.label_column:
        raise row_error(1, "one column cannot hold both labels and weights", options.label_column)
    indicators = indicator_columns(names, options)
    for wanted in [*named_columns(options), *(name for name in options.label_columns if not name.endswith("*"))]:
        if wanted not in place:
            raise _missing(wanted, names, hint)
    label = None if options.unlabelled else place[options.label_column]
    labels = [place[name] for name in indicators]
    weight = place.get(options.weight_column or "")
    ignored = [place[name] for name in options.ignore_columns]
    numbers = [place[name] for name in options.number_columns]
    categories = [place[name] for name in options.category_columns]
    at, ignoring = place.get(options.label_column), options.other_columns == "ignore"
    if options.label_columns:
        if not labels:
            raise row_error(1, f"no column begins with '{shorten(options.label_columns[0].removesuffix('*'))}'")
    elif options.unlabelled and not ignoring and at is not None and options.label_column not in named_columns(options):
        detail = (
            "unlabelled is set, but the file has labels: leave unlabelled out, or name the label column in "
            "ignore_columns"
        )
        raise row_error(1, detail, options.label_column)
    taken = {label, weight, *labels, *ignored, *numbers, *categories}
    split, text = (None if at in taken else at for at in map(place.get, ("split", "text")))
    split = None if ignoring and options.unlabelled else split
    text = None if ignoring and (numbers or categories) else text  # a column that no option names, like others
    id = place.get("id" if options.id_column is None else options.id_column)
    id = None if options.id_column is None and id in taken else id
    texts = [place[name] for name in options.text_columns] or ([] if text is None else [text])
    single = (label, weight, split, id)
    known = [at for at in (*single, *labels, *ignored, *numbers, *categories, *texts) if at is not None]
    _check_once(names, known, texts)
    spoken_for = set(known)
    others = [index for index in range(len(names)) if index not in spoken_for]
    declared = texts + numbers + categories
    left_out = {names[at]: "ignored" for at in ignored}
    if declared and ignoring:
        left_out |= {names[at]: "not named" for at in others}
        others = []
    if declared and others:
        raise _undeclared([names[at] for at in others], beside_text=not numbers + categories)
    if not declared and not others:
        raise row_error(1, "found neither a text column nor numeric columns besides the label")
    numeric = (numbers if declared else others) + labels
    kind = kind_of(texts, numeric, categories, options)
    _check_levels(names, numeric, categories)
    return Columns(list(names), label, split, weight, id, texts, numeric, categories, left_out, kind)


def kind_of(texts: Sequence[int], numeric: Sequence[int], categories: Sequence[int], options: ImportOptions) -> Kind:
    """What columns of these roles make together."""
    mixed = categories or (texts and numeric) or (numeric and options.missing == "keep")
    return "table" if mixed else "text" if texts else "sparse"


def with_lists(options: ImportOptions, names: Collection[str]) -> ImportOptions:
    """The options where numbers `v.0`, `v.1` and so on, which are not among the names, are the column of lists `v`."""
    lists = {name for name in list_widths(options.number_columns) if name in names and f"{name}.0" not in names}
    if not lists:
        return options
    numbers: dict[str, None] = {}
    for name in options.number_columns:
        column = name.rpartition(".")[0]
        numbers[column if column in lists and name not in names else name] = None
    return options.model_copy(update={"number_columns": tuple(numbers)})


def indicator_columns(names: Sequence[str], options: ImportOptions) -> list[str]:
    """The columns that have 0 or 1 for one label each: those that the options name, or whose beginning they name."""
    whole = {name for name in options.label_columns if not name.endswith("*")}
    beginnings = tuple(name[:-1] for name in options.label_columns if name.endswith("*"))
    return [name for name in names if name in whole or (beginnings and name.startswith(beginnings))]


def is_read(name: str, options: ImportOptions) -> bool:
    """Whether an import may read the column of this name: options do not leave it out."""
    if name in options.ignore_columns:
        return False
    declared = options.text_columns or options.number_columns or options.category_columns
    if options.other_columns == "refuse" or options.infer_columns or not declared:
        return True
    return name in {*named_columns(options), *indicator_columns([name], options), "id", "split"}


def named_columns(options: ImportOptions) -> list[str]:
    """The columns that options name, each of which must be there; without those of single labels."""
    label = None if options.unlabelled else options.label_column
    single = (label, options.weight_column, options.id_column)
    return [
        *(name for name in single if name is not None),
        *options.text_columns,
        *options.ignore_columns,
        *options.number_columns,
        *options.category_columns,
    ]


def _missing(wanted: str, names: Sequence[str], hint: str) -> FormatError:
    """The error of a column that options name and the header lacks."""
    shown = ", ".join(f"'{shorten(name)}'" for name in names[:5]) + (", ..." if len(names) > 5 else "")
    detail = f"no column '{shorten(wanted)}' among the {len(names)} columns of the header ({shown}){hint}"
    if alike := get_close_matches(wanted, names, 1, _ALIKE):
        detail += f"; did you mean '{shorten(alike[0])}'?"
    if wanted == ImportOptions.model_fields["label_column"].default and not hint:
        detail += (
            "; pass label_column to name the label column, or unlabelled=true for rows without labels; if the "
            "first line is a row, write the columns' names before it"
        )
    return row_error(1, detail)


def _undeclared(others: Sequence[str], *, beside_text: bool) -> FormatError:
    """The error of columns to which options give no role, though they give others one."""
    named = ", ".join(f"'{shorten(name)}'" for name in others[:3])
    are = "is" if len(others) == 1 else "are"
    what = f"with a text column, only label, split, id and weight columns are allowed; there {are} "
    detail = (
        f"{what if beside_text else ''}{counted(len(others), 'more column')}: {named} (join several texts with "
        "text_columns, leave columns out with ignore_columns, keep them with number_columns and category_columns, or "
        "infer all types with infer_columns)"
    )
    return row_error(1, detail, others[0])


def _check_once(names: Sequence[str], known: Sequence[int], texts: Sequence[int]) -> None:
    seen: set[int] = set()
    for index in known:
        if index in seen:
            what = "a text" if index in texts else "one thing"
            raise row_error(
                1, f"'{shorten(names[index])}' cannot be {what} and something else at the same time", names[index]
            )
        seen.add(index)


def _check_levels(names: Sequence[str], numeric: Sequence[int], categories: Sequence[int]) -> None:
    """A level is called column=level: which column that is must be beyond doubt."""
    for index in categories:
        if "=" in names[index]:
            raise row_error(1, f"the category '{shorten(names[index])}' has an equals sign in its name", names[index])
    levelled = {names[index] for index in categories}
    for index in numeric:
        if names[index].partition("=")[0] in levelled:
            raise row_error(1, f"'{shorten(names[index])}' has the same name as a level of a category", names[index])


def check_names(names: Sequence[str]) -> None:
    """Refuse names that are blank or not unique; raises FormatError."""
    if not names:
        raise row_error(1, "the first line is blank, expected a header")
    seen: set[str] = set()
    for number, name in enumerate(names, 1):
        if not name:
            raise row_error(1, f"column {number} has no name")
        if name in seen:
            raise row_error(1, f"two columns are named '{shorten(name)}'", name)
        seen.add(name)
