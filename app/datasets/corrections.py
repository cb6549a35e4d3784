"""Corrections of rows, labels or deletions: a job makes the next version; earlier versions stay unchanged."""

from collections.abc import Iterable, Mapping

import numpy as np
import orjson
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from app.access import audit
from app.datasets import versions
from app.datasets.appending import first_options, make_next, require_quiet
from app.datasets.schemas import CorrectionsRequest, LabelCorrection
from app.datasets.statistics_schemas import LabelType
from app.errors import Conflict, InvalidInput, Item
from app.formats.label_forms import known_forms, label_form, label_type
from app.formats.label_names import label_problem
from app.jobs.schemas import Job
from app.store import tables
from app.store.corpus import Corpus, open_corpus
from app.store.db import reading
from app.store.files import files
from app.store.lookup import by_ref

_MOST_FAULTS = 20


def correct_labels(session: Session, ref: str, request: CorrectionsRequest) -> Job:
    """Queue the job that corrects the labels of rows, or deletes rows.

    Raises
    ------
    NotFound
        The dataset does not exist.
    Conflict
        It is not ready, another job makes its next version, a row has other labels than those that were to be
        corrected, or all rows have these labels already.
    InvalidInput
        A row does not exist, is named twice, or cannot have these labels; or no row would be left.
    """
    with reading(session):
        dataset = by_ref(session, tables.Dataset, ref)
        require_quiet(session, dataset)
        kinds = first_options(session, dataset.id).merge_labels
    assert dataset.path is not None
    corpus = open_corpus(files(), dataset.path)
    corrections = _resolved(corpus, request.corrections, _former(session, dataset, request.corrections))
    deleted = [row for row, each in corrections if each.delete]
    if len(deleted) == corpus.n_rows:
        raise InvalidInput("no row would be left; delete the dataset instead")
    type = corpus.label_type or label_type(corpus.labels)
    given = {label_form(label, type) for _, each in corrections for label in each.labels or ()}
    known = known_forms(sorted(given), corpus.labels, kinds)
    due = [
        (row, sorted({known[form] for form in _forms(each.labels, type)}))
        for row, each in corrections
        if each.labels is not None
    ]
    changed = [(row, labels) for row, labels in due if labels != corpus.names(row)]
    if not changed and not deleted:
        raise Conflict("the rows already have these labels")
    upload = files().upload()
    try:
        for row, labels in changed:
            upload.write(orjson.dumps({"row": row, "labels": labels}) + b"\n")
        for row in deleted:
            upload.write(orjson.dumps({"row": row, "delete": True}) + b"\n")
        upload.finish()
        counts = {"rows": len(changed), "deleted_rows": len(deleted)}
        return make_next(
            session,
            dataset.id,
            upload,
            lambda _: {"kind": "correct"} | counts,
            lambda _: audit.changed(session, dataset, None, counts, "corrections"),
        )
    finally:
        upload.abort()


# a row's number and its correction
_Correction = tuple[int, LabelCorrection]


def _former(session: Session, dataset: tables.Dataset, given: list[LabelCorrection]) -> dict[int, Corpus]:
    """The rows of the versions whose row numbers are given, without the newest."""
    numbers = {each.version for each in given if each.version is not None} - {dataset.version}
    with reading(session):
        known = {number for number in numbers if number < dataset.version}
        found = {number: versions.find(session, dataset.id, number) for number in sorted(known)}
    for at, each in enumerate(given):
        if each.version not in {None, dataset.version} and found.get(each.version or 0) is None:
            fault = f"the dataset has the versions 1 to {dataset.version}"
            raise InvalidInput("the dataset has no such version", [Item(fault, f"/corrections/{at}/version")])
    return {number: open_corpus(files(), row.path) for number, row in found.items() if row is not None}


def _resolved(corpus: Corpus, given: list[LabelCorrection], former: Mapping[int, Corpus]) -> list[_Correction]:
    """The corrections by row number; raises InvalidInput, and Conflict for other labels than were to be corrected."""
    places = {number: rows.places_in(corpus) for number, rows in former.items()}
    by_id = _rows_of(corpus.ids, {each.id for each in given if each.id is not None})
    by_text = _rows_of(corpus.texts, {each.text for each in given if each.text is not None})
    found: list[_Correction] = []
    seen: set[int] = set()
    faults: list[Item] = []
    for at, each in enumerate(given):
        pointer = f"/corrections/{at}"
        if each.row is not None:
            field, (rows, missing) = "row", _numbered(corpus, each.row, each.version, places.get(each.version or 0))
        else:
            field, names = ("id", by_id) if each.id is not None else ("text", by_text)
            name = (each.id or each.text or "").strip()
            rows, missing = names[name], f"no row has the {field} {name!r:.80}"
            if (corpus.ids if field == "id" else corpus.texts) is None:
                missing = f"rows of this dataset have no {field}s"
        faults += [Item(missing, f"{pointer}/{field}")] if not rows else []
        faults += [Item(f"row {row} is given twice", f"{pointer}/{field}") for row in rows if row in seen]
        faults += _label_faults(corpus, each, pointer)
        if len(faults) >= _MOST_FAULTS:
            break
        seen.update(rows)
        found += [(row, each) for row in rows]
    if faults:
        raise InvalidInput("The corrections do not fit the dataset.", faults[:_MOST_FAULTS])
    for row, each in found:
        if each.before is not None and _forms(each.before, "text") != sorted(corpus.names(row)):
            raise Conflict(f"row {row} now has other labels: {', '.join(corpus.names(row))}")
    return found


def _numbered(corpus: Corpus, row: int, version: int | None, places: NDArray[np.int64] | None) -> tuple[list[int], str]:
    """The row with a number, by the places that rows of an earlier version have now; and what is wrong if none has."""
    n_rows = corpus.n_rows if places is None else len(places)
    if row >= n_rows:
        return [], f"row {row} does not exist: the dataset has the rows 0 to {n_rows - 1}"
    if places is None:
        return [row], ""
    return [int(place) for place in places[[row]] if place >= 0], f"row {row} of version {version} was deleted"


def _rows_of(names: Iterable[str] | None, wanted: set[str]) -> dict[str, list[int]]:
    """The rows that have each of the wanted names, without whitespace around them."""
    found: dict[str, list[int]] = {name.strip(): [] for name in wanted}
    for row, name in enumerate(names if names is not None and wanted else ()):
        if (key := name.strip()) in found:
            found[key].append(row)
    return found


def _label_faults(corpus: Corpus, correction: LabelCorrection, pointer: str) -> list[Item]:
    if correction.labels is None:
        return []
    faults = []
    if corpus.label_indptr is None and len(correction.labels) != 1:
        faults.append(
            Item(f"{len(correction.labels)} labels; rows of this dataset have exactly one", f"{pointer}/labels")
        )
    problems = ((place, label_problem(label.strip())) for place, label in enumerate(correction.labels))
    return faults + [
        Item(reported, f"{pointer}/labels/{place}") for place, reported in problems if reported is not None
    ]


def _forms(labels: list[str], type: LabelType) -> list[str]:
    """The labels in the canonical form and order of the dataset."""
    return sorted({label_form(label, type) for label in labels})
