"""Evaluations: added by the job that made them, and looked at, also by the rows that are most wrong."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session, defer

from app.datasets import rows as dataset_rows
from app.datasets import versions as dataset_versions
from app.errors import InvalidInput
from app.evaluations.schemas import (
    ConfusedLabel,
    ConfusedPair,
    ConfusedPairs,
    EvaluatedLabel,
    EvaluatedLabels,
    Evaluation,
    Measure,
    Mistake,
    Mistakes,
)
from app.hierarchies.nodes import names_of
from app.models import service as models
from app.schemas import Page
from app.store import tables
from app.store.corpus import Corpus, open_corpus
from app.store.db import db_now, reading
from app.store.files import files
from app.store.lookup import by_id, by_ref, check_range, newest, to_schema
from solvers.metrics.label_table import ratio

E, L, C = tables.Evaluation, tables.EvaluationLabel, tables.EvaluationConfusion
MAX_LABELS = 1000
# where the manifest of the measures by row has the rows that the version is most wrong about
MISTAKES = "mistakes"
# where it has the hash of the nodes that the rows are measured along
NODES = "nodes_sha256"
LabelOrder = Literal["f1", "-f1", "support", "-support", "label"]

_ORDERS: dict[LabelOrder, Any] = {
    "f1": L.f1.asc(),
    "-f1": L.f1.desc(),
    "support": L.support.asc(),
    "-support": L.support.desc(),
    "label": L.label.asc(),
}
MAX_MISTAKES = 100


@dataclass(frozen=True)
class Facts:
    """All that is known of an evaluation besides its measures and tables; the fields are the columns."""

    id: str
    version_id: str
    dataset_id: str | None
    dataset_sha256: str
    hierarchy_sha256: str | None
    part: str
    n_rows: int
    n_labels: int
    unknown_rows: int
    unknown_labels: int
    unknown_named: list[str]
    resamples: int
    confidence: float
    seed: int
    propensities: dict[str, Any] | None
    reliability: list[Any] | None
    path: str
    rows_sha256: str
    code_version: str
    microseconds_per_row: float | None
    measured: bool = False


def add(
    session: Session,
    facts: Facts,
    measures: Iterable[Measure],
    labels: Sequence[dict[str, Any]],
    confusions: Sequence[dict[str, Any]],
) -> None:
    """Add an evaluation to the caller's transaction.

    Parameters
    ----------
    labels, confusions : sequences of dict
        The columns of their tables, besides the evaluation.
    """
    session.add(E(created_at=db_now(), **asdict(facts)))
    session.flush()
    reported = [{"number": number, **measure.model_dump()} for number, measure in enumerate(measures)]
    for table, rows in ((tables.EvaluationMeasure, reported), (L, labels), (C, confusions)):
        if rows:
            session.execute(insert(table), [{"evaluation_id": facts.id, **row} for row in rows])


def get(session: Session, id: str) -> Evaluation:
    """An evaluation; raises NotFound."""
    with reading(session):
        return _show(session, [by_id(session, E, id)])[0]


def page(
    session: Session,
    page_size: int = 100,
    page_token: str | None = None,
    *,
    model: str | None = None,
    version: int | None = None,
    dataset: str | None = None,
) -> Page[Evaluation]:
    """Evaluations, newest first, of a model, one of its versions or a dataset, or all.

    Raises
    ------
    NotFound
        No such model, version or dataset.
    InvalidInput
        A version is named without its model.
    """
    if version is not None and model is None:
        raise InvalidInput("give the model, too: a version belongs to a model")
    query = select(E)
    with reading(session):
        if model is not None:
            row = by_ref(session, tables.Model, model)
            query = query.join(tables.ModelVersion, tables.ModelVersion.id == E.version_id)
            query = query.where(tables.ModelVersion.model_id == row.id)
            if version is not None:
                query = query.where(E.version_id == models.version_row(session, model, version).id)
        if dataset is not None:
            query = query.where(E.dataset_id == by_ref(session, tables.Dataset, dataset).id)
        rows, token = newest(session, E, query, page_size, page_token)
        return Page[Evaluation](items=_show(session, rows), next_page_token=token)


def labels(
    session: Session, id: str, offset: int = 0, limit: int = 100, level: int | None = None, order: LabelOrder = "f1"
) -> EvaluatedLabels:
    """The table of labels, of one level or all; raises NotFound and InvalidInput."""
    check_range(offset, limit, MAX_LABELS)
    where = [L.evaluation_id == id] + ([] if level is None else [L.level == level])
    with reading(session):
        owner = by_id(session, E, id)
        n_labels = session.scalars(select(func.count()).select_from(L).where(*where)).one()
        ordered = select(L).where(*where).order_by(_ORDERS[order], L.number)
        rows = session.scalars(ordered.offset(offset).limit(limit)).all()
        names = _names(session, owner, (row.label for row in rows))
        shown = [
            to_schema(
                EvaluatedLabel,
                row,
                precision=ratio(row.common, row.named),
                recall=ratio(row.common, row.support),
                names=names.get(row.label, {}),
            )
            for row in rows
        ]
        return EvaluatedLabels(labels=shown, n_labels=n_labels)


def confusions(session: Session, id: str, level: int | None = None, limit: int = 50) -> ConfusedPairs:
    """The most confused pairs, of one level or all, and what else is known of their labels; raises NotFound."""
    where = [C.evaluation_id == id] + ([] if level is None else [C.level == level])
    with reading(session):
        owner = by_id(session, E, id)
        rows = session.scalars(select(C).where(*where).order_by(C.level, C.place).limit(limit)).all()
        confused = list(dict.fromkeys(label for row in rows for label in (row.true, row.predicted)))
        counted = select(L).where(L.evaluation_id == id, L.label.in_(confused))
        counts = {row.label: row for row in session.scalars(counted)}
        names = _names(session, owner, confused)
    return ConfusedPairs(
        pairs=[to_schema(ConfusedPair, row) for row in rows],
        labels=[
            ConfusedLabel(
                label=label, support=counts[label].support, right=counts[label].common, names=names.get(label, {})
            )
            for label in confused
        ],
    )


def _show(session: Session, rows: Sequence[tables.Evaluation]) -> list[Evaluation]:
    M, V = tables.EvaluationMeasure, tables.ModelVersion
    measures: dict[str, list[Measure]] = defaultdict(list)
    query = select(M).where(M.evaluation_id.in_([row.id for row in rows])).order_by(M.evaluation_id, M.number)
    for found in session.scalars(query):
        measures[found.evaluation_id].append(to_schema(Measure, found))
    named = select(V.id, V.number, V.sha256, tables.Model.name).join(tables.Model, tables.Model.id == V.model_id)
    versions = {row.id: row for row in session.execute(named.where(V.id.in_({row.version_id for row in rows})))}
    return [
        to_schema(
            Evaluation,
            row,
            model=versions[row.version_id].name,
            version=versions[row.version_id].number,
            version_sha256=versions[row.version_id].sha256,
            dataset=row.dataset_id,
            measured_model=bool(row.measured),
            measures=measures[row.id],
        )
        for row in rows
    ]


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
    with reading(session):
        names = _names(session, row, (label for each in found for label in _labels(each)))
    return Mistakes(
        mistakes=found, n_mistakes=len(kept), dataset=dataset.name, dataset_version=before.number, names=names
    )


def _labels(mistake: Mistake) -> list[str]:
    return [*mistake.labels, *mistake.answered, *(mistake.corrected or [])]


def _names(session: Session, owner: tables.Evaluation, labels: Iterable[str]) -> dict[str, dict[str, str]]:
    """Names of labels by language, of those that have some in the label tree of the evaluated version."""
    version = session.get(tables.ModelVersion, owner.version_id)
    return {} if version is None else names_of(session, version.hierarchy_id, labels)


def _row(old: Corpus, new: Corpus, row: int, now: int) -> dict[str, Any]:
    """What the dataset has of a row, whose number in its newest version is ``now``; negative if it was deleted."""
    labels = old.names(row)
    known = {"labels": labels, "deleted": now < 0, **dataset_rows.content(old, row)}
    later = labels if now < 0 else new.names(now)
    return {**known, "corrected": later if set(later) != set(labels) else None}
