"""Limits of label trees, enforced while a file is parsed."""

from __future__ import annotations

from dataclasses import dataclass

from app.formats.table import FormatError, row_error


@dataclass(frozen=True)
class Bounds:
    """What a file of a label tree may come to, so that reading ends soon, and within a known memory.

    Attributes
    ----------
    nodes : int
        Most nodes.
    depth : int
        Most levels.
    characters : int
        Most characters in the names of all nodes: whole paths are longer than the file that spells them.
    seconds : float
        Most time that reading a large file may take.
    n_bytes : int
        Most bytes of a compressed file once it is unpacked.
    """

    nodes: int = 1_000_000
    depth: int = 1000
    characters: int = 128 << 20
    seconds: float = 120.0
    n_bytes: int = 128 << 20

    @property
    def entries(self) -> int:
        """Most values in a JSON file, where a node may have some beside its name."""
        return 4 * self.nodes

    @property
    def nesting(self) -> int:
        """Most brackets in one another in a JSON file, where a node may have two, and the top as well."""
        return 2 * self.depth + 2


def too_many(line: int, what: str, most: int) -> FormatError:
    """The error of a file that has more than ``most`` of something by that line."""
    return row_error(line, f"more than {most:,} {what}, the maximum of a label tree")
