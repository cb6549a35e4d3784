"""Datasets: register uploads, read and delete them."""

from collections.abc import Iterable
from pathlib import Path

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy import delete as sql_delete
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, defer

from app.access import audit, quotas
from app.datasets.import_options import check_options
from app.datasets.schemas import Dataset, FromUpload, ImportOptions, NewDataset, ProposedColumns, TableSample
from app.errors import Conflict, Forbidden, InvalidInput, Item, NotFound
from app.formats.detection import declared_format, unfit_options
from app.formats.table import FormatError
from app.jobs import job_requests
from app.jobs import wakeups as job_queue
from app.models.row_kinds import keep_columns, with_columns_of_model
from app.schemas import Page
from app.store import tables
from app.store.db import db_now, new_id, reading, writing
from app.store.files import Upload, files
from app.store.lookup import by_ref, newest, require_owner, to_schema
from app.store.scope import scope_of

ERROR_REPORT = "errors.csv"
_BRIEF = defer(tables.Dataset.statistics)
# after so long a failed import is left out of lists
FOLDED_SECONDS = 86400.0


def check_new(session: Session, new: NewDataset) -> NewDataset:
    """Check, before any byte is received, whether the dataset may be uploaded.

    Returns
    -------
    NewDataset
        With the options by which the columns of ``for_model`` are read.

    Raises
    ------
    InvalidInput
        The format does not support one of the options.
    Conflict
        The name is taken.
    """
    if new.format is not None:
        check_options(new, new.format)
    with reading(session):
        _require_free(session, new.name)
        return with_columns_of_model(session, new)


def register(session: Session, new: NewDataset, upload: Upload) -> Dataset:
    """Store a received file as a dataset and queue its import; raises as :func:`check_new` does.

    A dataset of that name whose import has failed is replaced if the caller may delete it. The upload is
    gone afterwards, whatever happens.
    """
    store = files()
    id = new_id()
    try:
        given, new = new, check_new(session, new)
        if upload.size_bytes == 0:
            raise InvalidInput("the file is empty")
        format = file_format(given, upload.path)  # the options of a model need not be those of the file's format
        if given.for_model is not None:
            unfit = unfit_options(upload.path, format, new) - given.model_fields_set
            new = new.model_copy(update={name: ImportOptions.model_fields[name].default for name in unfit})
        store.keep(upload, f"{_folder(id)}/source")
        with writing(session):
            quotas.require_jobs(session)
            quotas.require_room(session, upload.size_bytes)
            failed = _require_free(session, new.name)
            if failed is not None:
                _remove(session, failed)
            row = tables.Dataset(
                id=id,
                name=new.name,
                format=format,
                state="importing",
                sha256=upload.sha256,
                size_bytes=upload.size_bytes,
                created_at=db_now(),
            )
            session.add(row)
            session.flush()
            request = new.model_dump(mode="json", exclude={"name", "for_model", *FromUpload.model_fields})
            job = job_queue.enqueue(session, "import", id, {"kind": "import", **request, "format": format})
            session.refresh(row)
            shown = _show(row, job.id)
    except BaseException as error:
        upload.abort()
        store.delete(_folder(id))
        if isinstance(error, IntegrityError):
            raise _taken(new.name) from None
        raise
    if failed is not None:
        store.delete(_folder(failed.id))
    job_queue.notify(session, job.id, job.queue)
    return shown


def get(session: Session, ref: str) -> Dataset:
    """A dataset by id or name; raises NotFound."""
    with reading(session):
        row = by_ref(session, tables.Dataset, ref, _BRIEF)
        return _show(row, _imports(session, [row.id]).get(row.id))


def is_folded() -> ColumnElement[bool]:
    """Whether lists omit a dataset: its import failed, and it was uploaded more than a day ago."""
    D = tables.Dataset
    return and_(D.state == "failed", D.created_at < db_now() - FOLDED_SECONDS)


def n_folded(session: Session) -> int:
    """Number of datasets that lists omit."""
    with reading(session):
        return session.scalars(select(func.count()).select_from(tables.Dataset).where(is_folded())).one()


def page(
    session: Session, page_size: int = 100, page_token: str | None = None, old_failures: bool = False
) -> Page[Dataset]:
    """Datasets, newest first, without old failed imports unless ``old_failures`` is set."""
    with reading(session):
        query = select(tables.Dataset).options(_BRIEF)
        if not old_failures:
            query = query.where(~is_folded())
        rows, token = newest(session, tables.Dataset, query, page_size, page_token)
        imports = _imports(session, [row.id for row in rows])
        return Page[Dataset](items=[_show(row, imports.get(row.id)) for row in rows], next_page_token=token)


