"""Other programs from a file of texts to an answer, phase by phase: scikit-learn, Omikuji and Annif.

Files have JSON lines with ``text`` and ``label``. Each program takes its defaults; nothing is tuned.
"""

import json
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from app.datasets.recipe_schemas import default_recipe
from benchmarks.quality_programs import quiet
from benchmarks.serving_programs import annif_project

Phases = dict[str, tuple[float, float]]


class Waited(NamedTuple):
    """Wall and processor seconds of each phase, and the share of test rows that are right, in percent."""

    phases: Phases
    right: float


class Clock:
    """Wall and processor seconds of calls in this process, or with ``children`` in those that it has started."""

    def __init__(self, *, children: bool = False) -> None:
        self.phases: Phases = {}
        self._who = resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF

    def timed(self, phase: str, call: Callable[[], Any]) -> Any:
        """What the call returns; its seconds are the phase's."""
        wall, processor = time.perf_counter(), self._processor()
        result = call()
        self.phases[phase] = (time.perf_counter() - wall, self._processor() - processor)
        return result

    def _processor(self) -> float:
        used = resource.getrusage(self._who)
        return used.ru_utime + used.ru_stime


def words() -> Any:
    """Features of words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True)


def words_and_characters(n_labels: int) -> Any:
    """Features of the kind that ``auto`` makes of texts: words, pairs of words, and characters within words."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.preprocessing import Normalizer

    recipe = default_recipe("auto", n_labels)
    assert recipe.char_ngrams is not None
    # the parts have one length together, as the terms of a recipe have
    both = {
        "sublinear_tf": recipe.sublinear_tf,
        "min_df": recipe.min_df,
        "max_features": recipe.max_features,
        "norm": None,
    }
    terms = TfidfVectorizer(ngram_range=(1, recipe.ngram_max), **both)
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=recipe.char_ngrams, **both)
    return make_pipeline(make_union(terms, characters), Normalizer(copy=False))


def linear_svc(features: Callable[[int], Any], train: Path, test: Path) -> Waited:
    """scikit-learn's LinearSVC on features that take the number of labels."""
    from sklearn.svm import LinearSVC

    clock, machine = Clock(), LinearSVC()
    texts, labels = clock.timed("read", lambda: read(train))
    tfidf = features(len(set(labels)))
    X = clock.timed("features", lambda: tfidf.fit_transform(texts))
    clock.timed("training", lambda: machine.fit(X, labels))
    held_out, right = read(test)
    clock.timed("first answer", lambda: machine.predict(tfidf.transform(held_out[:1])))
    hits = machine.predict(tfidf.transform(held_out)) == right
    return Waited(clock.phases, 100 * float(hits.mean()))


def omikuji_trees(features: Callable[[int], Any], train: Path, test: Path) -> Waited:
    """Omikuji's three trees, in one thread, on features that take the number of labels; it reads rows from a file."""
    import omikuji
    from sklearn.datasets import dump_svmlight_file

    clock = Clock()
    texts, labels = clock.timed("read", lambda: read(train))
    names, y = np.unique(labels, return_inverse=True)
    tfidf = features(len(names))
    X = clock.timed("features", lambda: tfidf.fit_transform(texts))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.txt")

        def write_file() -> None:
            # it refuses rows without features
            known = np.diff(X.indptr) > 0
            with path.open("wb") as file:
                file.write(f"{known.sum()} {X.shape[1]} {len(names)}\n".encode())
                dump_svmlight_file(X[known], y[known], file)

        clock.timed("rows written", write_file)
        with quiet():
            model = clock.timed("training", lambda: omikuji.Model.train_on_data(str(path), n_threads=1))
    model.init_prediction_thread_pool(1)

    def best(asked: Sequence[str]) -> list[str]:
        rows = tfidf.transform(asked)
        pairs = (zip(row.indices.tolist(), row.data.tolist(), strict=True) for row in rows)
        found = [model.predict(list(one), top_k=1) for one in pairs]
        return [names[one[0][0]] if one else "" for one in found]

    held_out, right = read(test)
    clock.timed("first answer", lambda: best(held_out[:1]))
    hits = np.array(best(held_out)) == np.array(right)
    return Waited(clock.phases, 100 * float(hits.mean()))


def annif_omikuji(python: str, train: Path, test: Path) -> Waited:
    """Annif by its command line with its ``omikuji`` backend, on words; each command starts the program."""
    clock = Clock(children=True)
    with tempfile.TemporaryDirectory() as folder:
        project = annif_project(python, train, Path(folder), "texts", "omikuji")
        clock.timed("vocabulary", project.load_vocabulary)
        clock.timed("training", project.train)
        held_out, right = read(test)
        clock.timed("first answer", lambda: project.run(["suggest", "texts"], held_out[0]))
        asked = project.documents("asked.tsv", held_out, right)
        measured = Path(folder, "measured.json")
        project.run(["eval", "texts", "--metric", "Precision@1", "--metrics-file", str(measured), str(asked)])
        found = json.loads(measured.read_text())["Precision@1"]
    return Waited(clock.phases, 100 * float(found))


def read(path: Path) -> tuple[list[str], list[str]]:
    """Texts and labels of a file of JSON lines."""
    rows = [json.loads(line) for line in path.read_text().split("\n") if line]
    return [row["text"] for row in rows], [row["label"] for row in rows]
