"""Tables and figures of the five papers, in their own protocols: ``python -m benchmarks.papers NAME ...``.

Each run's result is kept at once in ``benchmarks/data/papers/runs``, and a later call goes on from there.
The means go to ``benchmarks/data/papers/NAME.csv`` at the end, and the page ``docs/papers/NAME.md`` with its pictures
is made of them.
With ``--quick`` all is small, and goes to ``build/papers`` instead.
"""

import argparse
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.papers import alber, crammer_singer, lin, rousu, zhou
from benchmarks.papers.protocol import Paper, Size
from benchmarks.papers.store import OutOfTimeError, Results, Store
from benchmarks.results import processor

ROOT = Path(__file__).parents[2]
PAPERS: dict[str, Paper] = {
    "crammer-singer": crammer_singer,
    "alber": alber,
    "zhou": zhou,
    "rousu": rousu,
    "lin": lin,
}


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME", help=f"of {', '.join(PAPERS)}", choices=list(PAPERS))
    parser.add_argument("--quick", action="store_true", help="at most two minutes a paper")
    parser.add_argument("--data", type=Path, help="folder of real sets with a load.py; without it data are generated")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run after so many, a paper")
    parser.add_argument("--pages", action="store_true", help="run nothing; make the pages of the results that are kept")
    chosen = parser.parse_args(given)
    if chosen.data is not None:
        os.environ["POLYMARGIN_BENCH_DATA"] = str(chosen.data.resolve())
    for name in chosen.names:
        if chosen.pages:
            write(name, Results.read(ROOT / f"benchmarks/data/papers/{name}.csv"), ROOT / "docs/papers")
        else:
            make(name, "quick" if chosen.quick else "full", chosen.minutes)


def make(name: str, size: Size, minutes: float = float("inf"), output: Path | None = None) -> Results:
    """Measure what is not yet known, and write results and page; the results.

    Parameters
    ----------
    name : str
        Of the paper.
    size : {"quick", "full"}
    minutes : float
        No run is begun after so many; the page then has what there is.
    output : Path, optional
        Where results and page go; left out, to the documentation if ``size`` is full, else to ``build/papers``.
    """
    full = size == "full" and output is None
    folder = ROOT / "build/papers" if output is None else output
    store = Store(ROOT / f"benchmarks/data/papers/runs/{name}.jsonl" if full else None, minutes)
    try:
        PAPERS[name].measure(store, size)
    except OutOfTimeError as ended:
        print(ended)
    store.note("about", "", origin=_origin(name, size))
    results = store.means()
    results.write(ROOT / f"benchmarks/data/papers/{name}.csv" if full else folder / f"{name}.csv")
    write(name, results, ROOT / "docs/papers" if full else folder)
    return results


def write(name: str, results: Results, folder: Path) -> None:
    """Make the page of a paper from its results."""
    folder.mkdir(parents=True, exist_ok=True)
    paper = PAPERS[name]
    origin = results.text("about", "", "origin")
    text = paper.page(results, folder / "pictures")
    (folder / f"{name}.md").write_text(f"# {paper.TITLE}\n\n{origin}\n\n{text.strip()}\n", encoding="utf8")
    print(f"{name}: {folder / f'{name}.md'}")


def _origin(name: str, size: Size) -> str:
    given = " --data FOLDER" if "POLYMARGIN_BENCH_DATA" in os.environ else ""
    command = f"python -m benchmarks.papers {name}{'' if size == 'full' else ' --quick'}{given}"
    load = "/".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"Made by `{command}`, {datetime.now(UTC):%Y-%m-%d}, on {processor()}, {os.cpu_count()} cores, load {load}, "
        f"Python {platform.python_version()}. Times are processor seconds of one thread on a machine that others used, "
        "too; only those of one table compare."
    )


if __name__ == "__main__":
    main(sys.argv[1:])
