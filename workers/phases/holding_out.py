"""Which rows of a dataset without a split of its own are held out: a row stays in its part in all later versions.

Rows are dealt out version by version, in the order in which they came, by the labels that they came with: rows that
are appended or deleted later, and labels that are corrected later, move none. So versions of a model that were trained
before and after an append can be compared on rows that neither has seen.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.datasets import versions as dataset_versions
from app.errors import Conflict
from app.hierarchies.version_labels import VersionLabels
from app.jobs.request_schemas import TrainingData
from app.store.cache import cached_corpus
from app.store.corpus import Corpus
from app.store.files import Files
from solvers.labels.taxonomy import Taxonomy
from solvers.selection.splits import stratified, stratified_sets
from workers.phases.splitting import closed_sets, known_labels
from workers.running.job_context import LeaseHeartbeat

TRAIN, TEST = 0, 1


class Arrival(NamedTuple):
    """Rows that came together, with the labels that they came with.

    Attributes
    ----------
    corpus : Corpus
        Of the first version that has them, or a later one with the same labels.
    """

    corpus: Corpus
    begin: int
    end: int


def arrivals(
    heartbeat: LeaseHeartbeat, store: Files, dataset_id: str, number: int, corpus: Corpus, labels: VersionLabels
) -> list[Arrival]:
    """All rows that a dataset had until a version whose ``corpus`` is at hand; raises Conflict where it is gone."""
    rows = heartbeat.read(lambda session: dataset_versions.until(session, dataset_id, number))
    if not rows:
        raise Conflict("the dataset was deleted")
    sizes = [0, *(row.n_rows for row in rows)]
    # a version with as many rows as the one before has other labels, and one with fewer has deleted some
    corrected = [place for place in range(1, len(rows)) if sizes[place + 1] <= sizes[place]]
    found = []
    for place, (begin, end) in enumerate(pairwise(sizes)):
        if begin >= end:
            continue
        if corrected and corrected[-1] > place:
            first, _ = labels.mapped(cached_corpus(store, rows[place].path))
        else:
            first = corpus
        found.append(Arrival(first, begin, end))
    return found


def held_out(
    given: Sequence[Arrival], request: TrainingData, tree: Taxonomy | None, known: VersionLabels
) -> NDArray[np.int8]:
    """0 of rows that train, 1 of rows that are held out; raises InvalidInput where sets of labels do not fit the tree.

    The rows are all that the dataset ever had; :meth:`Corpus.present` has those of a version.

    Parameters
    ----------
    given : sequence of Arrival
        In their order.
    request : TrainingData
        Its fraction and seed, and how rows with sets of labels are dealt out.
    known : VersionLabels
        What the hierarchy says of the labels.
    """
    sets = given[0].corpus.label_indptr is not None
    if sets and request.stratify == "labels":
        return _of_sets(given, request, tree, known)
    numbers: dict[str, int] = {}
    parts, trained = [], np.zeros(0, bool)
    for part, (corpus, begin, end) in enumerate(given):
        y = (
            np.zeros(end - begin, np.int32)
            if sets
            else _numbered(numbers, corpus.labels, np.asarray(corpus.y)[begin:end])
        )
        trained = np.pad(trained, (0, max(len(numbers), 1) - len(trained)))
        out = stratified(y, request.test_fraction, request.seed, part=part, trained=trained)
        trained[y[~out]] = True
        parts.append(out)
    return np.concatenate(parts).astype(np.int8)


def _numbered(numbers: dict[str, int], names: Sequence[str], labels: NDArray[Any]) -> NDArray[np.int64]:
    """Labels by numbers that only grow: those of rows that are there do not change with what comes later."""
    present, place = np.unique(labels, return_inverse=True)
    there = [names[label] for label in present.tolist()]
    for name in sorted(there):
        numbers.setdefault(name, len(numbers))
    return np.array([numbers[name] for name in there], np.int64)[place]


def _of_sets(
    given: Sequence[Arrival], request: TrainingData, tree: Taxonomy | None, known: VersionLabels
) -> NDArray[np.int8]:
    numbers: dict[str, int] = {}
    parts: list[NDArray[np.bool_]] = []
    dealt, last, sets = np.zeros((2, 1), np.int64), None, None
    for part, (corpus, begin, end) in enumerate(given):
        if sets is None or corpus is not last:
            # rows are dealt out alike whatever the request does with labels that the tree lacks, or that lack parents
            last, found = corpus, known_labels(corpus, tree, "keep")
            sets = closed_sets(found.corpus, found.tree, known, "add")
        rows = sets.labels[begin:end]
        labels = _numbered(numbers, sets.tree.names, rows.indices)
        # the rows themselves are counted last
        dealt = np.insert(dealt, [dealt.shape[1] - 1] * (len(numbers) + 1 - dealt.shape[1]), 0, axis=1)
        before = dealt[TEST], dealt[TRAIN]
        out = stratified_sets(rows.indptr, labels, request.test_fraction, request.seed, part=part, dealt=before)
        for to, chosen in ((TEST, out), (TRAIN, ~out)):
            of_rows = np.repeat(chosen, np.diff(rows.indptr))
            dealt[to, :-1] += np.bincount(labels[of_rows], minlength=len(numbers))
            dealt[to, -1] += int(chosen.sum())
        parts.append(out)
    return np.concatenate(parts).astype(np.int8)


def extended(split: NDArray[np.int8], grown: NDArray[np.int8]) -> NDArray[np.int8]:
    """A split of some version's rows on those of another: known rows as they were, later ones as dealt out since."""
    found = grown.copy()
    n = min(len(split), len(grown))
    found[:n] = split[:n]
    return found
