"""Does a title with a weight of its own answer better than title and abstract joined, and what does `auto` choose?

    python -m benchmarks.bench_fields [CORPUS ...]

Needs the corpora beside the repository, in ``../shared/data``, which POLYMARGIN_BENCH_DATA names, too. Records of a
library have a title and an abstract. Of questions to librarians the first sentence takes the title's place, and names
of concepts are looked for, too. Rows of one label: an industry's keyword and what follows its first comma, and what
messages quote beside what they say themselves. The gain over the joined text has a confidence interval of paired
bootstrap over the held-out rows. The row of `auto` has its choice, and the time of the choice alone.
"""

import argparse
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from app.datasets.recipe_schemas import ColumnRecipe, FieldRecipe, TableColumns, TextRecipe, default_recipe
from app.features.concept_names import ConceptName
from app.features.named_text import NamedTableFeatures, NamedTextFeatures
from app.features.tables import TableFeatures
from app.features.text import TextFeatures
from benchmarks.bench_subjects import Answered, answered, by_rows, parts, targets, trained, vocabulary
from benchmarks.results import write
from benchmarks.sets import load_rows
from solvers.core.problem import Problem
from solvers.labels.name_block import NameBlock
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.comparison import paired_bootstrap
from solvers.selection.row_losses import some_rows
from workers.phases.field_weights import FieldChoice, chosen_fields

# corpus, its vocabulary, language, and what ends the title
CORPORA = {
    "tib-core.en": (None, "en", " ¤ "),
    "tib-core.orig": (None, "de", " ¤ "),
    "kirjastonhoitaja": ("yso-places-fi.tsv.xz", "fi", r"(?<=[.!?])\s"),
}
SINGLE, SINGLE_MACHINE = ("naics", "20news"), "crammer_singer"
COLUMNS = TableColumns(texts=("title", "rest"))
WEIGHTS = (0.5, 1.0, 2.0, 4.0)
Fields = list[tuple[str, str]]


class Made(NamedTuple):
    """The features of training rows and of rows that are held out, and which columns are names."""

    X: sp.csr_matrix
    X_test: sp.csr_matrix
    names: NameBlock | None


def of_texts(
    train: Sequence[str], test: Sequence[str], recipe: TextRecipe, names: Sequence[ConceptName], shown: Sequence[str]
) -> Made:
    if names:
        named, X = NamedTextFeatures.fit(train, recipe, names, shown)
        return Made(X, named.transform(test), named.block())
    terms, X = TextFeatures.fit(train, recipe)
    return Made(X, terms.transform(test), None)


def of_fields(
    train: Fields, test: Fields, recipe: TextRecipe, names: Sequence[ConceptName], shown: Sequence[str]
) -> Made:
    given, no_cells = (COLUMNS, [], sp.csr_matrix((len(train), 0))), sp.csr_matrix((len(test), 0))
    if names:
        named, X = NamedTableFeatures.fit(*given, train, ColumnRecipe(), recipe, names, shown)
        return Made(X, named.transform(no_cells, [], test), named.block())
    table, X = TableFeatures.fit(*given, train, ColumnRecipe(), recipe)
    return Made(X, table.transform(no_cells, [], test), None)


def subjects_answered(
    made: Made, Y: sp.csr_matrix, Y_test: sp.csr_matrix, concepts: Sequence[str], began: float
) -> tuple[Answered, float]:
    """What ``subjects`` answers to the held-out rows, and the processor seconds from ``began`` to its last step."""
    problem = replace(Problem.check_sets(made.X, Y, Taxonomy.flat(concepts)), names=made.names)
    model = trained(problem, "subjects", {})
    took = time.process_time() - began
    seen = np.bincount(Y.indices, minlength=len(concepts)) > 0
    return Answered(*zip(*answered(by_rows(model, made.X_test), Y_test, seen), strict=True)), took


def bench(corpus: str) -> None:
    file, language, end = CORPORA[corpus]
    train, test = parts(corpus)
    concepts, names = vocabulary(file, [label for _, some in (*train, *test) for label in some], language)
    Y, Y_test = targets(train, concepts), targets(test, concepts)
    seen = np.bincount(Y.indices, minlength=len(concepts)) > 0
    apart, apart_test = ([_split(text, end) for text, _ in rows] for rows in (train, test))
    recipe = TextRecipe(lemmas=(language,))
    rows: list[list[str]] = []
    joined: np.ndarray | None = None

    def add(title: str, began: float, made: Made) -> None:
        nonlocal joined
        found, took = subjects_answered(made, Y, Y_test, concepts, began)
        ndcg = np.array(found.ndcg)
        gain = "" if joined is None else gain_over(ndcg, joined)
        joined = ndcg if joined is None else joined
        rows.append([corpus, title, f"{np.mean(found.f1):.3f}", f"{ndcg.mean():.3f}", gain, f"{took:.0f}"])
        print(f"  {rows[-1]}", flush=True)

    for title, columns in (("joined", (0, 1)), ("title alone", (0,)), ("rest alone", (1,))):
        texts, held_out = (["\n".join(row[at] for at in columns) for row in some] for some in (apart, apart_test))
        add(title, time.process_time(), of_texts(texts, held_out, recipe, names, concepts))
    for weight in WEIGHTS:
        weighed = recipe.model_copy(update={"fields": {"title": FieldRecipe(weight=weight)}})
        made = time.process_time()
        add(f"fields, title {weight:g}", made, of_fields(apart, apart_test, weighed, names, concepts))
    began, recipe_of_auto = time.process_time(), recipe.model_copy(update={"fields": "auto"})
    at = some_rows(len(train))
    chosen = chosen_fields(
        COLUMNS.texts,
        ["\n".join(apart[row]) for row in at],
        [apart[row] for row in at],
        lambda X: Problem.check_sets(X, Y[at], Taxonomy.flat(concepts)),
        recipe_of_auto,
    )
    rows.append(_of_auto(corpus, chosen, time.process_time() - began))
    print(f"  {rows[-1]}", flush=True)
    note = (
        f"{len(train):,} rows to train on, {len(test):,} held out, {len(concepts):,} concepts, of which "
        f"{int(seen.sum()):,} have rows; lemmas of {language}; {len(names):,} names are looked for. Titles have "
        f"{_words(apart, 0):.0f} words in the mean, the rest has {_words(apart, 1):.0f}. The weight of the rest is 1. "
        "gain: of nDCG@10 over the joined text, with an interval of 95 %."
    )
    header = ["corpus", "features", "F1@5", "nDCG@10", "gain", "processor s"]
    write(f"Titles with a weight of their own: {corpus}", header, rows, note)


