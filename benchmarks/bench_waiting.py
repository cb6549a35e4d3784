"""How long does a person wait from a file of texts to the first and to the best prediction, phase by phase?

A service of its own, over HTTP, beside scikit-learn's LinearSVC and Omikuji on words, and on features of the kind that
``auto`` makes, of the same file. ``--annif PYTHON`` names the interpreter of an environment that has Annif with
Omikuji. The service's first model is a single machine, the best one is chosen by ``auto``. Both are trained on a few
rows first, to compile their loops.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.largest_service import LOOK_SECONDS, Watch, serving
from benchmarks.results import write
from benchmarks.waiting_peers import (
    Phases,
    annif_omikuji,
    linear_svc,
    omikuji_trees,
    read,
    words,
    words_and_characters,
)

SETS = ("20news", "naics", "debian-section", "debian-maintainer", "docstrings")
# the single machine that gives the first model, and the choice that gives the best one
MACHINES = {"first": "crammer_singer", "best": "auto"}
# enough that `auto` divides them as it divides the whole set
WARM_ROWS = 2_500
HEADER = ("program", "model", "phase", "s", "processor s", "share of processor s, %", "P@1, %")
Row = list[object]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sets", nargs="*", default=SETS)
    arguments.add_argument("--annif", metavar="PYTHON")
    chosen = arguments.parse_args()
    for name in chosen.sets:
        with tempfile.TemporaryDirectory() as folder:
            train, test = write_files(name, Path(folder))
            n_train, n_test = (len(read(path)[0]) for path in (train, test))
            rows = [*of_peers(train, test, chosen.annif), *of_service(train, test, Path(folder, "home"))]
            note = (
                f"{n_train:,} rows for training, {n_test:,} for testing. Wall seconds and processor seconds of all "
                "processes of the program; the last row of a model is the sum. The service's first model begins with "
                "the upload; the best one uses the same dataset, so its sum leaves the upload and the import out. A "
                f"phase shorter than {LOOK_SECONDS:g} s counts in the one before. scikit-learn and Omikuji answer in "
                "their own process, without storage, a test of their own or a certificate. Words and characters are "
                "the kind of features that `auto` makes: words, pairs of words, and characters within words, with the "
                "same bounds. Annif starts with each command."
            )
        write(f"From a file of texts to predictions: {name}", HEADER, rows, note)


def write_files(name: str, folder: Path) -> tuple[Path, Path]:
    """The parts of a set for training and testing, as files of JSON lines with text and label."""
    from benchmarks.sets import load_rows

    paths = (folder / "train.jsonl", folder / "test.jsonl")
    for path, rows in zip(paths, load_rows(name), strict=True):
        assert rows.texts is not None, f"{name} has no texts"
        write_rows(path, rows.texts.tolist(), rows.y.tolist())
    return paths


def write_rows(path: Path, texts: Sequence[str], classes: Sequence[int]) -> None:
    """Write texts and labels as JSON lines."""
    with path.open("w") as file:
        for text, label in zip(texts, classes, strict=True):
            file.write(json.dumps({"text": text, "label": f"class-{label}"}) + "\n")


def of_peers(train: Path, test: Path, annif: str | None) -> list[Row]:
    """The phases of other programs."""
    kinds = {"words": lambda _: words(), "words and characters": words_and_characters}
    rows: list[Row] = []
    for kind, features in kinds.items():
        rows += table_rows("scikit-learn", f"LinearSVC, {kind}", *linear_svc(features, train, test))
    for kind, features in kinds.items():
        rows += table_rows("Omikuji", f"three trees, {kind}", *omikuji_trees(features, train, test))
    if annif is not None:
        rows += table_rows("Annif", "omikuji, words", *annif_omikuji(annif, train, test))
    return rows


def of_service(train: Path, test: Path, home: Path) -> list[Row]:
    """The phases of the service, for the first and for the best model."""
    rows: list[Row] = []
    few = train.with_name("few.jsonl")
    few_rows(train, few)
    text = read(test)[0][0]
    with serving(home, 0) as (client, pid):
        client.datasets.upload(few, "few").wait()
        for machine in MACHINES.values():
            client.train("few", f"few-{machine}", machine, test_fraction=0.0).wait()
            client.predict(f"few-{machine}", [{"text": text}])
        client.datasets.upload(test, "test").wait()
        for model, machine in MACHINES.items():
            with Watch(pid) as watch:
                if model == "first":
                    watch.begin("upload")
                    dataset = client.datasets.upload(train, "train")
                    watch.begin("import")
                    dataset.wait()
                watch.begin("queued")
                job = client.train("train", model, machine, test_fraction=0.0)
                while not job.refresh().finished:
                    watch.phase(None if job.progress is None else phase_of(job.progress))
                    time.sleep(LOOK_SECONDS)
                job.wait()
                watch.begin("first answer")
                client.predict(model, [{"text": text}])
                found = summed(watch.rows())
            evaluated = client.evaluate(model, "test", part="all", resamples=0).wait()
            measures = client.evaluations.get(evaluated.id).measures
            right = next(one.value for one in measures if one.name == "precision@1")
            rows += table_rows("service", f"{model}: {machine}", found, 100 * right)
    return rows


def few_rows(path: Path, few: Path) -> None:
    """Write about ``WARM_ROWS`` rows at equal distances to another file: files may be sorted by label."""
    texts, labels = read(path)
    every = max(1, len(texts) // WARM_ROWS)
    few.write_text(
        "".join(
            json.dumps({"text": text, "label": label}) + "\n"
            for text, label in zip(texts[::every], labels[::every], strict=True)
        )
    )


def phase_of(progress: Any) -> str:
    """The phase of a job; training with its setting's first word, the method that ``auto`` is trying or fitting."""
    setting = progress.setting if progress.phase == "training" else None
    return f"training, {setting.split()[0].strip(',:')}" if setting else str(progress.phase)


def summed(rows: Sequence[Sequence[object]]) -> Phases:
    """Wall and processor seconds of each phase of a :class:`Watch`, all times that it came up together."""
    found: Phases = {}
    for phase, wall, processor, *_ in rows:
        before = found.get(str(phase), (0.0, 0.0))
        found[str(phase)] = (before[0] + float(str(wall)), before[1] + float(str(processor)))
    return found


def table_rows(program: str, model: str, phases: Phases, right: float) -> list[Row]:
    """A row for each phase, and one for their sum with the share of test rows that are right, in percent."""
    wall, processor = (sum(each) for each in zip(*phases.values(), strict=True))
    rows: list[Row] = []
    for phase, (of_wall, of_processor) in phases.items():
        share = f"{100 * of_processor / processor:.0f}" if processor else "-"
        rows.append([program, model, phase, f"{of_wall:.1f}", f"{of_processor:.1f}", share, ""])
    return [*rows, [program, model, "sum", f"{wall:.1f}", f"{processor:.1f}", "100", f"{right:.1f}"]]


if __name__ == "__main__":
    main()
