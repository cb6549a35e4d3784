"""Jobs that append: an uploaded file becomes further rows, and the dataset gets its next version."""

import hashlib
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.config import settings
from app.errors import Conflict, InvalidInput
from app.formats.table import FormatError
from app.services import append_sources, dataset_versions
from app.store import tables
from app.store.corpus import open_corpus, save_extended, statistics_of
from app.store.db import db_now
from app.store.files import files
from app.store.segments import DoesNotFitError, extended
from workers.importing import not_readable, parsed_file, summary
from workers.job_context import JobContext

# their columns are those of a table, which the new rows must have all
_TABLES = frozenset({"csv", "tsv", "parquet", "arrow"})


def append_rows(context: JobContext) -> None:
    """Parse the file, put its rows below those of the newest version, and make that the next version."""
    lease, store = context.lease, files()
    folder, request = f"datasets/{lease.dataset_id}", lease.request
    context.phase("loading")
    dataset = context.read(lambda session: session.get(tables.Dataset, lease.dataset_id))
    base = None
    if dataset is not None:
        number = dataset.version
        base = context.read(lambda session: dataset_versions.find(session, lease.dataset_id, number))
    if base is None:
        raise Conflict("the dataset was deleted")
    source = append_sources.path_of(base.dataset_id, request)
    if not store.path(source).exists():
        raise Conflict("the file with the rows is no longer kept; append it again")
    try:
        parsed = parsed_file(store.path(source), request)
    except FormatError as error:
        store.delete(source)  # no other attempt would read it
        raise not_readable(store, folder, error) from error
    corpus = open_corpus(store, base.path)
    try:
        same_columns = request["format"] in _TABLES
        extension = extended(corpus.head(), corpus.parts, parsed, request["part"], same_columns)
    except DoesNotFitError as error:
        store.delete(source)
        raise InvalidInput(str(error)) from None
    n_labels, most = len(extension.whole.labels), settings().max_classes
    if n_labels > most:
        raise InvalidInput(f"the dataset would have {n_labels:,} classes; at most {most:,} are taken here")
    context.phase("saving", fraction=0.5)
    statistics = statistics_of(extension.whole)
    own = f"arrays-{lease.job_id}-"
    path = f"{folder}/{own}{lease.attempt}"
    store.delete(path)
    save_extended(store, path, base.path, extension)
    lineage = f"{base.sha256}\n{request['sha256']}\n{request['part'] or ''}"
    sha256 = hashlib.sha256(lineage.encode()).hexdigest()

    def finish(session: Session) -> dict[str, Any]:
        D, F = tables.Dataset, tables.Feedback
        mine = select(func.count()).select_from(F).where(F.job_id == lease.job_id)
        if session.scalars(mine).one() != request.get("feedback", 0):  # an end that was not the last let others have it
            raise Conflict("some of the feedback was deleted or appended by another job meanwhile")
        values = {"version": base.number + 1, "sha256": sha256, "size_bytes": D.size_bytes + request["size_bytes"]}
        newest = update(D).where(D.id == lease.dataset_id, D.version == base.number).returning(D.id)
        if session.scalars(newest.values(**summary(parsed.kind, path, statistics), **values)).one_or_none() is None:
            raise Conflict("other rows were appended meanwhile; try the job again")
        session.add(
            tables.DatasetVersion(
                dataset_id=lease.dataset_id,
                number=base.number + 1,
                job_id=lease.job_id,
                sha256=sha256,
                path=path,
                n_rows=statistics.n_rows,
                n_train=statistics.n_train,
                statistics=statistics.model_dump(mode="json"),
                created_at=db_now(),
            )
        )
        return {"dataset": lease.dataset_id, "dataset_version": base.number + 1}

    context.succeed(finish)
    for leftover in store.path(folder).glob(f"*{own}*"):
        if leftover.name != f"{own}{lease.attempt}":
            store.delete(f"{folder}/{leftover.name}")
