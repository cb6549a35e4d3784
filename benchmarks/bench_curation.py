"""What does the coding desk save: which rows to label next, which labels are wrong, and does a promised precision hold?

    python -m benchmarks.bench_curation [--parts next wrong precision] [--sets naics 20news debian-section]

*next*: labels that are needed until a model answers 95 % as many test rows right as one of all training rows, by the
rows that `suggest_rows` chooses, by small-text's breaking ties, by the rows nearest to the centres of k-means, and at
random. *wrong*: a share of the labels is flipped to another label at random; counted is how many of the most suspect
labels, as many as were flipped, were flipped, beside cleanlab's orders of the same out-of-fold probabilities.
*precision*: of held-out rows one half finds the threshold for a precision that is asked, and the other half has the
precision of the answers from there on.
"""

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks import sets
from benchmarks.results import write
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.metrics.confidence.reliability import Reliability, threshold_for
from solvers.registry import make
from solvers.selection import next_rows, wrong_labels
from solvers.selection.pooling import log_softmax
from solvers.selection.splits import stratified_folds

SETS = ["naics", "20news", "debian-section"]
PARTS = ["next", "wrong", "precision"]
METHOD, PARAMS = "crammer_singer", {"tol": 1e-2}
SEEDS, FIRST_SHARE, STEP_SHARE, ENOUGH = 3, 0.02, 0.02, 0.95
FLIPPED, FOLDS = (0.05, 0.10), 5
ASKED, SPLITS = (0.8, 0.9, 0.95), 50
# of the projections for k-means
COLUMNS = 256

Ints = NDArray[np.int64]
Labelled = tuple[sp.csr_matrix, NDArray[np.int32]]
# scores and features of the rows that have no label yet, how many to choose, a seed: their places
Choice = Callable[[NDArray[np.float32], sp.csr_matrix, int, int], Ints]


def trained(X: sp.csr_matrix, y: NDArray[np.integer]) -> Model:
    """A model of rows; classes without rows are not among its own."""
    present, places = np.unique(y, return_inverse=True)
    problem = Problem.check(X, places, [str(label) for label in present])
    solver = make(METHOD, PARAMS, seed=0)
    *_, last = solver.steps(problem)
    return solver.model(problem, last.state)


def suggested(scores: NDArray[np.float32], X: sp.csr_matrix, budget: int, seed: int) -> Ints:
    """As the job does by default."""
    margin = next_rows.margins(scores, scores.argmax(axis=1), probabilities=False)
    pool = next_rows.least_sure(margin, budget, "k_center", np.empty(0, np.int64))
    return pool[next_rows.spread(X[pool], margin[pool], budget, "k_center", seed)]


def breaking_ties(scores: NDArray[np.float32], X: sp.csr_matrix, budget: int, seed: int) -> Ints:
    """small-text's, by the probabilities that a softmax of the scores gives."""
    from small_text.query_strategies import BreakingTies

    class Scored:
        def predict_proba(self, _: Any) -> NDArray[np.float64]:
            return np.exp(log_softmax(scores).astype(np.float64))

    n = X.shape[0]
    found = BreakingTies().query(Scored(), list(range(n)), np.arange(n), np.empty(0, int), np.empty(0, int), n=budget)
    return np.asarray(found, np.int64)


def centres(scores: NDArray[np.float32], X: sp.csr_matrix, budget: int, seed: int) -> Ints:
    """The row that is nearest to each centre of k-means, on random projections of the rows."""
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.random_projection import SparseRandomProjection

    dense = np.asarray(SparseRandomProjection(COLUMNS, dense_output=True, random_state=seed).fit_transform(X))
    means = MiniBatchKMeans(budget, init="random", n_init=1, max_iter=20, random_state=seed).fit(dense)
    far = np.linalg.norm(dense - means.cluster_centers_[means.labels_], axis=1)
    order = np.lexsort((far, means.labels_))
    _, first = np.unique(means.labels_[order], return_index=True)
    rest = np.setdiff1d(np.arange(len(dense)), order[first])
    more = np.random.default_rng(seed).permutation(rest)
    return np.concatenate([order[first], more])[:budget]


def at_random(scores: NDArray[np.float32], X: sp.csr_matrix, budget: int, seed: int) -> Ints:
    return np.random.default_rng(seed).permutation(X.shape[0])[:budget]


CHOICES: dict[str, Choice] = {
    "suggest_rows": suggested,
    "breaking ties (small-text)": breaking_ties,
    "k-means": centres,
    "random": at_random,
}


def columns(model: Model) -> Ints:
    """The label of each of the model's classes."""
    return np.array([int(name) for name in model.classes])


def values(model: Model, X: sp.csr_matrix) -> NDArray[np.float32]:
    return np.asarray(model.ranking(X).values, np.float32)


def right(model: Model, test: Labelled) -> float:
    X, y = test
    return float((columns(model)[model.ranking(X).first()] == y).mean())


def needed(train: Labelled, test: Labelled, choose: Choice, enough: float, seed: int) -> int:
    """Labels until the share of right answers is ``enough``."""
    X, y = train
    n = len(y)
    has = np.zeros(n, bool)
    has[np.random.default_rng(seed).permutation(n)[: round(FIRST_SHARE * n)]] = True
    while True:
        rows = np.flatnonzero(has)
        model = trained(X[rows], y[rows])
        if has.all() or right(model, test) >= enough:
            return len(rows)
        rest = np.flatnonzero(~has)
        budget = min(round(STEP_SHARE * n), len(rest))
        has[rest[choose(values(model, X[rest]), X[rest], budget, seed + len(rows))]] = True


