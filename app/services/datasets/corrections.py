"""Labels that were wrong are corrected: a job makes the dataset's next version; the one before stays what it was."""

import orjson
from sqlalchemy.orm import Session

from app.errors import Conflict, InvalidInput, Item
from app.formats.labels import label_problem
from app.schemas.datasets.datasets import CorrectionsRequest, LabelCorrection
from app.schemas.jobs.jobs import Job
from app.services.common.lookup import by_ref, require_owner
from app.services.datasets.next_versions import make_next, require_quiet
from app.store import tables
from app.store.corpus import Corpus, open_corpus
from app.store.db import reading
from app.store.files import files

_MOST_FAULTS = 20


def correct_labels(session: Session, ref: str, request: CorrectionsRequest) -> Job:
    """Queue the job that gives rows other labels.

    Raises
    ------
    NotFound
        No such dataset.
    Forbidden
        Somebody else made it.
    Conflict
        It is not ready, another job makes its next version, a row has other labels than those that were to be
        corrected, or all rows have these labels already.
    InvalidInput
        There is no such row, or it could not have these labels.
    """
    with reading(session):
        dataset = by_ref(session, tables.Dataset, ref)
        require_owner(session, dataset)
        require_quiet(session, dataset)
    assert dataset.path is not None
    corpus = open_corpus(files(), dataset.path)
    _check(corpus, request.corrections)
    changed = [each for each in request.corrections if _stripped(each) != corpus.names(each.row)]
    if not changed:
        raise Conflict("the rows have these labels already")
    upload = files().upload()
    try:
        for each in changed:
            upload.write(orjson.dumps({"row": each.row, "labels": _stripped(each)}) + b"\n")
        upload.finish()
        return make_next(session, dataset.id, upload, lambda _: {"kind": "correct", "rows": len(changed)})
    finally:
        upload.abort()


def _check(corpus: Corpus, corrections: list[LabelCorrection]) -> None:
    faults, seen = [], set()
    for at, each in enumerate(corrections):
        pointer = f"/corrections/{at}"
        if each.row >= corpus.n_rows:
            faults.append(Item(f"row {each.row}: the dataset has the rows 0 to {corpus.n_rows - 1}", f"{pointer}/row"))
            continue
        if each.row in seen:
            faults.append(Item(f"row {each.row} is there already", f"{pointer}/row"))
        seen.add(each.row)
        if corpus.label_indptr is None and len(each.labels) != 1:
            faults.append(Item(f"{len(each.labels)} labels; rows of this dataset have one", f"{pointer}/labels"))
        problems = ((place, label_problem(label.strip())) for place, label in enumerate(each.labels))
        faults += [Item(reported, f"{pointer}/labels/{place}") for place, reported in problems if reported is not None]
        if len(faults) >= _MOST_FAULTS:
            break
    if faults:
        raise InvalidInput("The corrections do not fit the dataset.", faults[:_MOST_FAULTS])
    for each in corrections:
        if each.before is not None and set(each.before) != set(corpus.names(each.row)):
            raise Conflict(f"row {each.row} has other labels by now: {', '.join(corpus.names(each.row))}")


def _stripped(correction: LabelCorrection) -> list[str]:
    """The labels in the order in which rows have them."""
    return sorted({label.strip() for label in correction.labels})
