"""Comparisons of two versions of models on the rows that both were evaluated on."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session, aliased

from app.concurrency import comparing
from app.datasets import versions as dataset_versions
from app.errors import NotFound, Unavailable
from app.evaluations.schemas import Compared, ComparedLabel, Comparison, McNemar, PairedMeasure, Part
from app.evaluations.service import NODES
from app.models import service as models
from app.store import tables
from app.store.db import reading
from app.store.files import files
from app.store.lookup import by_id, by_ref
from solvers.metrics.comparison import mcnemar, paired_bootstrap

RESAMPLES, MOST_LABELS = 10_000, 20
# with other nodes in the tree these differ where no answer does
_OF_NODES = ("mrr", "hierarchical_mrr", "h_sibling", "h_subtree")


@dataclass(frozen=True)
class Side:
    """A version that is compared: a number or an alias of a model."""

    model: str
    version: str


@dataclass(frozen=True, eq=False)
class _Rows:
    """Measures by row of an evaluation, the numbers of the rows, and the hash of the nodes if that is known."""

    numbers: NDArray[np.int64]
    measures: dict[str, NDArray[np.float32]]
    nodes: str | None


def compare(
    session: Session,
    a: Side,
    b: Side,
    dataset: str | None = None,
    part: Part | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """McNemar's test and the paired bootstrap of all measures, from the newest evaluations of both on the same rows.

    The cost hardly depends on the number of rows, which is why no job is needed.

    Raises
    ------
    NotFound
        No such model, version or dataset, or there are no evaluations of both on rows of the same dataset.
    Unavailable
        The measures by row cannot be read.
    TooMany
        Others are compared.
    """
    with comparing():
        return _compare(session, a, b, dataset, part, confidence, seed)


def _compare(
    session: Session, a: Side, b: Side, dataset: str | None, part: Part | None, confidence: float, seed: int
) -> Comparison:
    with reading(session):
        first, second = (version_of(session, side) for side in (a, b))
        dataset_id = None if dataset is None else by_ref(session, tables.Dataset, dataset).id
        named = select(tables.Model.id, tables.Model.name).where(tables.Model.id.in_([first.model_id, second.model_id]))
        names = {row.id: row.name for row in session.execute(named)}
        pair = _newest_pair(session, (first.id, second.id), dataset_id, part)
    shown = [
        Compared(
            evaluation=row.id,
            model=names[version.model_id],
            version=version.number,
            version_sha256=version.sha256,
            solver=version.solver,
            params=version.params,
            request=version.request,
            size_bytes=version.size_bytes,
            microseconds_per_row=row.microseconds_per_row,
        )
        for row, version in zip(pair, (first, second), strict=True)
    ]
    left, right = (_read(row) for row in pair)
    numbers, of_left, of_right = _common_rows(left, right)
    same_rows = len(numbers) == len(left.numbers) == len(right.numbers)
    right_of = [rows.measures["error"][at] == 0 for rows, at in ((left, of_left), (right, of_right))]
    common = [name for name in left.measures if name in right.measures]
    other_nodes = None not in (left.nodes, right.nodes) and left.nodes != right.nodes
    left_out = [name for name in common if other_nodes and name in _OF_NODES]
    reported = [
        _paired(name, left.measures[name][of_left], right.measures[name][of_right], confidence, seed)
        for name in common
        if name not in left_out
    ]
    return Comparison(
        a=shown[0],
        b=shown[1],
        dataset=pair[0].dataset_id,
        dataset_sha256=pair[0].dataset_sha256,
        part=pair[0].part,
        n_rows=len(numbers),
        mcnemar=McNemar.model_validate(mcnemar(right_of[0], right_of[1])._asdict()),
        measures=[measure for measure in reported if measure is not None],
        left_out=left_out,
        labels=_labels(session, pair[0].id, pair[1].id) if same_rows else [],
        resamples=RESAMPLES,
        confidence=confidence,
        seed=seed,
    )


def right_answers(session: Session, a: str, b: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of the rows that both evaluations have measured each version has right.

    Parameters
    ----------
    a, b : str
        Ids of evaluations of the same rows of a dataset.

    Returns
    -------
    right_a, right_b : bool arrays, shape (n_rows,)

    Raises
    ------
    NotFound
        No such evaluation, or they have no row in common.
    Unavailable
        The measures by row cannot be read.
    """
    with reading(session):
        rows = [by_id(session, tables.Evaluation, id) for id in (a, b)]
    left, right = (_read(row) for row in rows)
    _, of_left, of_right = _common_rows(left, right)
    return left.measures["error"][of_left] == 0, right.measures["error"][of_right] == 0


