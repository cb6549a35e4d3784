"""Concepts of a vocabulary: `subjects` beside what its learnt scores find alone.

    python -m benchmarks.bench_subjects [--characters] [--auto] [kirjastonhoitaja] [makupalat] [tib-core.en]

Needs the corpora beside the repository, in ``../shared/data``. F1@5 is the mean over rows of the F1 of the five best
concepts, as in Annif's `eval`; `unseen` is the share of true concepts without training rows among the first ten. With
`--characters` the terms are lemmas and runs of three to five characters. With `--auto`, `auto` is trained without
names and with them, each with its own recipe.
"""

import lzma
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from app.datasets.recipe_schemas import TextRecipe, default_recipe
from app.features.named_text import ConceptName, NamedTextFeatures
from app.features.text import TextFeatures
from app.formats.hierarchies.bounds import Bounds
from app.formats.hierarchies.registry import parse_hierarchy
from app.formats.plain_file import plain_file
from app.hierarchies.schemas import HierarchyOptions
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.labels.taxonomy import Taxonomy
from solvers.registry import make

DATA = Path(__file__).parents[2] / "shared" / "data"
Rows = list[tuple[str, list[str]]]
# corpus, its vocabulary, language
CORPORA = {
    "kirjastonhoitaja": ("yso-places-fi.tsv.xz", "fi"),
    "makupalat": ("ykl-skos.ttl.xz", "fi"),
    "tib-core.en": (None, "en"),
}


def read(name: str) -> Rows:
    with lzma.open(DATA / f"{name}.tsv.xz", "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\n").partition("\t") for line in file]
    return [(text, re.findall("<([^>]+)>", labels)) for text, _, labels in lines]


def parts(corpus: str) -> tuple[Rows, Rows]:
    if (DATA / f"{corpus}-train.tsv.xz").exists():
        return read(f"{corpus}-train"), read(f"{corpus}-validate")
    rows = read(corpus)
    held_out = np.random.default_rng(0).permutation(len(rows)) < len(rows) // 5
    return (
        [row for row, out in zip(rows, held_out, strict=True) if not out],
        [row for row, out in zip(rows, held_out, strict=True) if out],
    )


def vocabulary(file: str | None, labels: Sequence[str], language: str) -> tuple[list[str], list[ConceptName]]:
    """Concepts, and their names in a language or without one."""
    concepts = sorted(set(labels))
    found: dict[str, list[str]] = {}
    if file is not None and file.endswith(".tsv.xz"):
        with lzma.open(DATA / "vocabularies" / file, "rt", encoding="utf-8") as lines:
            for line in lines:
                uri, _, name = line.rstrip("\n").partition("\t")
                found.setdefault(uri.strip("<>"), []).append(name)
    elif file is not None:
        bounds = Bounds(nodes=1 << 20, depth=1000, characters=1 << 30)
        with plain_file(DATA / "vocabularies" / file) as unpacked:
            parsed = parse_hierarchy(unpacked, "skos", HierarchyOptions(tree="first"), bounds)
        for label, facts in parsed.labels.items():
            given = [name for tag, name in facts.names.items() if tag in (language, "und")]
            given += [name for tag, some in facts.alternatives.items() if tag in (language, "und") for name in some]
            found[label] = given
    concepts = sorted({*concepts, *found})
    number = {concept: at for at, concept in enumerate(concepts)}
    return concepts, [ConceptName(number[label], name) for label, names in found.items() for name in names]


def targets(rows: Rows, concepts: Sequence[str]) -> sp.csr_matrix:
    number = {concept: at for at, concept in enumerate(concepts)}
    pairs = [(i, number[label]) for i, (_, labels) in enumerate(rows) for label in set(labels) if label in number]
    row, column = zip(*pairs, strict=True)
    return sp.csr_matrix((np.ones(len(pairs), bool), (row, column)), shape=(len(rows), len(concepts)))