def rows_next(name: str) -> list[list[str]]:
    train, test = sets.load(name), sets.load_test(name)
    whole = right(trained(*train), test)
    counts: dict[str, list[int]] = {}
    for what, choose in CHOICES.items():
        counts[what] = [needed(train, test, choose, ENOUGH * whole, seed) for seed in range(SEEDS)]
        print(name, what, counts[what], flush=True)
    rows = []
    for what, found in counts.items():
        mean = statistics.mean(found)
        ratio = mean / statistics.mean(counts["random"])
        rows.append([name, what, f"{mean:.0f}", f"{min(found)} to {max(found)}", f"{len(train[1]):,}", f"{ratio:.2f}"])
    return rows


def flipped(name: str, share: float) -> list[list[str]]:
    from cleanlab.rank import get_label_quality_scores

    X, labels = sets.load(name)
    rng = np.random.default_rng(0)
    _, y = np.unique(labels, return_inverse=True)
    n, k = len(y), int(y.max()) + 1
    wrong = np.zeros(n, bool)
    wrong[rng.permutation(n)[: round(share * n)]] = True
    given = np.where(wrong, (y + rng.integers(1, k, n)) % k, y)
    fold = stratified_folds(given, FOLDS, 0)
    said, parts = np.full((n, k), -np.inf, np.float32), []
    for at in range(FOLDS):
        out = np.flatnonzero(fold == at)
        learnt = np.flatnonzero(fold != at)
        model = trained(X[learnt], given[learnt])
        of_class = columns(model)
        own = np.searchsorted(of_class, given[out])
        scale = wrong_labels.temperature(model, X[out], own)
        found = wrong_labels.answers(model, X[out], own, scale)
        parts.append((out, found._replace(labels=of_class[found.labels].astype(np.int32))))
        said[np.ix_(out, of_class)] = log_softmax(np.float32(scale) * values(model, X[out]))
    judged = fold >= 0
    n_wrong = int((wrong & judged).sum())
    probabilities = np.exp(said[judged])
    orders = {"wrong_labels": wrong_labels.quality(wrong_labels.joined(n, parts))[judged]}
    for method in ("self_confidence", "normalized_margin"):
        orders[f"cleanlab, {method}"] = get_label_quality_scores(given[judged], probabilities, method=method)
    rows = []
    for what, quality in orders.items():
        first = np.argsort(quality, kind="stable")[:n_wrong]
        rows.append([name, f"{share:.0%}", what, f"{n_wrong:,}", f"{wrong[judged][first].mean():.3f}"])
        print(rows[-1], flush=True)
    return rows


def promised(name: str) -> list[list[str]]:
    """Precisions that held-out rows promise, on other rows, over splits of the test rows."""
    model, (X, labels) = trained(*sets.load(name)), sets.load_test(name)
    of_class = columns(model)
    # a label that no training row has is the class after the last, which is never answered
    y = np.where(np.isin(labels, of_class), np.searchsorted(of_class, labels), len(of_class)).astype(np.int32)
    scores = values(model, X)
    misses: dict[float, list[bool]] = {asked: [] for asked in ASKED}
    realised: dict[float, list[float]] = {asked: [] for asked in ASKED}
    answered: dict[float, list[float]] = {asked: [] for asked in ASKED}
    for seed in range(SPLITS):
        half = np.random.default_rng(seed).random(len(y)) < 0.5
        known = half & (y < len(of_class))
        scale = wrong_labels.temperature(model, X[known], y[known])
        said = log_softmax(np.float32(scale) * scores)
        counted, other = (Reliability.from_log_probabilities(said[part], y[part]) for part in (half, ~half))
        for asked in ASKED:
            found = threshold_for(counted.curve, asked)
            if found is None:
                continue
            sure = other.confidence >= found.threshold
            precision = float(other.correct[sure].mean()) if sure.any() else 1.0
            misses[asked].append(precision < asked)
            realised[asked].append(precision)
            answered[asked].append(float(sure.mean()))
    rows = []
    for asked in ASKED:
        row = [name, f"{asked:.0%}", str(len(realised[asked]))]
        if realised[asked]:
            row += [f"{np.mean(realised[asked]):.3f}", f"{min(realised[asked]):.3f}"]
            row += [f"{np.mean(answered[asked]):.2f}", f"{np.mean(misses[asked]):.2f}"]
        rows.append(row + ["-"] * (7 - len(row)))
    return rows


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS)
    arguments.add_argument("--sets", nargs="*", default=SETS)
    given = arguments.parse_args()
    if "precision" in given.parts:
        header = ["set", "asked", "splits", "precision, mean", "least", "answered", "share of splits below"]
        note = f"{METHOD}; test rows in random halves, {SPLITS} times; of these the splits that have such a threshold."
        write("Does a promised precision hold?", header, [row for name in given.sets for row in promised(name)], note)
    if "wrong" in given.parts:
        header = ["set", "flipped", "order", "flipped labels judged", "precision at that number"]
        note = f"{METHOD}, {FOLDS} folds; a label is flipped to any other with the same probability."
        rows = [row for name in given.sets for share in FLIPPED for row in flipped(name, share)]
        write("Are wrong labels found?", header, rows, note)
    if "next" in given.parts:
        header = ["set", "rows chosen by", "labels, mean", "least to most", "training rows", "of random's"]
        note = (
            f"{METHOD}; labels until {ENOUGH:.0%} of the accuracy with all training rows. The first {FIRST_SHARE:.0%} "
            f"of the rows are random, then {STEP_SHARE:.0%} come at a time; {SEEDS} seeds."
        )
        write("How many labels are needed?", header, [row for name in given.sets for row in rows_next(name)], note)


if __name__ == "__main__":
    main()
