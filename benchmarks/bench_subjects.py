"""Concepts of a vocabulary: `subjects` beside what its learnt scores find alone, and `auto` beside its own machines.

    python -m benchmarks.bench_subjects [--auto | --characters | --editions | --large | --annif PYTHON] [CORPUS ...]

Needs the corpora beside the repository, in ``../shared/data``. F1@5 is the mean over rows of the F1 of the five best
concepts, as in Annif's `eval`; `unseen` is the share of true concepts without training rows among the first ten. With
`--auto`, `auto` is trained with its own recipe, and then the best setting of each of its machines by itself, on the
same rows. With `--characters` the terms of the other tables are lemmas and runs of three to five characters.
With `--editions` a fifth of the concepts, drawn at random, appear in a second edition of the vocabulary, and no
training row has them; a model of the first edition adopts the second, beside a training with it.
With `--large` a made-up thesaurus of 300,000 concepts with a million names learns from 100,000 texts.
With `--annif`, the interpreter of an environment that has Annif with nn, omikuji and stwfsa, and simplemma, its
backends are measured on the same rows.
Each training has a process of its own, whose peak of memory includes the features of all rows.
"""

import argparse
import lzma
import multiprocessing
import re
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from app.datasets.recipe_schemas import TITLE_AND_BODY, TextRecipe, default_recipe
from app.features.concept_names import ConceptName
from app.features.excerpts import split_text
from app.features.named_text import NamedTextFeatures
from app.features.text import TextFeatures
from app.formats.hierarchies.parsing import parse_hierarchy
from app.formats.hierarchies.source import Bounds
from app.formats.plain_file import plain_file
from app.hierarchies.schemas import HierarchyOptions
from benchmarks import large_vocabulary
from benchmarks.results import write
from benchmarks.subjects_peers import peers
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.labels.taxonomy import Taxonomy
from solvers.registry import make
from solvers.selection.row_losses import some_rows
from workers.phases.field_weights import chosen_fields

