"""What do vectors of the user's own add to texts, and does the chosen weight pay?

    python -m benchmarks.bench_vectors [SET ...]

The vectors take the place of embeddings: 100 dimensions of a truncated singular value decomposition (scikit-learn) of
the TF-IDF of all training texts, few of which have labels here. LinearSVC of scikit-learn takes the same columns.
"""

import argparse

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from app.datasets.recipe_schemas import ColumnRecipe, TableColumns, TextRecipe
from app.features.tables import TableFeatures
from app.features.text import TextFeatures
from benchmarks.results import write
from benchmarks.sets import load_rows
from solvers.core.problem import Problem
from solvers.registry import make
from solvers.selection.block_weight import DOWN, UP, chosen_weight

SETS = ("20news", "naics")
N_LABELLED = (1000, 4000)
DIMENSIONS = 100
MACHINE = "crammer_singer"
WEIGHTS = (*reversed(DOWN), *UP)
HEADER = ("rows with labels", "features", "error, %", "LinearSVC, error, %")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("sets", nargs="*", default=SETS)
    for name in arguments.parse_args().sets:
        bench(name)


def bench(name: str) -> None:
    """Write the table of one set."""
    train, test = load_rows(name)
    assert train.texts is not None
    assert test.texts is not None
    # all training texts are there without labels
    every, all_terms = TextFeatures.fit(train.texts.tolist(), TextRecipe())
    reduction = TruncatedSVD(DIMENSIONS, random_state=0)
    vectors, vectors_test = reduction.fit_transform(all_terms), reduction.transform(every.transform(test.texts))
    order, rows = np.random.default_rng(0).permutation(len(train.y)), []
    for n in N_LABELLED:
        some = order[:n]
        rows += _of_rows(
            n, train.texts[some].tolist(), vectors[some], train.y[some], test.texts.tolist(), vectors_test, test.y
        )
    note = (
        f"`{MACHINE}` with C 1 on words; {len(test.y):,} rows for testing. Vectors of {DIMENSIONS} dimensions; as "
        "numbers, their elements are standardized one by one. LinearSVC has C 1, too."
    )
    write(f"Texts with vectors: {name}", HEADER, rows, note)


def _of_rows(
    n: int,
    texts: list[str],
    vectors: np.ndarray,
    y: np.ndarray,
    texts_test: list[str],
    test: np.ndarray,
    y_test: np.ndarray,
) -> list[list[str]]:
    columns = TableColumns(texts=("text",), numbers=tuple(f"v.{at}" for at in range(DIMENSIONS)))
    classes, index = np.unique(y, return_inverse=True)
    rows: list[list[str]] = []

    def made(recipe: ColumnRecipe) -> tuple[TableFeatures, sp.csr_matrix, sp.csr_matrix]:
        given = columns, list(columns.numbers), sp.csr_matrix(vectors), texts, recipe, TextRecipe()
        features, X = TableFeatures.fit(*given)
        return features, X, features.transform(sp.csr_matrix(test), list(columns.numbers), texts_test)

    def add(features: str, X: sp.csr_matrix, X_test: sp.csr_matrix) -> None:
        problem = Problem.check(X, index.astype(np.int32), tuple(map(str, classes)))
        machine = make(MACHINE, {})
        *_, last = machine.steps(problem)
        answers = classes[machine.model(problem, last.state).scores(X_test).argmax(axis=1)]
        peer = LinearSVC().fit(X, y).predict(X_test)
        errors = (f"{100 * float(np.mean(found != y_test)):.1f}" for found in (answers, peer))
        rows.append([f"{n:,}", features, *errors])
        print(f"  {rows[-1]}", flush=True)

    terms, X = TextFeatures.fit(texts, TextRecipe())
    add("text alone", X, terms.transform(texts_test))
    lengths = sp.csr_matrix(normalize(vectors)), sp.csr_matrix(normalize(test))
    add("vectors alone", *lengths)
    _, X, X_test = made(ColumnRecipe())
    add("vectors as numbers", X, X_test)
    for weight in WEIGHTS:
        _, X, X_test = made(ColumnRecipe(vector_weight=weight))
        add(f"vector_weight {weight:g}", X, X_test)
    features, X, _ = made(ColumnRecipe(vector_weight=1.0))
    problem = Problem.check(X, index.astype(np.int32), tuple(map(str, classes)))
    weight = chosen_weight(problem, features.vectors).weight
    _, X, X_test = made(ColumnRecipe(vector_weight=weight))
    add(f"vector_weight auto, {weight:g}", X, X_test)
    return rows


if __name__ == "__main__":
    main()
