"""The rows that a version is most wrong about, as an evaluation keeps them, and what the dataset says of them now."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, defer

from app.datasets import rows as dataset_rows
from app.datasets import versions as dataset_versions
from app.evaluations.schemas import Mistake, Mistakes
from app.evaluations.service import MISTAKES
from app.store import tables
from app.store.corpus import Corpus, open_corpus
from app.store.db import reading
from app.store.files import files
from app.store.lookup import by_id, check_range

MAX_MISTAKES = 100


def mistakes(session: Session, id: str, offset: int = 0, limit: int = 20) -> Mistakes:
    """Some of an evaluation's mistakes, the most wrong first; none of evaluations that earlier versions made.

    Raises
    ------
    NotFound
        No such evaluation.
    InvalidInput
        ``offset`` is negative, or ``limit`` not from 1 to 100.
    """
    check_range(offset, limit, MAX_MISTAKES)
    V = tables.DatasetVersion
    with reading(session):
        row = by_id(session, tables.Evaluation, id)
        dataset = session.get(tables.Dataset, row.dataset_id, options=[defer(tables.Dataset.statistics)])
        measured = select(V).where(V.dataset_id == row.dataset_id, V.sha256 == row.dataset_sha256)
        before = session.scalars(measured.options(defer(V.statistics))).first()
        after = None if dataset is None else dataset_versions.find(session, dataset.id, dataset.version)
    kept = files().manifest(row.path).get(MISTAKES, [])
    if dataset is None or before is None or after is None:
        return Mistakes(mistakes=[], n_mistakes=len(kept), dataset=None)
    old, new = (open_corpus(files(), version.path) for version in (before, after))
    now = old.places_in(new)
    shown = kept[offset : offset + limit]
    found = [Mistake(**each, **_row(old, new, each["row"], int(now[each["row"]]))) for each in shown]
    return Mistakes(mistakes=found, n_mistakes=len(kept), dataset=dataset.name, dataset_version=before.number)


def _row(old: Corpus, new: Corpus, row: int, now: int) -> dict[str, Any]:
    """What the dataset has of a row, whose number in its newest version is ``now``; negative if it was deleted."""
    labels = old.names(row)
    known = {"labels": labels, "deleted": now < 0, **dataset_rows.content(old, row)}
    later = labels if now < 0 else new.names(now)
    return {**known, "corrected": later if set(later) != set(labels) else None}