def measured(scores: Iterator[np.ndarray], Y: sp.csr_matrix, seen: np.ndarray) -> tuple[float, float, float]:
    f1, ndcg, hit, unseen = [], [], 0, 0
    gains = 1.0 / np.log2(np.arange(2, 12))
    for i, row in enumerate(scores):
        true = Y.indices[Y.indptr[i] : Y.indptr[i + 1]]
        if not len(true):
            continue
        first = np.argsort(-row, kind="stable")[:10]
        right = np.isin(first, true)
        f1.append(2.0 * right[:5].sum() / (5 + len(true)))
        ndcg.append((gains * right).sum() / gains[: len(true)].sum())
        hit += int((right & ~seen[first]).sum())
        unseen += int((~seen[true]).sum())
    return float(np.mean(f1)), float(np.mean(ndcg)), hit / max(1, unseen)


def trained(problem: Problem, method: str = "subjects") -> tuple[Model, float]:
    begun, solver = time.process_time(), make(method, {}, seed=0)
    for step in solver.steps(problem):
        last = step
    return solver.model(problem, last.state), time.process_time() - begun


def by_rows(model: Model, X: sp.csr_matrix) -> Iterator[np.ndarray]:
    for begin in range(0, X.shape[0], 64):
        yield from np.asarray(model.ranking(X[begin : begin + 64]).values)


def shown(name: str, model: Model, took: float, X: sp.csr_matrix, Y: sp.csr_matrix, seen: np.ndarray) -> None:
    begun = time.process_time()
    f1, ndcg, unseen = measured(by_rows(model, sp.csr_matrix(X[:, : model.n_features])), Y, seen)
    each = 1000 * (time.process_time() - begun) / X.shape[0]
    print(
        f"  {name:14} F1@5 {f1:.3f}  nDCG@10 {ndcg:.3f}  unseen {unseen:.3f}  training {took:.0f} processor s  "
        f"{each:.1f} ms a text  {model.nbytes / 1e6:.0f} MB",
        flush=True,
    )


def bench(corpus: str, *, characters: bool = False, auto: bool = False) -> None:
    file, language = CORPORA[corpus]
    train, test = parts(corpus)
    labels = [label for _, some in (*train, *test) for label in some]
    concepts, names = vocabulary(file, labels, language)
    texts, held_out = [text for text, _ in train], [text for text, _ in test]
    Y, Y_test = targets(train, concepts), targets(test, concepts)
    seen = np.bincount(Y.indices, minlength=len(concepts)) > 0
    tree = Taxonomy.flat(concepts)
    print(f"{corpus}: {len(train)} rows, {len(concepts)} concepts")

    def prepared(recipe: TextRecipe, *, named: bool = True) -> tuple[Problem, sp.csr_matrix]:
        begun, block = time.process_time(), None
        if named:
            features, X = NamedTextFeatures.fit(texts, recipe, names, concepts)
            X_test, block = features.transform(held_out), features.block()
        else:
            terms, X = TextFeatures.fit(texts, recipe)
            X_test = terms.transform(held_out)
        print(f"  features of {recipe.summary()}: {time.process_time() - begun:.0f} processor s", flush=True)
        return replace(Problem.check_sets(X, Y, tree), names=block), X_test

    if auto:
        for named in (False, True):
            problem, X_test = prepared(default_recipe("auto", len(concepts), language, named=named), named=named)
            model, took = trained(problem, "auto")
            shown("auto, names" if named else "auto", model, took, X_test, Y_test, seen)
            for trial in model.record["trials"]:
                found = trial["measures"]
                what = f"{trial['solver']} {trial['params']}"
                print(f"    {what}: nDCG@10 {found['ndcg']:.3f}, {found['seconds']:.0f} s", flush=True)
        return
    problem, X_test = prepared(TextRecipe(lemmas=(language,), char_ngrams=(3, 5) if characters else None))  # type: ignore[arg-type]
    for name, some in (("without names", problem.of_terms), ("subjects", problem)):
        model, took = trained(some)
        shown(name, model, took, X_test, Y_test, seen)


if __name__ == "__main__":
    for chosen in [each for each in sys.argv[1:] if not each.startswith("--")] or list(CORPORA):
        bench(chosen, characters="--characters" in sys.argv, auto="--auto" in sys.argv)
