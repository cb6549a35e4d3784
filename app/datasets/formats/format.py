"""What a dataset format is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from app.descriptions import Shape, loaded

if TYPE_CHECKING:
    from app.datasets.schemas import ImportOptions
    from app.formats.plain_file import MostUnpacked
    from app.formats.table import Parsed

# options of formats with columns, and of those of them whose cells may have several labels
COLUMNS = frozenset(
    {
        "label_column", "unlabelled", "weight_column", "label_lists", "without_label", "languages", "text_columns",
        "ignore_columns", "number_columns", "category_columns", "column_types", "id_column", "other_columns",
        "infer_columns", "missing", "missing_values",
    }
)  # fmt: skip
TABLE = COLUMNS | {"label_columns", "label_separator"}
# options of formats of bibliographic records
RECORDS = frozenset({"unlabelled", "without_label", "languages", "text_fields", "label_fields"})


@dataclass(frozen=True)
class Reference:
    """The row of a format in docs/reference/formats.md; formats with the same row share it."""

    rows: str
    label: str
    split: str = "none"
    weight: str = "none"


@dataclass(frozen=True)
class Columns:
    """How the named columns of a format are read before their roles are known.

    Attributes
    ----------
    first_values : str
        ``module:function`` of path, options, limits and the most rows: the first values by column.
    blocks : str
        ``module:function`` of path, options and limits: a context with the names of the columns and an iterator over
        Arrow tables.
    typed : bool
        Whether values have types; otherwise all cells are strings.
    """

    first_values: str
    blocks: str
    typed: bool


@dataclass(frozen=True)
class Format:
    """A dataset format. It has either ``recognises``, for text, or ``begins``, for binary files.

    Attributes
    ----------
    title : str
        Its name in the upload form.
    parser : str
        ``module:function`` of path and options, and of binary formats the limits of a decompressed file; it returns a
        `Parsed` or raises `FormatError`.
    options : frozenset of str
        The import options that it supports beside those of all formats.
    shapes : sequence of Shape
        Files in tests/corpus/datasets.
    extensions : sequence of str
        Without the dot. The content decides for other extensions.
    recognises : callable, optional
        Whether the first lines of a file, which are not blank, are of this format; the second argument has the names
        of label columns.
    begins : callable, optional
        Whether the first bytes of a file (at least 1024, or all) are of this format.
    general : bool
        Whether other formats are special cases of this one: it is detected only if no other format is.
    columns : Columns, optional
        Of formats with named columns.
    fixed : mapping
        Supported options with only one possible value: the value and the reason.
    """

    name: str
    title: str
    parser: str
    options: frozenset[str]
    reference: Reference
    shapes: Sequence[Shape]
    extensions: Sequence[str] = ()
    recognises: Callable[[Sequence[str], frozenset[str]], bool] | None = None
    begins: Callable[[bytes], bool] | None = None
    general: bool = False
    columns: Columns | None = None
    fixed: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def is_text(self) -> bool:
        """Whether its files are text."""
        return self.recognises is not None

    @property
    def is_table(self) -> bool:
        """Whether all rows of a file have the same columns."""
        return self.options >= TABLE

    def read(self, path: Path, options: ImportOptions, most: MostUnpacked) -> Parsed:
        """Read a plain file; raises FormatError."""
        parser = loaded(self.parser)
        parsed: Parsed = parser(path, options) if self.is_text else parser(path, options, most)
        return parsed
