"""Tables of benchmarks as data: one CSV a table, headed by lines that say which run made it.

A file begins with lines ``# key: value`` (title, command, commit, date, machine, note); the rest is CSV with a header.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
DATA, HISTORY = FOLDER / "results" / "data", FOLDER / "history"
KEYS = ("title", "command", "commit", "date", "machine", "note")


@dataclass(frozen=True)
class Table:
    """What one run of a benchmark has measured, and how it was made."""

    title: str
    command: str
    commit: str
    date: str
    machine: str
    note: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def name(self) -> str:
        """The title in small letters and hyphens, which names the file."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")

    @property
    def benchmark(self) -> str:
        """The module that made it."""
        found = re.search(r"benchmarks\.(\w+)", self.command)
        return found[1] if found else ""

    def column(self, name: str) -> int:
        """Where a column is."""
        return self.header.index(name)

    def text(self) -> str:
        """The file's content."""
        file = io.StringIO()
        file.writelines(f"# {key}: {getattr(self, key)}\n" for key in KEYS)
        csv.writer(file, lineterminator="\n").writerows([self.header, *self.rows])
        return file.getvalue()


def table(about: dict[str, str], header: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table of plain values; ``about`` has every key of ``KEYS``, on one line each."""
    cells = tuple(tuple(str(cell) for cell in row) for row in rows)
    assert all(len(row) == len(header) for row in cells), "a row and the header differ in length"
    return Table(**{key: " ".join(about[key].split()) for key in KEYS}, header=tuple(header), rows=cells)


def read(path: Path) -> Table:
    """The table of a file.

    Raises
    ------
    KeyError
        If the file's head lacks a key.
    """
    lines = path.read_text().splitlines()
    head = [line for line in lines[: len(KEYS)] if line.startswith("# ")]
    about = {key: value.strip() for key, _, value in (line[2:].partition(":") for line in head)}
    header, *rows = csv.reader(lines[len(head) :])
    return table(about, header, rows)


def read_all(folder: Path) -> list[Table]:
    """All tables of a folder, by their files' names."""
    return [read(path) for path in sorted(folder.glob("*.csv"))]


def keep(new: Table, folder: Path = DATA, history: Path = HISTORY) -> None:
    """Write a table in place of the one with its title, which goes to the history if another run made it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{new.name}.csv"
    if path.exists():
        old = read(path)
        if (old.date, old.commit) != (new.date, new.commit):
            history.mkdir(parents=True, exist_ok=True)
            (history / f"{old.name}.{old.date}-{old.commit.split()[0]}.csv").write_text(old.text())
    path.write_text(new.text())