def _labels(session: Session, a: str, b: str) -> list[ComparedLabel]:
    """The labels of two evaluations of the same rows whose F1 differs the most."""
    first, second = aliased(tables.EvaluationLabel), aliased(tables.EvaluationLabel)
    same = and_(second.label == first.label, second.level == first.level)
    difference = first.f1 - second.f1
    query = (
        select(first.label, first.level, first.support, first.f1, second.f1)
        .join(second, same)
        .where(first.evaluation_id == a, second.evaluation_id == b, first.support > 0, difference != 0)
        .order_by(func.abs(difference).desc(), first.support.desc(), first.number)
        .limit(MOST_LABELS)
    )
    with reading(session):
        rows = session.execute(query).all()
    return [
        ComparedLabel(label=label, level=level, support=support, f1_a=f1_a, f1_b=f1_b, difference=f1_a - f1_b)
        for label, level, support, f1_a, f1_b in rows
    ]


def version_of(session: Session, side: Side) -> tables.ModelVersion:
    """The row of a side, in the caller's transaction; raises NotFound."""
    if side.version.isascii() and side.version.isdigit() and len(side.version) < 10:
        return models.version_row(session, side.model, int(side.version))
    return models.version_row(session, side.model, alias=side.version)


def _newest_pair(
    session: Session, versions: tuple[str, str], dataset_id: str | None, part: Part | None
) -> tuple[tables.Evaluation, tables.Evaluation]:
    a, b = versions
    E = tables.Evaluation
    query = select(E).where(E.version_id.in_([a, b])).order_by(E.id.desc())
    if dataset_id is not None:
        query = query.where(E.dataset_id == dataset_id)
    if part is not None:
        query = query.where(E.part == part)
    rows = session.scalars(query).all()
    ways = dataset_versions.options(session, [row.dataset_id for row in rows if row.dataset_id is not None])
    newest: dict[tuple[str | None, ...], tables.Evaluation] = {}
    for row in rows:
        newest.setdefault((row.version_id, *_of(row, ways)), row)
    for row in rows:
        other = newest.get((b if row.version_id == a else a, *_of(row, ways)))
        if other is not None:
            return (row, other) if row.version_id == a else (other, row)
    raise NotFound(
        "the two versions were not evaluated on the same part of one dataset, along the same label tree or none; "
        "POST /models/{model}/compare queues the evaluations that are missing, and polymargin compare waits for them"
    )


def _of(row: tables.Evaluation, ways: Mapping[str, Mapping[str, Any]]) -> tuple[str | None, ...]:
    """What two evaluations must have in common to be compared: one file may have been read in two ways."""
    read = json.dumps(ways[row.dataset_id], sort_keys=True) if row.dataset_id is not None else None
    return row.dataset_sha256, read, row.part, row.hierarchy_sha256


def _read(row: tables.Evaluation) -> _Rows:
    try:
        arrays, manifest = files().load_arrays(row.path, sha256=row.rows_sha256)
    except (OSError, ValueError) as error:
        raise Unavailable(f"The measures by row of evaluation {row.id} cannot be read.") from error
    numbers = np.asarray(arrays.pop("rows"))
    return _Rows(numbers, {name: np.asarray(array) for name, array in arrays.items()}, manifest.get(NODES))


def _common_rows(a: _Rows, b: _Rows) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.intp]]:
    """The rows that both have, and their places in each; raises NotFound where there is none."""
    numbers, of_a, of_b = np.intersect1d(a.numbers, b.numbers, assume_unique=True, return_indices=True)
    if len(numbers) == 0:
        raise NotFound("the two versions were evaluated on different rows of that part; evaluate both on all rows")
    return numbers, of_a, of_b


def _paired(
    name: str, a: NDArray[np.float32], b: NDArray[np.float32], confidence: float, seed: int
) -> PairedMeasure | None:
    """The paired bootstrap over the rows that count for both; None where there is none."""
    counted = ~(np.isnan(a) | np.isnan(b))
    if not counted.any():
        return None
    x, y = a[counted].astype(np.float64), b[counted].astype(np.float64)
    found = paired_bootstrap(x, y, resamples=RESAMPLES, confidence=confidence, seed=seed)
    return PairedMeasure(name=name, n_rows=int(counted.sum()), a=float(x.mean()), b=float(y.mean()), **found._asdict())
