"""Corrections of labels: a job makes the dataset's next version; earlier versions stay unchanged."""

import orjson
from sqlalchemy.orm import Session

from app.datasets.appending import first_options, make_next, require_quiet
from app.datasets.schemas import CorrectionsRequest, LabelCorrection, LabelType
from app.errors import Conflict, InvalidInput, Item
from app.formats.label_forms import known_forms, label_form, label_type
from app.formats.labels import label_problem
from app.jobs.schemas import Job
from app.store import tables
from app.store.corpus import Corpus, open_corpus
from app.store.db import reading
from app.store.files import files
from app.store.lookup import by_ref, require_owner

_MOST_FAULTS = 20


def correct_labels(session: Session, ref: str, request: CorrectionsRequest) -> Job:
    """Queue the job that corrects the labels of rows.

    Raises
    ------
    NotFound
        The dataset does not exist.
    Forbidden
        Another key owns it.
    Conflict
        It is not ready, another job makes its next version, a row has other labels than those that were to be
        corrected, or all rows have these labels already.
    InvalidInput
        A row does not exist, or cannot have these labels.
    """
    with reading(session):
        dataset = by_ref(session, tables.Dataset, ref)
        require_owner(session, dataset)
        require_quiet(session, dataset)
        kinds = first_options(session, dataset.id).merge_labels
    assert dataset.path is not None
    corpus = open_corpus(files(), dataset.path)
    _check(corpus, request.corrections)
    type = corpus.label_type or label_type(corpus.labels)
    given = {label_form(label, type) for each in request.corrections for label in each.labels}
    known = known_forms(sorted(given), corpus.labels, kinds)
    due = [(each.row, sorted({known[form] for form in _forms(each.labels, type)})) for each in request.corrections]
    changed = [(row, labels) for row, labels in due if labels != corpus.names(row)]
    if not changed:
        raise Conflict("the rows already have these labels")
    upload = files().upload()
    try:
        for row, labels in changed:
            upload.write(orjson.dumps({"row": row, "labels": labels}) + b"\n")
        upload.finish()
        return make_next(session, dataset.id, upload, lambda _: {"kind": "correct", "rows": len(changed)})
    finally:
        upload.abort()


def _check(corpus: Corpus, corrections: list[LabelCorrection]) -> None:
    faults, seen = [], set()
    for at, each in enumerate(corrections):
        pointer = f"/corrections/{at}"
        if each.row >= corpus.n_rows:
            faults.append(
                Item(
                    f"row {each.row} does not exist: the dataset has the rows 0 to {corpus.n_rows - 1}",
                    f"{pointer}/row",
                )
            )
            continue
        if each.row in seen:
            faults.append(Item(f"row {each.row} is given twice", f"{pointer}/row"))
        seen.add(each.row)
        if corpus.label_indptr is None and len(each.labels) != 1:
            faults.append(
                Item(f"{len(each.labels)} labels; rows of this dataset have exactly one", f"{pointer}/labels")
            )
        problems = ((place, label_problem(label.strip())) for place, label in enumerate(each.labels))
        faults += [Item(reported, f"{pointer}/labels/{place}") for place, reported in problems if reported is not None]
        if len(faults) >= _MOST_FAULTS:
            break
    if faults:
        raise InvalidInput("The corrections do not fit the dataset.", faults[:_MOST_FAULTS])
    for each in corrections:
        if each.before is not None and _forms(each.before, "text") != sorted(corpus.names(each.row)):
            raise Conflict(f"row {each.row} now has other labels: {', '.join(corpus.names(each.row))}")


def _forms(labels: list[str], type: LabelType) -> list[str]:
    """The labels in the canonical form and order of the dataset."""
    return sorted({label_form(label, type) for label in labels})
