"""The versions of a dataset: one from its import, and one from each append."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, defer

from app.datasets.schemas import DatasetVersion, ImportOptions
from app.errors import Conflict, InvalidInput, Item
from app.store import tables
from app.store.db import reading
from app.store.lookup import by_ref, to_schema

V = tables.DatasetVersion


def find(session: Session, dataset_id: str | None, number: int | None) -> tables.DatasetVersion | None:
    """Return a version of a dataset or None; without a number the first version, as older requests have none."""
    return session.scalars(select(V).where(V.dataset_id == dataset_id, V.number == (number or 1))).one_or_none()


def stored(session: Session, dataset_id: str | None, number: int | None) -> tables.DatasetVersion:
    """As :func:`find`, for a job; raises Conflict where the dataset was deleted."""
    found = find(session, dataset_id, number)
    if found is None:
        raise Conflict("the dataset was deleted")
    return found


def resolve_version(
    session: Session, dataset: tables.Dataset, number: int | None, pointer: str = "/dataset_version"
) -> tables.DatasetVersion:
    """Return the version that a new request asks for, by default the newest, of a ready dataset.

    Raises
    ------
    Conflict
        The dataset is not ready.
    InvalidInput
        The version does not exist.
    """
    require_ready(dataset)
    found = find(session, dataset.id, number or dataset.version)
    if found is None:
        detail = f"the dataset has the versions 1 to {dataset.version}"
        raise InvalidInput("the dataset has no such version", [Item(detail, pointer)])
    return found


def until(session: Session, dataset_id: str | None, number: int) -> Sequence[tables.DatasetVersion]:
    """The versions of a dataset up to a number, oldest first, without statistics."""
    query = select(V).where(V.dataset_id == dataset_id, V.number <= number).options(defer(V.statistics))
    with reading(session):
        return session.scalars(query.order_by(V.number)).all()


def require_ready(dataset: tables.Dataset) -> None:
    """Raise Conflict unless the dataset was imported."""
    if dataset.state == "failed":
        raise Conflict(
            "the dataset's import failed; see its errors, fix the file and upload it again under the same name"
        )
    if dataset.state != "ready":
        raise Conflict(f"the dataset is {dataset.state}; wait until it is ready")


def options(session: Session, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The format and import options of each dataset, by id."""
    J = tables.Job
    found: dict[str, dict[str, Any]] = {id: {} for id in ids}
    query = select(J.dataset_id, J.request).where(J.dataset_id.in_(ids), J.kind == "import").order_by(J.id)
    for id, request in session.execute(query):
        if id is not None:
            given = {name: request[name] for name in ImportOptions.model_fields if name in request}
            read = ImportOptions.model_validate(given).model_dump(mode="json", exclude_defaults=True)
            found[id] = read | {"format": request.get("format")}
    return found


def listed(session: Session, ref: str) -> list[DatasetVersion]:
    """All versions of a dataset, newest first; raises NotFound."""
    with reading(session):
        dataset = by_ref(session, tables.Dataset, ref, defer(tables.Dataset.statistics))
        query = select(V).where(V.dataset_id == dataset.id).options(defer(V.statistics)).order_by(V.number.desc())
        rows = session.scalars(query).all()
        # each version appends rows or deletes some, never both; a dataset that is still imported has none
        before = [*(row.n_rows for row in rows[1:]), 0]
        return [
            to_schema(DatasetVersion, row, version=row.number, n_deleted=max(0, former - row.n_rows), job=row.job_id)
            for row, former in zip(rows, before, strict=False)
        ]
