"""Import jobs: an uploaded file becomes arrays and a ready dataset."""

import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import update
from sqlalchemy.orm import Session

from app.config import settings
from app.datasets.schemas import ImportOptions
from app.datasets.service import ERROR_REPORT
from app.datasets.statistics_schemas import DatasetStatistics
from app.errors import InvalidInput, Item
from app.formats.parsing import parse
from app.formats.plain_file import MostUnpacked
from app.formats.table import FormatError, Parsed
from app.plurals import counted
from app.store import tables
from app.store.corpus import save_corpus
from app.store.db import db_now
from app.store.files import Files, files
from app.store.languages import in_languages
from app.store.row_statistics import statistics_of
from workers.running.job_context import JobContext

# arrays-<attempt>, and its name while it is written; an append's has its job's id before the attempt
_OF_IMPORT = re.compile(r"\.?arrays-\d+(\.|$)")


def import_dataset(context: JobContext) -> None:
    """Parse the file, save its arrays, and make the dataset ready together with the job's success."""
    lease, store = context.lease, files()
    dataset_id = lease.dataset_id
    folder = f"datasets/{dataset_id}"
    context.phase("loading")
    try:
        parsed = parsed_file(store.local(f"{folder}/source"), lease.request)
    except FormatError as error:
        raise not_readable(store, folder, error) from error
    most = settings().max_classes
    if len(parsed.labels) > most:
        raise InvalidInput(f"the file has {len(parsed.labels):,} classes; at most {most:,} are allowed")
    context.phase("saving", fraction=0.5)
    statistics = statistics_of(parsed)
    path = f"{folder}/arrays-{lease.attempt}"
    store.delete(path)
    save_corpus(store, path, parsed)

    def finish(session: Session) -> dict[str, Any]:
        D = tables.Dataset
        values = {"state": "ready", "error": None, **summary(parsed.kind, path, statistics)}
        sha256 = session.scalars(update(D).where(D.id == dataset_id).values(values).returning(D.sha256)).one()
        session.add(
            tables.DatasetVersion(
                dataset_id=dataset_id,
                number=1,
                job_id=lease.job_id,
                sha256=sha256,
                path=path,
                n_rows=statistics.n_rows,
                n_train=statistics.n_train,
                statistics=values["statistics"],
                created_at=db_now(),
            )
        )
        return {"dataset": dataset_id, "dataset_version": 1}

    context.succeed(finish)
    store.delete(f"{folder}/{ERROR_REPORT}")
    _delete_other_attempts(store, folder, lease.attempt)


def _delete_other_attempts(store: Files, folder: str, attempt: int) -> None:
    """Delete the files of other attempts at the import, but not those of rows that were appended since."""
    for name in store.names(folder):
        if _OF_IMPORT.match(name) and name != f"arrays-{attempt}":
            store.delete(f"{folder}/{name}")


def parsed_file(path: Path, request: Mapping[str, Any]) -> Parsed:
    """The rows of an uploaded file, read as a job's request says; raises FormatError, InvalidInput."""
    most = MostUnpacked(settings().max_unpacked_bytes, settings().max_unpacked_ratio)
    options = ImportOptions.model_validate(request)
    parsed = parse(path, request["format"], options, most)
    if not options.languages:
        return parsed
    try:
        return in_languages(parsed, options.languages)
    except ValueError as error:
        raise InvalidInput("rows cannot be chosen by language", [Item(str(error), "/languages")]) from None


def summary(kind: str, path: str, statistics: DatasetStatistics) -> dict[str, Any]:
    """Columns of a dataset's row that describe its newest version."""
    counts = ("n_rows", "n_train", "n_classes", "n_features", "nnz")
    values = {name: getattr(statistics, name) for name in counts}
    return {"kind": kind, "path": path, **values, "statistics": statistics.model_dump(mode="json")}


def not_readable(store: Files, folder: str, error: FormatError) -> InvalidInput:
    """The error of the job, which lists the first faults; all go into a file beside the dataset's."""
    rows = [[fault.row, _harmless(fault.column or ""), fault.detail] for fault in error.report]
    report = io.StringIO()
    csv.writer(report).writerows([["line", "column", "fault"], *rows])
    store.save_bytes(f"{folder}/{ERROR_REPORT}", report.getvalue().encode())
    items = [Item(fault.detail, row=fault.row, column=fault.column) for fault in error.errors]
    shown = f"; the first {len(items)} are listed, the others in the report" if error.n_errors > len(items) else ""
    hint = ""
    causes = {fault.cause for fault in error.errors}
    # who uploads texts as numbers has a fault in every row, none of which says what to do
    if "decimal_comma" in causes:
        hint += "; decimal=comma reads numbers with decimal commas"
    not_numbers = [fault for fault in error.errors if fault.cause in ("text", "decimal_comma")]
    if not_numbers:
        columns = {repr(fault.column) for fault in not_numbers if fault.column}
        which = f"column {columns.pop()} holds text, name it" if len(columns) == 1 else "columns hold text, name them"
        hint += f"; if {which} with text_columns or category_columns, or use infer_columns"
    if "unknown_key" in causes:
        hint += "; set infer_columns to read these keys as columns, and leave out unwanted ones with ignore_columns"
    if "empty" in causes:
        hint += "; numbers that are missing are kept by missing=keep"
    if "no_label" in causes:
        hint += "; rows without a label are left out by without_label=leave_out, and kept alone by without_label=only"
    return InvalidInput(f"the file has {counted(error.n_errors, 'error')}{shown}{hint}", items)


def _harmless(cell: str) -> str:
    """A cell that no spreadsheet reads as a formula."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@")) else cell
