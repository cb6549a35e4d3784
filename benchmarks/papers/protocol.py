"""What each module of a paper has."""

from pathlib import Path
from typing import Literal, Protocol

from benchmarks.papers.store import Results, Store

# quick: minutes, and for tests; full: as the paper has it, as far as this machine goes
Size = Literal["quick", "full"]


class Paper(Protocol):
    """A module of this folder."""

    TITLE: str

    def measure(self, store: Store, size: Size) -> None:
        """Run what has not been run."""

    def page(self, results: Results, pictures: Path) -> str:
        """The page's text below its title; pictures are drawn into the folder."""
