"""The results: benchmarks write tables as data, and pages and pictures are made of these.

``python -m benchmarks.results`` makes all pages and pictures again; a benchmark calls ``write``, which makes those of
its own page, too.
"""

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.questions import PAGES, Page, page_of
from benchmarks.tables import DATA, FOLDER, HISTORY, Table, keep, read_all, table
from docs_site.markdown import table as markdown

# a trial writes its data elsewhere, so that the tables stay those of whole runs
TRIALS = "POLYMARGIN_BENCH_RESULTS"
INDEX = (
    "# Results\n\nA page for each question, with the newest run of every benchmark that answers it; earlier runs are "
    "in the [history](history/index.md). Figures of different runs do not compare: machines and load differ. All pages "
    "and pictures are made by `python -m benchmarks.results` of the tables in `benchmarks/results/data/`. A table "
    "names the commit that it was measured at. Where changes were rebased since, the history has that under another "
    "name: `git log --reverse -S'commit: NAME' -- benchmarks` finds the change that brought the table in.\n\n"
)


def write(title: str, header: Sequence[str], rows: Sequence[Sequence[object]], note: str = "") -> None:
    """Print a table and keep it as data, in place of the one of the same title; remakes its page and pictures."""
    new = table({"title": title, "note": note, **_origin()}, header, rows)
    print(section(new))
    trial = os.environ.get(TRIALS)
    if trial:
        keep(new, Path(trial), Path(trial) / "history")
        return
    page = page_of(new.benchmark)
    keep(new)
    make([page])


def tables() -> list[Table]:
    """The newest run of every benchmark, or of trials where they are written elsewhere."""
    return read_all(Path(os.environ.get(TRIALS) or DATA))


def pages() -> dict[str, str]:
    """Every page's Markdown, by its path within ``benchmarks/``."""
    found = tables()
    texts = {f"results/{page.name}.md": _page(page, _of(page, found)) for page in PAGES}
    lines = [f"- [{page.question}](results/{page.name}.md) {page.about}" for page in PAGES]
    return {"RESULTS.md": INDEX + "\n".join(lines) + "\n", "history/index.md": _history(), **texts}


def make(chosen: Sequence[Page] = PAGES) -> None:
    """Write all pages, and draw the pictures of some."""
    # matplotlib takes half a second, which a benchmark should not pay before it measures
    from benchmarks.dots import draw

    for name, text in pages().items():
        (FOLDER / name).write_text(text)
    for page in chosen:
        for picture in page.pictures:
            draw(picture, _of(page, tables()))


def section(one: Table) -> str:
    """Markdown: title, origin, note and rows of a table."""
    origin = f"`{one.command}`, commit {one.commit}, {one.date}, {one.machine}."
    return f"## {one.title}\n\n{origin}\n\n" + (f"{one.note}\n\n" if one.note else "") + markdown(one.header, one.rows)


def _of(page: Page, found: Sequence[Table]) -> list[Table]:
    """The tables of a page in the order of its benchmarks."""
    chosen = [one for one in found if one.benchmark in page.benchmarks]
    return sorted(chosen, key=lambda one: (page.benchmarks.index(one.benchmark), one.name))


def _page(page: Page, found: Sequence[Table]) -> str:
    pictures = "".join(
        f"![{one.label}: {one.titles.strip(': ')}](pictures/{one.name}.png)\n\n" for one in page.pictures
    )
    sections = "\n".join(section(one) for one in found) or "No run is kept yet.\n"
    return f"# {page.question}\n\n{page.about} All questions: [results](../RESULTS.md).\n\n{pictures}{sections}"


def _history() -> str:
    rows = [
        (one.title, one.date, one.commit, one.machine, f"`{path.name}`")
        for path, one in zip(sorted(HISTORY.glob("*.csv")), read_all(HISTORY), strict=True)
    ]
    about = "Tables that a newer run has replaced, in `benchmarks/history/`. The newest: [results](../RESULTS.md)."
    return f"# Earlier results\n\n{about}\n\n" + markdown(("table", "date", "commit", "machine", "data"), rows)


def _origin() -> dict[str, str]:
    git = ["git", "-C", str(FOLDER)]
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    dirty = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True).stdout.strip()
    command = "python -m " + Path(sys.argv[0]).with_suffix("").relative_to(FOLDER.parent).as_posix().replace("/", ".")
    load = "/".join(f"{value:.1f}" for value in os.getloadavg())
    return {
        "command": " ".join([command, *(Path(one).name if Path(one).is_absolute() else one for one in sys.argv[1:])]),
        "commit": f"{commit or 'unknown'}{' with changes' if dirty else ''}",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{processor()}, {os.cpu_count()} cores, load {load}, Python {platform.python_version()}",
    }


def processor() -> str:
    """The processor's name, or the kind of machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    make()
