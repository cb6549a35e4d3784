"""What a parser makes of a content, or finds wrong in it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.datasets.schemas import ImportOptions
from app.formats.table import FormatError, Parsed, RowError

Parser = Callable[[Path, ImportOptions], Parsed]


def reading(parser: Parser) -> list[Callable[..., Any]]:
    """The three functions below, of one parser."""
    return [partial(each, parser) for each in (parsed, outcome_of, errors_of)]


def parsed(parser: Parser, path: Path, content: str | bytes, **options: Any) -> Parsed:
    """The rows of a content, which is written to a file."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return parser(path, ImportOptions(**options))


def outcome_of(parser: Parser, path: Path) -> Parsed | FormatError:
    """The rows of a file, or why it has none."""
    try:
        return parser(path, ImportOptions())
    except FormatError as error:
        return error


def errors_of(parser: Parser, path: Path, content: str | bytes) -> list[RowError]:
    """What is wrong in a content."""
    with pytest.raises(FormatError) as caught:
        parsed(parser, path, content)
    return caught.value.errors