def names(session: Session, ids: Iterable[str | None]) -> dict[str, str]:
    """Names of datasets by id, without deleted datasets."""
    wanted = {id for id in ids if id is not None}
    with reading(session):
        rows = session.execute(select(tables.Dataset.id, tables.Dataset.name).where(tables.Dataset.id.in_(wanted)))
        return {row.id: row.name for row in rows}


def delete(session: Session, ref: str, force: bool = False) -> None:
    """Delete a dataset and its files.

    Raises
    ------
    NotFound
        The dataset does not exist.
    Forbidden
        Another key owns it.
    Conflict
        A job that is not over uses it; or, unless ``force`` is given by an editor, models came from it.
    """
    scope = scope_of(session)
    force = force and (scope is None or scope.edits)
    with writing(session):
        row = by_ref(session, tables.Dataset, ref, _BRIEF, lock=True)
        require_owner(session, row)
        job_requests.refuse_in_use(
            session, "dataset", tables.Job.dataset_id, tables.ModelVersion.dataset_id, row.id, force
        )
        keep_columns(session, row)
        _remove(session, row)
    files().delete(_folder(row.id))


def error_report(session: Session, ref: str) -> bytes:
    """The faulty rows of a failed import as CSV: line, column, fault.

    Raises
    ------
    NotFound
        No such dataset, or it has no faulty rows.
    """
    row = by_ref(session, tables.Dataset, ref, _BRIEF)
    try:
        return files().read_bytes(f"{_folder(row.id)}/{ERROR_REPORT}")
    except FileNotFoundError:
        raise NotFound("the dataset has no faulty rows") from None


def file_format(new: NewDataset, path: Path) -> str:
    """The format as given, or detected from the content; raises InvalidInput if it is ambiguous."""
    if new.format is not None:
        return new.format
    try:
        format = declared_format(path, new)
    except FormatError as error:
        raise InvalidInput(
            "the file's format could not be detected", [Item(error.errors[0].detail, "/format")]
        ) from None
    check_options(new, format)
    return format


def propose(content: bytes, sample: TableSample) -> ProposedColumns:
    """The columns of a table with their proposed roles, from the beginning of its file.

    Raises
    ------
    InvalidInput
        It is no table, or the options do not fit it.
    """
    if sample.format is not None:
        check_options(sample, sample.format)
    # it loads the numerics, which a service that is just starting need not wait for
    from app.formats.proposals import propose_columns

    try:
        return propose_columns(content, sample)
    except FormatError as error:
        first = error.errors[0]
        item = Item(first.detail, row=first.row if first.row > 1 else None, column=first.column)
        raise InvalidInput("the file's columns could not be read", [item]) from None


def _folder(id: str) -> str:
    return f"datasets/{id}"


def _remove(session: Session, row: tables.Dataset) -> None:
    audit.changed(session, row, {"name": row.name, "sha256": row.sha256, "owner": row.owner}, None)
    session.execute(sql_delete(tables.Dataset).where(tables.Dataset.id == row.id))


def _require_free(session: Session, name: str) -> tables.Dataset | None:
    """Raise Conflict if a dataset has the name; a dataset whose import failed is returned instead."""
    row = session.scalars(select(tables.Dataset).options(_BRIEF).where(tables.Dataset.name == name)).first()
    if row is None:
        return None
    if row.state != "failed":
        raise _taken(name)
    try:
        require_owner(session, row)
    except Forbidden:
        raise _taken(name, "; its import failed, and it belongs to another key: choose another name") from None
    return row


def _taken(name: str, more: str = ": choose another name, or append to that dataset") -> Conflict:
    return Conflict(f"a dataset named {name!r} already exists{more}")


def _imports(session: Session, ids: list[str]) -> dict[str, str]:
    query = select(tables.Job.dataset_id, tables.Job.id).where(
        tables.Job.dataset_id.in_(ids), tables.Job.kind == "import"
    )
    return {dataset_id: job_id for dataset_id, job_id in session.execute(query) if dataset_id}


def _show(row: tables.Dataset, job_id: str | None) -> Dataset:
    return to_schema(Dataset, row, job=job_id)
