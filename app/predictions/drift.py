"""Drift: the answers that a version has given lately beside those to rows held out from its training."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from app.predictions.answer_counts import DAY_SECONDS, A, AnswerCounts
from app.predictions.answer_reference import AnswerReference
from app.predictions.inspection_schemas import Drift, LabelDrift, LabelShare, ScoreDrift
from app.predictions.model_cache import LoadedModel, ModelCache
from app.store import tables
from app.store.db import db_now, reading
from app.store.part_shift import total_variation

MOST_MOVED = 20
# a share of fewer answers varies by chance alone as widely as any drift
FEWEST_ANSWERS = 30
# added to the counts of both sides of a bin: an empty one would make the index infinite
_HALF = 0.5


class VersionDrift(NamedTuple):
    """Measures of one version for Prometheus."""

    workspace: str
    model: str
    version: int
    n_answers: int
    psi: float | None
    total_variation: float | None


def of_version(session: Session, counted: AnswerCounts, loaded: LoadedModel, days: int) -> Drift:
    """The drift of a version over so many days; what this process has counted counts, others add theirs in seconds."""
    counted.write()
    with reading(session):
        found = _counts(session, loaded.version.id, days)
    return drift(loaded, found, days)


def recent(sessions: sessionmaker[Session], cache: ModelCache, days: int = 7) -> list[VersionDrift]:
    """The drift of each version in memory that has a reference and has answered lately."""
    reported = []
    cache.counts.write()
    with sessions() as session, reading(session):
        for each in cache.loaded():
            if each.reference is None:
                continue
            found = drift(each, _counts(session, each.version.id, days), days)
            if not found.n_answers:
                continue
            workspace = session.scalar(
                select(tables.Model.workspace)
                .join(tables.ModelVersion, tables.ModelVersion.model_id == tables.Model.id)
                .where(tables.ModelVersion.id == each.version.id)
            )
            if workspace is not None:
                psi = None if found.scores is None else found.scores.psi
                variation = None if found.labels is None else found.labels.total_variation
                reported.append(VersionDrift(workspace, found.model, found.version, found.n_answers, psi, variation))
    return reported


def drift(loaded: LoadedModel, found: Mapping[tuple[str, int], int], days: int) -> Drift:
    """The comparison of what was counted, by kind and place, with the version's reference."""
    n_answers = sum(n for (kind, _), n in found.items() if kind == "label")
    reference = loaded.reference
    n_expected = 0 if reference is None else sum(reference.scores)
    too_few = _too_few(n_answers, n_expected, days)
    if too_few is not None:
        reference = None
    return Drift(
        model=loaded.version.model,
        version=loaded.version.version,
        days=days,
        n_answers=n_answers,
        n_unknown=found.get(("unknown", 0), 0),
        n_expected=n_expected,
        too_few=too_few,
        scores=None if reference is None else _scores(reference, found),
        labels=None if reference is None else _labels(reference, found, loaded),
    )


def _too_few(n_answers: int, n_expected: int, days: int) -> str | None:
    """Why nothing can be compared; None where it can be."""
    if not n_expected:
        return "This version kept no answers to held-out rows, so there is nothing to compare with."
    if n_answers >= FEWEST_ANSWERS:
        return None
    answers = "1 answer is" if n_answers == 1 else f"{n_answers} answers are"
    time = "today" if days == 1 else f"in the last {days} days"
    return f"{answers} too few to measure drift {time}: it needs at least {FEWEST_ANSWERS}."


def _scores(reference: AnswerReference, found: Mapping[tuple[str, int], int]) -> ScoreDrift | None:
    expected = np.array(reference.scores, np.float64)
    late = np.array([found.get(("score", place), 0) for place in range(len(expected))], np.float64)
    if late.sum() == 0:
        return None
    p, q = _shares(expected + _HALF), _shares(late + _HALF)
    return ScoreDrift(
        edges=list(reference.edges),
        expected=_shares(expected).tolist(),
        found=_shares(late).tolist(),
        psi=float(((q - p) * np.log(q / p)).sum()),
        # it is nearly chi-squared of so many degrees of freedom, scaled by this sum (Yurdakul 2018)
        psi_by_chance=(len(expected) - 1) * (1.0 / expected.sum() + 1.0 / late.sum()),
    )


def _labels(reference: AnswerReference, found: Mapping[tuple[str, int], int], loaded: LoadedModel) -> LabelDrift:
    classes, shown = loaded.model.classes, loaded.labels.shown
    late = {classes[place]: n for (kind, place), n in found.items() if kind == "label" and place < len(classes)}
    names = sorted(reference.labels.keys() | late.keys())
    expected = np.array([reference.labels.get(name, 0) for name in names], np.float64)
    answered = np.array([late.get(name, 0) for name in names], np.float64)
    p, q = _shares(expected), _shares(answered)
    variation, by_chance = total_variation(expected, answered)
    order = np.argsort(-np.abs(q - p), kind="stable")[:MOST_MOVED].tolist()
    moved = [
        LabelShare(
            label=names[at], names=shown.get(names[at], {}).get("names"), expected=float(p[at]), found=float(q[at])
        )
        for at in order
    ]
    return LabelDrift(total_variation=variation, total_variation_by_chance=by_chance, moved=moved)


def _shares(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(counts / counts.sum())


def _counts(session: Session, version_id: str, days: int) -> dict[tuple[str, int], int]:
    first = int((session.scalar(select(db_now())) or 0.0) // DAY_SECONDS) - days + 1
    query = (
        select(A.kind, A.place, func.sum(A.n).label("total"))
        .where(A.version_id == version_id, A.day >= first)
        .group_by(A.kind, A.place)
    )
    return {(row.kind, row.place): int(row.total) for row in session.execute(query)}
