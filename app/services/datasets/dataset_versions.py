"""The versions of a dataset: one from its import, one more from each append."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, defer

from app.errors import Conflict, InvalidInput, Item
from app.schemas.datasets.datasets import DatasetVersion, ImportOptions
from app.services.common.lookup import by_ref, moment
from app.store import tables
from app.store.db import reading

V = tables.DatasetVersion


def find(session: Session, dataset_id: str | None, number: int | None) -> tables.DatasetVersion | None:
    """One version of a dataset; without a number that of its import, the only one that older requests could mean."""
    return session.scalars(select(V).where(V.dataset_id == dataset_id, V.number == (number or 1))).one_or_none()


def meant(session: Session, dataset: tables.Dataset, number: int | None) -> tables.DatasetVersion:
    """The version of a ready dataset that a new request means, by default the newest.

    Raises
    ------
    Conflict
        The dataset is not ready.
    InvalidInput
        It has no such version.
    """
    require_ready(dataset)
    found = find(session, dataset.id, number or dataset.version)
    if found is None:
        detail = f"the dataset has the versions 1 to {dataset.version}"
        raise InvalidInput("the dataset has no such version", [Item(detail, "/dataset_version")])
    return found


def require_ready(dataset: tables.Dataset) -> None:
    """Raise Conflict unless the dataset was imported."""
    if dataset.state == "failed":
        raise Conflict(
            "the dataset's import has failed: its errors say why; mend the file, and upload it under the same name"
        )
    if dataset.state != "ready":
        raise Conflict(f"the dataset is {dataset.state}; wait until it is ready")


def options(session: Session, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """How the file of each of these datasets was read, by its id: the format and the options of its import."""
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
        return [
            DatasetVersion(
                version=row.number,
                sha256=row.sha256,
                n_rows=row.n_rows,
                n_train=row.n_train,
                job=row.job_id,
                created_at=moment(row.created_at),
            )
            for row in session.scalars(query)
        ]
