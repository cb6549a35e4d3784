"""What a format of hierarchies is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.descriptions import Shape


@dataclass(frozen=True)
class Format:
    """A format of hierarchies.

    Attributes
    ----------
    title : str
        Its name in the upload form.
    summary : str
        What it is, in the API.
    parser : str
        ``module:function`` of path, options and bounds; it returns a `Vocabulary` or raises `FormatError`.
    holds, top : str
        Its row in docs/reference/hierarchies.md.
    shapes : sequence of Shape
        Files in tests/corpus/hierarchies.
    endings : mapping
        Endings of file names, and the RDF syntax of each.
    options : frozenset of str
        The options that not all formats support.
    mark : bytes
        What only this format has at the beginning of an XML file.
    in_sheets : bool
        Whether a sheet of a workbook may hold it.
    is_simple : bool
        Whether small files are read in the process that received them.
    is_streamed : bool
        Whether its files are read as a stream, so that they may unpack to more.
    has_escapes : bool
        Whether characters may be written by their numbers.
    excludes : bool
        Whether its parser leaves out the excluded labels itself.
    """

    name: str
    title: str
    summary: str
    parser: str
    holds: str
    top: str
    shapes: Sequence[Shape]
    endings: Mapping[str, str | None] = field(default_factory=dict)
    options: frozenset[str] = frozenset()
    mark: bytes = b""
    in_sheets: bool = False
    is_simple: bool = False
    is_streamed: bool = False
    has_escapes: bool = False
    excludes: bool = False
