"""Does a title with a weight of its own answer better than title and abstract joined?

    python -m benchmarks.bench_fields [CORPUS ...]

Needs the corpora beside the repository, in ``../shared/data``. Records of a library have a title and an abstract. Of
questions to librarians the first sentence takes the title's place, and names of concepts are looked for, too. The gain
in nDCG@10 over the joined text has a confidence interval of paired bootstrap over the held-out rows.
"""

import argparse
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from app.datasets.recipe_schemas import ColumnRecipe, FieldRecipe, TableColumns, TextRecipe
from app.features.concept_names import ConceptName
from app.features.named_text import NamedTableFeatures, NamedTextFeatures
from app.features.tables import TableFeatures
from app.features.text import TextFeatures
from benchmarks.bench_subjects import Answered, answered, by_rows, parts, targets, trained, vocabulary
from benchmarks.results import write
from solvers.core.problem import Problem
from solvers.labels.name_block import NameBlock
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.comparison import paired_bootstrap

# corpus, its vocabulary, language, and what ends the title
CORPORA = {
    "tib-core.en": (None, "en", " ¤ "),
    "tib-core.orig": (None, "de", " ¤ "),
    "kirjastonhoitaja": ("yso-places-fi.tsv.xz", "fi", r"(?<=[.!?])\s"),
}
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
        problem = replace(Problem.check_sets(made.X, Y, Taxonomy.flat(concepts)), names=made.names)
        model = trained(problem, "subjects", {})
        took = time.process_time() - began
        found = Answered(*zip(*answered(by_rows(model, made.X_test), Y_test, seen), strict=True))
        ndcg = np.array(found.ndcg)
        gain = "" if joined is None else _gain(ndcg, joined)
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
    note = (
        f"{len(train):,} rows to train on, {len(test):,} held out, {len(concepts):,} concepts, of which "
        f"{int(seen.sum()):,} have rows; lemmas of {language}; {len(names):,} names are looked for. Titles have "
        f"{_words(apart, 0):.0f} words in the mean, the rest has {_words(apart, 1):.0f}. The weight of the rest is 1. "
        "gain: of nDCG@10 over the joined text, with an interval of 95 %."
    )
    header = ["corpus", "features", "F1@5", "nDCG@10", "gain", "processor s"]
    write(f"Titles with a weight of their own: {corpus}", header, rows, note)


def _split(text: str, end: str) -> tuple[str, str]:
    title, *rest = re.split(end, text, maxsplit=1)
    return title, rest[0] if rest else ""


def _words(rows: Fields, at: int) -> float:
    return float(np.mean([len(row[at].split()) for row in rows]))


def _gain(ndcg: np.ndarray, joined: np.ndarray) -> str:
    found = paired_bootstrap(ndcg, joined, resamples=10_000, confidence=0.95, seed=0)
    return f"{np.mean(ndcg - joined):+.3f} ({found.low:+.3f} to {found.high:+.3f})"


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("corpora", nargs="*", default=list(CORPORA), metavar="CORPUS", help=", ".join(CORPORA))
    for chosen in arguments.parse_args().corpora:
        bench(chosen)
