"""Import jobs: an uploaded file becomes arrays and a ready dataset."""

import csv
import io
from typing import Any

from sqlalchemy import update
from sqlalchemy.orm import Session

from app.config import settings
from app.errors import InvalidInput, Item
from app.formats.plain_file import MostUnpacked
from app.formats.registry import parse
from app.formats.table import FormatError
from app.schemas.datasets import ImportOptions
from app.services.datasets import ERROR_REPORT
from app.store import tables
from app.store.corpus import save_corpus, statistics_of
from app.store.files import Files, files
from workers.job_context import JobContext


def import_dataset(context: JobContext) -> None:
    """Parse the file, save its arrays, and make the dataset ready together with the job's success."""
    lease, store = context.lease, files()
    dataset_id = lease.dataset_id
    folder = f"datasets/{dataset_id}"
    context.phase("loading")
    try:
        parsed = parse(
            store.path(f"{folder}/source"),
            lease.request["format"],
            ImportOptions.model_validate(lease.request),
            MostUnpacked(settings().max_unpacked_bytes, settings().max_unpacked_ratio),
        )
    except FormatError as error:
        raise _not_readable(store, folder, error) from error
    most = settings().max_classes
    if len(parsed.labels) > most:
        raise InvalidInput(f"the file has {len(parsed.labels):,} classes; at most {most:,} are taken here")
    context.phase("saving", fraction=0.5)
    statistics = statistics_of(parsed)
    path = f"{folder}/arrays-{lease.attempt}"
    store.delete(path)
    save_corpus(store, path, parsed)

    def finish(session: Session) -> dict[str, Any]:
        values = {
            "state": "ready",
            "path": path,
            "kind": parsed.kind,
            "n_rows": statistics.n_rows,
            "n_train": statistics.n_train,
            "n_classes": statistics.n_classes,
            "n_features": statistics.n_features,
            "nnz": statistics.nnz,
            "statistics": statistics.model_dump(mode="json"),
            "error": None,
        }
        session.execute(update(tables.Dataset).where(tables.Dataset.id == dataset_id).values(values))
        return {"dataset": dataset_id}

    context.succeed(finish)
    store.delete(f"{folder}/{ERROR_REPORT}")
    for leftover in store.path(folder).glob("*arrays-*"):
        if leftover.name != f"arrays-{lease.attempt}":
            store.delete(f"{folder}/{leftover.name}")


def _not_readable(store: Files, folder: str, error: FormatError) -> InvalidInput:
    """The error of the job, which lists the first faults; all go into a file beside the dataset's."""
    rows = [[fault.row, _harmless(fault.column or ""), fault.detail] for fault in error.report]
    report = io.StringIO()
    csv.writer(report).writerows([["line", "column", "fault"], *rows])
    store.save_bytes(f"{folder}/{ERROR_REPORT}", report.getvalue().encode())
    items = [Item(fault.detail, row=fault.row, column=fault.column) for fault in error.errors]
    shown = f"; the first {len(items)} are listed, the others in the report" if error.n_errors > len(items) else ""
    return InvalidInput(f"the file has {error.n_errors} error(s){shown}", items)


def _harmless(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@")) else cell
