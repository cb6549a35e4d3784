"""How fast are files read, and texts weighed, beside scikit-learn?

Processor seconds, as others may load the machine, and the peak of memory above what the arrays themselves take; each
reading in a process of its own. The first time is that of a machine that has compiled nothing yet, with the imports of
both programs. Query ids and comments are passed over by both.
"""

import argparse
import json
import lzma
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.processes import apart, peak_bytes
from benchmarks.results import write

FEATURES, PER_ROW, LABELS = 100_000, 80, 50
MB = 1e6


def make(path: Path, n_bytes: int, query: str = "", comment: str = "") -> None:
    """Rows in svmlight's format, the same 20,000 again and again, until the file has so many bytes."""
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(20_000):
        indices = np.unique(rng.integers(1, FEATURES, PER_ROW))
        values = rng.random(len(indices)).round(4)
        pairs = " ".join(map("{}:{}".format, indices.tolist(), values.tolist()))
        lines.append(f"{rng.integers(LABELS)} {query}{pairs}{comment}\n")
    block = "".join(lines)
    with path.open("w") as file:
        for begin in range(0, n_bytes, len(block)):
            file.write(block[: n_bytes - begin].rpartition("\n")[0] + "\n")


def read_here(path: str) -> tuple[float, float, int]:
    """Processor seconds, bytes above the arrays at the peak, entries."""
    from app.formats.parsing import parse

    with _small() as small:
        parse(small, "svmlight")
    before, began = peak_bytes(), time.process_time()
    X = parse(Path(path), "svmlight").X
    seconds = time.process_time() - began
    assert X is not None
    return seconds, peak_bytes() - before - X.data.nbytes - X.indices.nbytes, X.nnz


def imported(path: str) -> tuple[float, float, int]:
    """As :func:`read_here`, with the statistics that an import job takes of the rows."""
    from app.formats.parsing import parse
    from app.store.row_statistics import statistics_of

    with _small() as small:
        statistics_of(parse(small, "svmlight"))
    before, began = peak_bytes(), time.process_time()
    parsed = parse(Path(path), "svmlight")
    statistics_of(parsed)
    seconds, X = time.process_time() - began, parsed.X
    assert X is not None
    return seconds, peak_bytes() - before - X.data.nbytes - X.indices.nbytes, X.nnz


def read_there(path: str) -> tuple[float, float, int]:
    """As :func:`read_here`, by scikit-learn."""
    from sklearn.datasets import load_svmlight_file

    with _small() as small:
        load_svmlight_file(str(small))
    before, began = peak_bytes(), time.process_time()
    X, _ = load_svmlight_file(path)
    seconds = time.process_time() - began
    return seconds, peak_bytes() - before - X.data.nbytes - X.indices.nbytes, X.nnz


OURS = "from app.formats.parsing import parse; parse(Path(sys.argv[1]), 'svmlight')"
THEIRS = "from sklearn.datasets import load_svmlight_file; load_svmlight_file(sys.argv[1])"


def first_time(program: str, path: Path) -> float:
    """Processor seconds of a process, its imports included, that reads a file where nothing was compiled yet."""
    begin = "import sys; from pathlib import Path; "
    with tempfile.TemporaryDirectory() as cache:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-c", begin + program, str(path)]
        subprocess.run(command, check=True, env=os.environ | {"NUMBA_CACHE_DIR": cache})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_times(what: str, path: Path, rounds: int) -> list[object]:
    """The row of both programs' first readings of a file, in turns."""
    pairs = [(first_time(OURS, path), first_time(THEIRS, path)) for _ in range(rounds)]
    ours, theirs = zip(*pairs, strict=True)
    return [
        f"svmlight, {path.stat().st_size / MB:.0f} MB{what}, nothing compiled", f"{statistics.median(ours):.2f}",
        f"{statistics.median(theirs):.2f}", f"{statistics.median(b / a for a, b in pairs):.2f}", "", "",
        "with all imports",
    ]  # fmt: skip


def beside(what: str, path: Path, rounds: int) -> list[object]:
    """The row of a file that both programs read, in turns."""
    found = [(apart(read_here, str(path)), apart(read_there, str(path))) for _ in range(rounds)]
    ours, theirs = (list(map(list, each)) for each in zip(*found, strict=True))
    seconds = [statistics.median(run[0] for run in runs) for runs in (ours, theirs)]
    ratio = statistics.median(b[0] / a[0] for a, b in zip(ours, theirs, strict=True))
    above = [f"{max(run[1] for run in runs) / MB:.0f}" for runs in (ours, theirs)]
    return [what, *(f"{s:.2f}" for s in seconds), f"{ratio:.2f}", *above, f"{ours[0][2]:,} entries"]


def weigh(rounds: int) -> list[object] | None:
    """Processor seconds of both programs' TF-IDF of debian's descriptions, in turns, and how far they are apart."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    from app.datasets.recipe_schemas import TextRecipe
    from app.features.text import TextFeatures

    path = Path(os.environ.get("POLYMARGIN_BENCH_DATA", "")) / "debian.jsonl.xz"
    if not path.exists():
        return None
    with lzma.open(path, "rt") as file:
        texts = [json.loads(line)["text"] for line in file]
    ours, theirs = [], []
    for _ in range(rounds):
        began = time.process_time()
        _, X = TextFeatures.fit(texts, TextRecipe())
        ours.append(time.process_time() - began)
        began = time.process_time()
        Y = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(texts)
        theirs.append(time.process_time() - began)
    ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    return [
        f"TF-IDF of {len(texts):,} texts", f"{statistics.median(ours):.2f}", f"{statistics.median(theirs):.2f}",
        f"{ratio:.2f}", "", "", f"greatest difference {abs(X - Y).max():.1e}",
    ]  # fmt: skip


@contextmanager
def _small() -> Iterator[Path]:
    """A file of two rows, by which all that is compiled or imported is."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.svm"
        path.write_text("1 1:1 3:0.25\n2 qid:1 2:1.5e-3\n")
        yield path


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--mb", type=float, default=200.0, help="Of the file that both programs read.")
    arguments.add_argument("--gigabytes", type=float, default=1.0, help="Of a file that is read here alone, once.")
    arguments.add_argument("--rounds", type=int, default=3)
    chosen = arguments.parse_args()
    table: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder) / "rows.svm", Path(folder) / "small.svm"
        for what, query in (("", ""), (", with query ids", "qid:1 ")):
            make(path, int(chosen.mb * MB), query)
            table.append(beside(f"svmlight, {chosen.mb:g} MB{what}", path, chosen.rounds))
        large = Path(folder) / "large.svm"
        make(large, int(chosen.gigabytes * 1000 * MB))
        for name, run in (("read", read_here), ("read, with its statistics", imported)):
            taken, peak, entries = apart(run, str(large))
            what = f"svmlight, {chosen.gigabytes:g} GB, {name}"
            table.append([what, f"{taken:.2f}", "", "", f"{peak / MB:.0f}", "", f"{entries:,} entries"])
        large.unlink()
        for what, query, comment in (("", "", ""), (", with query ids and comments", "qid:1 ", " # said of it")):
            make(small, int(23 * MB), query, comment)
            table.append(first_times(what, small, chosen.rounds))
    table += filter(None, [weigh(chosen.rounds)])
    header = ["what", "s", "scikit-learn's", "times as fast", "MB above the arrays", "scikit-learn's", ""]
    note = f"Medians of {chosen.rounds} rounds in turns, processor seconds; memory is the most of all rounds."
    write("Reading files and weighing texts", header, table, note)


if __name__ == "__main__":
    main()
