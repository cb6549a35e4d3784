"""Jobs that append: an uploaded file becomes further rows, and the dataset gets its next version."""

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.config import settings
from app.datasets.formats import FORMATS
from app.errors import Conflict, InvalidInput
from app.formats.label_forms import known_forms, label_type, with_labels_of
from app.formats.likeness import KINDS, similar_labels
from app.formats.table import FormatError, Parsed
from app.plurals import counted
from app.store import tables
from app.store.corpus import Corpus, open_corpus, save_corpus, save_extended
from app.store.files import files
from app.store.relabelling import corrected
from app.store.row_statistics import statistics_of
from app.store.segments import DoesNotFitError, extended
from workers.job_kinds.importing import not_readable, parsed_file
from workers.job_kinds.next_version import NextVersion, delete_other_attempts, folder_of, newest_version
from workers.running.job_context import JobContext


def append_rows(context: JobContext) -> None:
    """Parse the file, put its rows below those of the newest version, and make that the next version."""
    lease, store = context.lease, files()
    folder, request = f"datasets/{lease.dataset_id}", lease.request
    context.phase("loading")
    base, source = newest_version(context, store)
    corpus = open_corpus(store, base.path)
    try:
        parsed = parsed_file(store.local(source), {**request, **_reported(corpus, request), **_types(corpus, request)})
    except FormatError as error:
        store.delete(source)  # no other attempt would read it
        raise not_readable(store, folder, error) from error
    parsed = with_labels_of(parsed, corpus.labels, request.get("merge_labels") or ())
    try:
        same_columns = FORMATS[request["format"]].is_table
        extension = extended(corpus.head(), corpus.parts, parsed, request["part"], same_columns)
    except DoesNotFitError as error:
        store.delete(source)
        raise InvalidInput(str(error)) from None
    whole, replaced = corrected(extension.whole, corpus.n_rows) if request.get("corrects") else (extension.whole, [])
    n_labels, most = len(whole.labels), settings().max_classes
    if n_labels > most:
        raise InvalidInput(f"the dataset would have {n_labels:,} classes; at most {most:,} are allowed")
    warning = _warning(corpus, parsed, {row - corpus.n_rows for row in replaced})
    context.phase("saving", fraction=0.5)
    statistics = statistics_of(whole)
    path = folder_of(lease)
    store.delete(path)
    if replaced:
        save_corpus(store, path, whole)
    else:
        save_extended(store, path, base.path, extension)
    lineage = f"{base.sha256}\n{request['sha256']}\n{request['part'] or ''}"
    sha256 = hashlib.sha256(lineage.encode()).hexdigest()

    def finish(session: Session) -> dict[str, Any]:
        F = tables.Feedback
        mine = select(func.count()).select_from(F).where(F.job_id == lease.job_id)
        if session.scalars(mine).one() != request.get("feedback", 0):  # an end that was not the last let others have it
            raise Conflict("some of this feedback was deleted, or another job has appended it; read the feedback again")
        return NextVersion(base, lease, sha256, path, parsed.kind, statistics, warning).add(session)

    context.succeed(finish)
    delete_other_attempts(store, lease)


def _warning(corpus: Corpus, new: Parsed, replaced: Collection[int]) -> str | None:
    """What may not be wanted of the new rows, and how to undo it; None where there is nothing of the kind.

    Parameters
    ----------
    replaced : collection of int
        The new rows that have corrected rows of the dataset instead of being appended.
    """
    found = []
    known, forms = set(corpus.labels), known_forms(new.labels, corpus.labels, KINDS)
    like = {name: old for name, old in forms.items() if name not in known and old in known}
    if like:
        kinds = sorted(
            {kind for name, old in like.items() for each in similar_labels([old, name]) for kind in each.kinds}
        )
        name, old = next(iter(like.items()))
        alike = counted(len(like), "new label", "looks like one/look like some")
        found.append(
            f"{alike} of the dataset, such as {name!r:.80} beside {old!r:.80}: append with "
            f"merge_labels={' and merge_labels='.join(kinds)} to give the rows its labels"
        )
    appended = [id for row, id in enumerate(new.ids or ()) if row not in replaced]
    ids = {*appended} & {*(corpus.ids or ())} - {""}
    if ids:
        there = f"{'is' if len(ids) == 1 else 'are'} in the dataset already"
        found.append(f"{counted(len(ids), 'id', 'of the new rows, such as')} {min(ids)!r:.80}, {there}")
    n_new = new.n_rows - len(replaced)
    if found and n_new:
        first = corpus.n_rows
        rows = f"row {first}" if n_new == 1 else f"rows {first} to {first + n_new - 1}"
        found[-1] += f". To undo the append, delete {rows} of the new version"
    if replaced:
        they = f"{counted(len(replaced), 'row', 'was/were')} in the dataset already, with the same id and content"
        found.insert(0, f"{they}: {'it has' if len(replaced) == 1 else 'they have'} the decided labels there")
    return "; ".join(found) or None


def _reported(corpus: Corpus, request: Mapping[str, Any]) -> dict[str, Any]:
    """Types of columns that were inferred from earlier values; new values do not change them."""
    columns = corpus.columns
    if columns is None or not request.get("infer_columns"):
        return {}
    return {
        "text_columns": columns.texts,
        "number_columns": columns.numbers,
        "category_columns": columns.categories,
    }


def _types(corpus: Corpus, request: Mapping[str, Any]) -> dict[str, Any]:
    """How to read labels and categories: new rows are read like those of the dataset, whatever their values."""
    types = {} if corpus.columns is None else corpus.columns.types
    given: dict[str, Any] = {"column_types": [f"{column}={type}" for column, type in types.items()]}
    if request.get("label_type") is None and corpus.labels:
        given["label_type"] = corpus.label_type or label_type(corpus.labels)
    return given