DATA = Path(__file__).parents[2] / "shared" / "data"
N_LARGE, N_TEXTS, N_HELD_OUT = 300_000, 100_000, 1_000
HEADER = ["machine", "F1@5", "nDCG@10", "unseen", "training, processor s", "peak MB", "ms a text", "model MB"]
Rows = list[tuple[str, list[str]]]
# corpus, its vocabulary, language
CORPORA = {
    "kirjastonhoitaja": ("yso-places-fi.tsv.xz", "fi"),
    "makupalat": ("ykl-skos.ttl.xz", "fi"),
    "tib-core.en": (None, "en"),
    "tib-core.orig": (None, "de"),
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


class Answered(NamedTuple):
    """What one row's answer is worth: two measures, concepts without training rows that are found, and all of them."""

    f1: float
    ndcg: float
    hit: int
    unseen: int


def answered(scores: Iterator[np.ndarray], Y: sp.csr_matrix, seen: np.ndarray) -> Iterator[Answered]:
    """Of each row that has concepts."""
    gains = 1.0 / np.log2(np.arange(2, 12))
    for i, row in enumerate(scores):
        true = Y.indices[Y.indptr[i] : Y.indptr[i + 1]]
        if not len(true):
            continue
        first = np.argsort(-row, kind="stable")[:10]
        right = np.isin(first, true)
        f1 = 2.0 * right[:5].sum() / (5 + len(true))
        ndcg = (gains * right).sum() / gains[: len(true)].sum()
        yield Answered(f1, ndcg, int((right & ~seen[first]).sum()), int((~seen[true]).sum()))


def measured(scores: Iterator[np.ndarray], Y: sp.csr_matrix, seen: np.ndarray) -> tuple[float, float, float]:
    f1, ndcg, hit, unseen = (np.array(each) for each in zip(*answered(scores, Y, seen), strict=True))
    return float(f1.mean()), float(ndcg.mean()), hit.sum() / max(1, unseen.sum())


def trained(problem: Problem, method: str, params: dict[str, Any]) -> Model:
    solver = make(method, params, seed=0)
    for step in solver.steps(problem):
        last = step
    return solver.model(problem, last.state)


def by_rows(model: Model, X: sp.csr_matrix) -> Iterator[np.ndarray]:
    for begin in range(0, X.shape[0], 64):
        yield from np.asarray(model.ranking(X[begin : begin + 64]).values)


class Machine(NamedTuple):
    """What is trained, and what it is called in the table."""

    name: str
    method: str
    params: dict[str, Any]


class Held(NamedTuple):
    """Rows that no machine is trained on and their concepts; those of training rows, and which they are."""

    X: sp.csr_matrix
    Y: sp.csr_matrix
    Y_train: sp.csr_matrix
    seen: np.ndarray


def over_seen(problem: Problem, held: Held) -> Problem:
    """Only the concepts that rows have, and no names."""
    tree = Taxonomy.flat([f"{at}" for at in np.flatnonzero(held.seen)])
    return Problem.check_sets(problem.of_terms.X, sp.csr_matrix(held.Y_train[:, held.seen]), tree)


def of_all(scores: Iterator[np.ndarray], seen: np.ndarray) -> Iterator[np.ndarray]:
    for row in scores:
        whole = np.full(len(seen), -np.inf)
        whole[seen] = row
        yield whole


def row_of(machine: Machine, problem: Problem, held: Held) -> tuple[list[str], list[dict[str, Any]]]:
    """Train and measure: a row of the table, and the trials of `auto`.

    Machines other than `subjects` and `auto` cannot answer with a concept that no row has, and are trained over others.
    """
    begun, all_concepts = time.process_time(), machine.method in ("auto", "subjects")
    model = trained(problem if all_concepts else over_seen(problem, held), machine.method, machine.params)
    took, begun = time.process_time() - begun, time.process_time()
    scores = by_rows(model, sp.csr_matrix(held.X[:, : model.n_features]))
    f1, ndcg, unseen = measured(scores if all_concepts else of_all(scores, held.seen), held.Y, held.seen)
    each = 1000 * (time.process_time() - begun) / held.X.shape[0]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = [f"{f1:.3f}", f"{ndcg:.3f}", f"{unseen:.3f}", f"{took:.0f}", f"{peak:.0f}", f"{each:.1f}"]
    return [machine.name, *figures, f"{model.nbytes / 1e6:.0f}"], list(model.record.get("trials", []))


def in_a_process(machine: Machine, problem: Problem, held: Held) -> tuple[list[str], list[dict[str, Any]]]:
    """``row_of`` in a forked process, so that its peak of memory is its own."""
    context = multiprocessing.get_context("fork")
    answer, asked = context.Pipe(duplex=False)
    process = context.Process(target=lambda: asked.send(row_of(machine, problem, held)))
    process.start()
    asked.close()
    try:
        row, trials = answer.recv()
    except EOFError:
        raise SystemExit(f"{machine.name}: the process has ended without an answer") from None
    finally:
        process.join()
    print(f"  {row}", flush=True)
    return row, trials


class Edition(NamedTuple):
    """Concepts of one edition of a vocabulary, their names by their numbers in it, and the rows that have them."""

    concepts: list[str]
    names: list[ConceptName]
    Y: sp.csr_matrix

    def fit(self, texts: list[str], recipe: TextRecipe) -> tuple[NamedTextFeatures, Problem]:
        features, X = NamedTextFeatures.fit(texts, recipe, self.names, self.concepts)
        problem = Problem.check_sets(X, self.Y, Taxonomy.flat(self.concepts))
        return features, replace(problem, names=features.block())


def bench_editions(corpus: str) -> None:
    file, language = CORPORA[corpus]
    train, test = parts(corpus)
    labels = [label for _, some in (*train, *test) for label in some]
    concepts, names = vocabulary(file, labels, language)
    appears = np.random.default_rng(0).random(len(concepts)) < 0.2
    old, place = np.flatnonzero(~appears), np.full(len(concepts), -1)
    place[old] = np.arange(len(old))
    texts, held_out = [text for text, _ in train], [text for text, _ in test]
    # new concepts have no rows yet
    Y = sp.csr_matrix(targets(train, concepts)[:, old])
    wide = sp.csr_matrix((Y.data, old[Y.indices], Y.indptr), shape=(len(train), len(concepts)))
    second = Edition(concepts, names, wide)
    kept = [ConceptName(int(place[each.concept]), each.name) for each in names if not appears[each.concept]]
    first = Edition([concepts[at] for at in old], kept, Y)
    recipe = TextRecipe(lemmas=(language,))
    Y_test, seen = targets(test, concepts), np.bincount(wide.indices, minlength=len(concepts)) > 0
    rows = []

    def add(name: str, model: Model, features: NamedTextFeatures, began: float, columns: np.ndarray) -> None:
        took = time.process_time() - began
        X, scores = features.transform(held_out), (np.full(len(concepts), -np.inf) for _ in held_out)
        for_all = (_put(whole, columns, row) for whole, row in zip(scores, by_rows(model, X), strict=True))
        f1, ndcg, found = measured(for_all, Y_test, seen)
        appeared = measured(
            (_put(np.full(len(concepts), -np.inf), columns, row) for row in by_rows(model, X)), Y_test, ~appears
        )
        rows.append([name, f"{f1:.3f}", f"{ndcg:.3f}", f"{found:.3f}", f"{appeared[2]:.3f}", f"{took:.1f}"])
        print(f"  {rows[-1]}", flush=True)

    began = time.process_time()
    features, problem = first.fit(texts, recipe)
    model = trained(problem, "subjects", {})
    add("the first edition", model, features, began, old)
    began = time.process_time()
    adopted = features.with_names(names, concepts)
    block = adopted.block()
    model = model.with_concepts(Taxonomy.flat(concepts), block, old, (wide, block.named(adopted.matches(texts))))
    add("the first, which adopts the second", model, adopted, began, np.arange(len(concepts)))
    began = time.process_time()
    features, problem = second.fit(texts, recipe)
    add("the second edition", trained(problem, "subjects", {}), features, began, np.arange(len(concepts)))
    note = (
        f"{len(train):,} texts to train on, {len(test):,} held out; {len(concepts):,} concepts, of which "
        f"{int(appears.sum()):,} appear in the second edition. unseen: the share of concepts without training rows "
        "that is among the first ten; appeared: of those that the first edition lacks."
    )
    header = ["trained on", "F1@5", "nDCG@10", "unseen", "appeared", "processor s"]
    write(f"Adopting an edition of a vocabulary: {corpus}", header, rows, note)


def _put(whole: np.ndarray, columns: np.ndarray, row: np.ndarray) -> np.ndarray:
    whole[columns] = row
    return whole


def bench_large() -> None:
    made = large_vocabulary.make(N_LARGE, N_TEXTS + N_HELD_OUT)
    begun = time.process_time()
    named, X = NamedTextFeatures.fit(made.texts[:N_TEXTS], TextRecipe(), made.names, made.concepts)
    features, Y = time.process_time() - begun, sp.csr_matrix(made.Y[:N_TEXTS])
    seen = np.bincount(Y.indices, minlength=N_LARGE) > 0
    held = Held(named.transform(made.texts[N_TEXTS:]), sp.csr_matrix(made.Y[N_TEXTS:]), Y, seen)
    problem = replace(Problem.check_sets(X, Y, Taxonomy.flat(made.concepts)), names=named.block())
    note = (
        f"{N_TEXTS:,} texts to train on, {N_HELD_OUT:,} held out, {N_LARGE:,} concepts with {len(made.names):,} names, "
        f"of which {int(seen.sum()):,} have rows; lexicon and words made in {features:.0f} processor seconds. "
        "Texts are made up: their measures say that concepts are found, not how well."
    )
    row = in_a_process(Machine("subjects", "subjects", {}), problem, held)[0]
    write("Subjects of a large vocabulary, made up", HEADER, [row], note)


def bench_annif(corpus: str, python: str) -> None:
    file, language = CORPORA[corpus]
    train, test = parts(corpus)
    concepts, names = vocabulary(file, [label for _, some in (*train, *test) for label in some], language)
    Y, Y_test = targets(train, concepts), targets(test, concepts)
    seen, rows = np.bincount(Y.indices, minlength=len(concepts)) > 0, []
    for some in peers(python, train, test, concepts, names, language):
        found = [(measured(iter(peer.scores), Y_test, seen), peer) for peer in some]
        (f1, ndcg, unseen), peer = max(found, key=lambda each: each[0][0])
        values = [f"{value:.3f}" for value in (f1, ndcg, unseen)]
        rows.append([peer.name, *values, f"{peer.seconds:.0f}", f"{peer.milliseconds:.1f}"])
        print(f"  {rows[-1]}", flush=True)
    note = (
        f"{len(train):,} texts to train on, {len(test):,} held out, {len(concepts):,} concepts; each program on the "
        "same rows, measured by the same code. Annif's defaults but for the analyzer; of three proportions of an "
        "ensemble the one that is best on the rows held out. unseen: the share of concepts without training rows that "
        "is among the first ten. Annif starts for each command, which is counted."
    )
    header = ["program", "F1@5", "nDCG@10", "unseen", "training, processor s", "ms a text"]
    write(f"Annif on subjects: {corpus}", header, rows, note)


def with_titles(texts: Sequence[str], Y: sp.csr_matrix, concepts: Sequence[str], recipe: TextRecipe) -> TextRecipe:
    """The recipe with weights of title and body, as `auto` and `subjects` choose them by default."""
    at = some_rows(len(texts))
    some = [texts[row] for row in at]
    if not any(split_text(text, TITLE_AND_BODY)[0] for text in some):
        return recipe
    tree = Taxonomy.flat(concepts)
    return chosen_fields((), some, some, lambda X: Problem.check_sets(X, Y[at], tree), recipe).recipe


def bench(corpus: str, *, auto: bool, characters: bool) -> None:
    file, language = CORPORA[corpus]
    train, test = parts(corpus)
    labels = [label for _, some in (*train, *test) for label in some]
    concepts, names = vocabulary(file, labels, language)
    recipe = TextRecipe(lemmas=(language,), char_ngrams=(3, 5) if characters else None)
    if auto:
        recipe = default_recipe("auto", len(concepts), (language,), named=bool(names))
    begun, block = time.process_time(), None
    texts, held_out = [text for text, _ in train], [text for text, _ in test]
    Y = targets(train, concepts)
    recipe = with_titles(texts, Y, concepts, recipe)
    if names:
        named, X = NamedTextFeatures.fit(texts, recipe, names, concepts)
        X_test, block = named.transform(held_out), named.block()
    else:
        terms, X = TextFeatures.fit(texts, recipe)
        X_test = terms.transform(held_out)
    seen = np.bincount(Y.indices, minlength=len(concepts)) > 0
    held = Held(X_test, targets(test, concepts), Y, seen)
    problem = replace(Problem.check_sets(X, Y, Taxonomy.flat(concepts)), names=block)
    note = (
        f"{len(train):,} texts to train on, {len(test):,} held out, {len(concepts):,} concepts, of which "
        f"{int(seen.sum()):,} have rows; recipe {recipe.summary()}, made in {time.process_time() - begun:.0f} "
        "processor seconds. unseen: the share of concepts without training rows that is among the first ten."
    )
    print(f"{corpus}: {note}", flush=True)
    rows = []
    if auto:
        row, trials = in_a_process(Machine("auto", "auto", {}), problem, held)
        rows.append(row)
        best = {trial["solver"]: trial for trial in reversed(trials)}  # trials come with the best first
        for trial in reversed(best.values()):
            machine = Machine(f"{trial['solver']} {trial['params']}", trial["solver"], trial["params"])
            rows.append(in_a_process(machine, problem, held)[0])
    else:
        rows.append(in_a_process(Machine("subjects", "subjects", {}), problem, held)[0])
        rows.append(in_a_process(Machine("subjects, without names", "subjects", {}), problem.of_terms, held)[0])
    title = f"auto and its own machines on subjects: {corpus}" if auto else f"Subjects of a vocabulary: {corpus}"
    title += ", with character n-grams" if characters else ""
    write(title, HEADER, rows, note)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("corpora", nargs="*", choices=[[], *CORPORA])
    kinds = arguments.add_mutually_exclusive_group()
    kinds.add_argument("--auto", action="store_true")
    kinds.add_argument("--characters", action="store_true")
    kinds.add_argument("--editions", action="store_true")
    kinds.add_argument("--large", action="store_true")
    kinds.add_argument("--annif", metavar="PYTHON")
    given = arguments.parse_args()
    if given.large:
        bench_large()
        raise SystemExit
    for chosen in given.corpora or [name for name, (file, _) in CORPORA.items() if file or not given.editions]:
        if given.editions:
            bench_editions(chosen)
            continue
        if given.annif:
            bench_annif(chosen, given.annif)
            continue
        bench(chosen, auto=given.auto, characters=given.characters)