def bench_single(name: str) -> None:
    train, test = load_rows(name)
    assert train.texts is not None
    assert test.texts is not None
    apart, apart_test = ([_keyword(text) if name == "naics" else _quotes(text) for text in rows.texts.tolist()]
                         for rows in (train, test))  # fmt: skip
    recipe = default_recipe("auto", 1000)
    labels = [str(label) for label in range(int(train.y.max()) + 1)]
    rows: list[list[str]] = []
    joined: np.ndarray | None = None

    def add(title: str, began: float, made: Made) -> None:
        nonlocal joined
        model = trained(Problem.check(made.X, train.y, labels), SINGLE_MACHINE, {"C": 1.0, "bias": 1.0})
        took = time.process_time() - began
        right = (np.asarray(model.scores(made.X_test)).argmax(axis=1) == test.y).astype(float)
        gain = "" if joined is None else gain_over(right, joined)
        joined = right if joined is None else joined
        rows.append([name, title, f"{right.mean():.3f}", gain, f"{took:.0f}"])
        print(f"  {rows[-1]}", flush=True)

    began = time.process_time()
    add("joined", began, of_texts(*(["\n".join(row) for row in some] for some in (apart, apart_test)), recipe, [], []))
    for weight in WEIGHTS[:3]:
        began = time.process_time()
        weighed = recipe.model_copy(update={"fields": {"title": FieldRecipe(weight=weight)}})
        add(f"fields, title {weight:g}", began, of_fields(apart, apart_test, weighed, [], []))
    began, at = time.process_time(), some_rows(len(apart))
    classes, y = np.unique(train.y[at], return_inverse=True)
    chosen = chosen_fields(
        COLUMNS.texts,
        ["\n".join(apart[row]) for row in at],
        [apart[row] for row in at],
        lambda X: Problem.check(X, y.astype(np.int32), [labels[each] for each in classes]),
        recipe.model_copy(update={"fields": "auto"}),
    )
    found = _of_auto(name, chosen, time.process_time() - began)
    rows.append([*found[:2], *found[3:]])
    print(f"  {rows[-1]}", flush=True)
    what = "keywords" if name == "naics" else "quotes"
    note = (
        f"{len(train.y):,} rows to train on, {len(test.y):,} held out, {len(labels):,} labels; `{SINGLE_MACHINE}`, "
        f"words, pairs of words and runs of three characters. {what.capitalize()} take the title's place; they have "
        f"{_words(apart, 0):.0f} words in the mean, the rest has {_words(apart, 1):.0f}. gain: of accuracy over the "
        "joined text, with an interval of 95 %."
    )
    header = ["set", "features", "accuracy", "gain", "processor s"]
    write(f"Columns with a weight of their own, one label: {name}", header, rows, note)


def _of_auto(name: str, chosen: FieldChoice, took: float) -> list[str]:
    weights = ", ".join(f"{column} {own.weight:g}" for column, own in chosen.recipe.own_fields.items())
    best = chosen.gains[chosen.weight]
    why = f"{chosen.shortest} {chosen.weight:g}: {best.mean:+.3f} ± {2.0 * best.error:.3f}"
    return [name, f"auto chooses: {weights or 'joined'}", "", "", why, f"{took:.1f}"]


def _keyword(text: str) -> tuple[str, str]:
    first, _, rest = text.partition(", ")
    return first, rest


def _quotes(text: str) -> tuple[str, str]:
    lines = text.split("\n")
    quoted = [line.startswith(">") for line in lines]
    return tuple("\n".join(line for line, is_quote in zip(lines, quoted, strict=True) if is_quote == which)
                 for which in (True, False))  # fmt: skip


def _split(text: str, end: str) -> tuple[str, str]:
    title, *rest = re.split(end, text, maxsplit=1)
    return title, rest[0] if rest else ""


def _words(rows: Fields, at: int) -> float:
    return float(np.mean([len(row[at].split()) for row in rows]))


def gain_over(ndcg: np.ndarray, joined: np.ndarray) -> str:
    found = paired_bootstrap(ndcg, joined, resamples=10_000, confidence=0.95, seed=0)
    return f"{np.mean(ndcg - joined):+.3f} ({found.low:+.3f} to {found.high:+.3f})"


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument(
        "corpora", nargs="*", default=[*CORPORA, *SINGLE], metavar="CORPUS", help=", ".join([*CORPORA, *SINGLE])
    )
    for corpus_or_set in arguments.parse_args().corpora:
        (bench_single if corpus_or_set in SINGLE else bench)(corpus_or_set)
