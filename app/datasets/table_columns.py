"""The columns of a table that is to be uploaded, checked before anything is sent."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from app.datasets.schemas import ImportOptions
from app.remote.errors import ClientError
from app.remote.tables import Data, is_table

# options that name columns
_NAMING = (
    *("label_column", "label_columns", "weight_column", "id_column"),
    *("text_columns", "number_columns", "category_columns", "ignore_columns"),
)
_SHOWN = 20


def require_columns(data: Data, options: Mapping[str, str | bool | Sequence[str] | None]) -> None:
    """Require of a table the columns that import options name, and one of labels; other data passes.

    Parameters
    ----------
    data : path, table or rows
    options : mapping
        Fields of ImportOptions, and ``for_model``.

    Raises
    ------
    ClientError
        A column is missing; with the columns that the table has.
    """
    if not is_table(data):
        return
    columns = [str(name) for name in getattr(data, "column_names", None) or getattr(data, "columns", [])]
    if not columns:
        return
    for option in _NAMING:
        given = options.get(option) or ()
        for name in [given] if isinstance(given, str) else given if isinstance(given, Sequence) else []:
            if not name.endswith("*") and name not in columns:
                raise ClientError(f"The table has no column {name!r}, which {option} names. {_columns(name, columns)}")
    default = ImportOptions.model_fields["label_column"].default
    chosen = any(options.get(each) for each in ("label_column", "label_columns", "unlabelled", "for_model"))
    if not chosen and default not in columns:
        raise ClientError(
            f"The table has no column {default!r}: name the column of labels (label_column=...), or pass "
            f"unlabelled=True for rows without labels. {_columns(default, columns)}"
        )


def _columns(name: str, columns: Sequence[str]) -> str:
    near = get_close_matches(name, columns, 1)
    listed = ", ".join(columns[:_SHOWN]) + (", ..." if len(columns) > _SHOWN else "")
    return f"Its columns are {listed}." + (f" Is it {near[0]!r}?" if near else "")
