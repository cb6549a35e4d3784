"""Rows are appended to a dataset: a job makes its next version, and the one before stays what it was."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.schemas.datasets.datasets import ImportOptions, NewDataset, NewRows
from app.schemas.jobs.jobs import Job
from app.services.access import quotas
from app.services.common.lookup import by_ref, require_owner
from app.services.datasets.datasets import file_format
from app.services.datasets.import_options import check_options
from app.services.datasets.next_versions import BRIEF, make_next, require_quiet
from app.store import tables
from app.store.db import reading
from app.store.files import Upload


def check_append(session: Session, ref: str, new: NewRows) -> None:
    """Before any byte is received: whether rows may be appended.

    Raises
    ------
    NotFound
        No such dataset.
    Forbidden
        Somebody else made it.
    Conflict
        It is not ready, or other rows are being appended.
    InvalidInput
        The format does not have what the options say of it.
    """
    with reading(session):
        dataset = by_ref(session, tables.Dataset, ref, BRIEF)
        require_owner(session, dataset)
        require_quiet(session, dataset)
        if new.format is not None:
            check_options(_options(session, dataset, new), new.format)
        quotas.require_room(session, 1, hold=False)


def append(
    session: Session,
    ref: str,
    new: NewRows,
    upload: Upload,
    n_feedback: int = 0,
    then: Callable[[tables.Job], None] = lambda _: None,
) -> Job:
    """Keep a received file beside those of a dataset and queue the job that appends its rows.

    Parameters
    ----------
    n_feedback : int
        How many of the rows come from feedback, which the job tells.
    then : callable
        Called with the job in the transaction that makes it.

    Raises as :func:`check_append` does; the upload is gone afterwards, whatever happens.
    """

    def request_of(dataset: tables.Dataset) -> dict[str, Any]:
        options = _options(session, dataset, new)
        if new.format is not None:
            check_options(options, new.format)
        format = file_format(NewDataset(**options.model_dump(), name="rows", format=new.format), upload.path)
        request = {"kind": "append", **options.model_dump(mode="json"), "format": format, "part": new.part}
        return request | {"feedback": n_feedback} if n_feedback else request

    return make_next(session, ref, upload, request_of, then)


def _options(session: Session, dataset: tables.Dataset, new: NewRows) -> ImportOptions:
    """What is said of the new file and, where nothing is, what was said of the first."""
    first = select(tables.Job.request).where(tables.Job.dataset_id == dataset.id, tables.Job.kind == "import")
    stored = session.scalars(first.limit(1)).first() or {}
    before = ImportOptions.model_validate(stored).model_dump()
    given = new.model_dump(include=new.model_fields_set & ImportOptions.model_fields.keys())
    return ImportOptions.model_validate(before | given)
