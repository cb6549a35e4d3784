"""Decisions: what people said of a row, the state that follows, and decided rows as rows of a dataset."""

from collections.abc import Sequence

from sqlalchemy import select, update
from sqlalchemy.orm import Session
from sqlalchemy.sql.elements import ColumnElement

from app.datasets.instance_rows import MOST_ROWS, append_rows, rows_for
from app.errors import MAX_ITEMS, Conflict, InvalidInput, Item, NotFound, PreconditionFailed
from app.formats.label_names import label_problem
from app.jobs.schemas import Job
from app.models.service import version_row
from app.predictions.model_cache import ModelCache
from app.reviews.label_search import load_if_kept
from app.reviews.rows import FRESH, caller, opinions, shown
from app.reviews.schemas import DecidedRowsRequest, DecisionRequest, ReviewRow
from app.reviews.written_labels import UnknownLabel, WrittenLabels
from app.store import tables
from app.store.db import db_now, reading, writing
from app.store.lookup import by_ref
from app.values import normalized

R, O, J = tables.ReviewRow, tables.ReviewOpinion, tables.Job
# states of jobs that appended nothing
LOST = ("failed", "cancelled")


def decide_known(
    session: Session, cache: ModelCache, ref: str, number: int, request: DecisionRequest, if_match: int | None = None
) -> ReviewRow:
    """As :func:`decide`, with the labels, names or notations of a request as labels of the reviewed version.

    Raises InvalidInput, too, of a label that the version does not know, unless the request has ``new_labels``.
    """
    with reading(session):
        review = by_ref(session, tables.Review, ref)
        row = session.get(R, (review.id, number))
        alternatives = [each["label"] for each in row.alternatives] if row is not None else []
    known = WrittenLabels(load_if_kept(session, cache, ref), request.new_labels)
    labels: list[str] = []
    problems = []
    for label, pointer in [] if row is None or request.skip else _given(request):
        try:
            labels.append(known.find(label, alternatives))
        except UnknownLabel as error:
            problems.append(Item(str(error), pointer))
    if problems:
        raise InvalidInput("label is invalid", problems[:MAX_ITEMS])
    if labels:
        request = request.model_copy(update={"label": labels[0]} if request.labels is None else {"labels": labels})
    return decide(session, ref, number, request, if_match)


def decide(
    session: Session,
    ref: str,
    number: int,
    request: DecisionRequest,
    if_match: int | None = None,
    person: str | None = None,
) -> ReviewRow:
    """Record what a person says of a row; the same once more changes nothing.

    Parameters
    ----------
    number : int
        Of the row in the dataset.
    if_match : int, optional
        The revision that the row must have now; None: whatever it has.
    person : str, optional
        Who says it; None: the caller.

    Raises
    ------
    NotFound
        No such queue or row.
    Conflict
        Another person has the row, it is decided, or it was appended to a dataset.
    PreconditionFailed
        The row has another revision.
    InvalidInput
        A label contains characters that no label of a dataset may have, or the queue has one label per row and the
        request another number of them.
    """
    with writing(session):
        return decide_within(session, ref, number, request, if_match, person)


def decide_within(
    session: Session,
    ref: str,
    number: int,
    request: DecisionRequest,
    if_match: int | None = None,
    person: str | None = None,
) -> ReviewRow:
    """As :func:`decide`, within a transaction, in which a refused decision changes nothing."""
    labels = _labels(request)
    person = person or caller(session)
    review, row, now = _locked(session, ref, number)
    if review.label_separator is None and labels is not None and len(labels) != 1:
        raise InvalidInput("labels is invalid", [Item("the review has one label per row", "/labels")])
    given = {each.person: each for each in opinions(session, review.id, [number])}
    own = given.get(person)
    if own is not None and own.comment == request.comment and same_labels(own.labels, labels):
        return shown(session, review, [row], person, now)[0]
    _require_revision(row, if_match)
    _require_not_appended(session, row)
    if row.claimed_by not in (None, person) and row.lease_until is not None and row.lease_until > now:
        raise Conflict(f"{row.claimed_by!r} has claimed row {number}; claim another row")
    if own is None and row.state == "decided":
        raise Conflict(f"row {number} is decided; claim another row")
    if own is None:
        own = O(review_id=review.id, row=number, person=person, arbiter=row.state == "disputed")
        session.add(own)
        given[person] = own
    own.labels, own.comment, own.decided_at = labels, request.comment, now
    _follow(row, list(given.values()), review.opinions)
    session.flush()
    return shown(session, review, [row], person, now)[0]


def undo(
    session: Session, ref: str, number: int, if_match: int | None = None, minutes: float | None = None
) -> ReviewRow:
    """Withdraw what the caller said of a row; nothing changes where nobody has decided it, as after a withdrawal.

    Parameters
    ----------
    number : int
        Of the row in the dataset.
    if_match : int, optional
        The revision that the row must have now; None: whatever it has.
    minutes : float, optional
        For so long the caller has the row again; None: anybody can claim it.

    Raises
    ------
    NotFound
        No such queue or row.
    Conflict
        Others decided or skipped the row, or it was appended to a dataset.
    PreconditionFailed
        The row has another revision.
    """
    person = caller(session)
    with writing(session):
        review, row, now = _locked(session, ref, number)
        given = opinions(session, review.id, [number])
        own = [each for each in given if each.person == person]
        if not own and row.state != "open":
            others = [each.person for each in given if row.state != "skipped" or each.labels is None]
            done = "skipped" if row.state == "skipped" else "decided"
            raise Conflict(f"you have not {done} row {number}, but {' and '.join(map(repr, others))}; decide the row")
        if own:
            _require_revision(row, if_match)
            _require_not_appended(session, row)
            session.delete(own[0])
            _follow(row, [each for each in given if each.person != person], review.opinions)
            if minutes is not None:
                row.claimed_by, row.lease_until = person, now + 60.0 * minutes
            session.flush()
        return shown(session, review, [row], person, now)[0]


def same_labels(some: Sequence[str] | None, others: Sequence[str] | None) -> bool:
    """Whether two decisions are the same: sets have no order, and a skip is not the empty set."""
    if some is None or others is None:
        return some is others
    return set(some) == set(others)


def _labels(request: DecisionRequest) -> list[str] | None:
    """The labels of a decision, each once, as datasets have them; None of a skip. Raises InvalidInput."""
    if request.skip:
        return None
    given = _given(request)
    found = [(label_problem(label), pointer) for label, pointer in given]
    problems = [Item(problem, pointer) for problem, pointer in found if problem is not None]
    if problems:
        raise InvalidInput("label is invalid", problems)
    return list(dict.fromkeys(label for label, _ in given))


def _given(request: DecisionRequest) -> list[tuple[str, str]]:
    """The labels of a request, and where they are in it."""
    if request.labels is None:
        return [(normalized(request.label or ""), "/label")]
    return [(normalized(label), f"/labels/{at}") for at, label in enumerate(request.labels)]


def _locked(session: Session, ref: str, number: int) -> tuple[tables.Review, tables.ReviewRow, float]:
    review = by_ref(session, tables.Review, ref)
    query = select(R).where(R.review_id == review.id, R.row == number).with_for_update()
    row = session.scalars(query, execution_options=FRESH).one_or_none()
    if row is None:
        raise NotFound(f"the review {review.name} has no row {number}")
    return review, row, session.scalars(select(db_now())).one()


def _require_revision(row: tables.ReviewRow, if_match: int | None) -> None:
    if if_match is not None and if_match != row.revision:
        raise PreconditionFailed(f"the row has revision {row.revision}; If-Match names {if_match}")


def _require_not_appended(session: Session, row: tables.ReviewRow) -> None:
    taken = select(J.id).where(J.id == row.job_id, J.state.not_in(LOST))
    if row.job_id is not None and session.scalars(taken).first() is not None:
        raise Conflict(f"job {row.job_id} appends row {row.row} to a dataset; correct the label there")


def _follow(row: tables.ReviewRow, given: Sequence[tables.ReviewOpinion], n_wanted: int) -> None:
    """The state and labels of a row that follow from its opinions; its claim ends."""
    found = [each.labels for each in given if each.labels is not None and not each.arbiter]
    last = [each.labels for each in given if each.labels is not None and each.arbiter]
    row.labels = None
    if len(found) < n_wanted:
        row.state = "skipped" if any(each.labels is None for each in given) else "open"
    elif all(same_labels(each, found[0]) for each in found):
        row.state, row.labels = "decided", found[0]
    elif last:
        row.state, row.labels = "decided", last[0]
    else:
        row.state = "disputed"
    row.revision += 1
    row.claimed_by = row.lease_until = None


def append_decided(session: Session, ref: str, request: DecidedRowsRequest) -> Job:
    """Queue the job that appends decided rows to a dataset, those that no other job has appended.

    Rows that the dataset has already, with the same id and content, get the decided labels there.

    Raises
    ------
    NotFound
        No such queue, model or dataset.
    Conflict
        The dataset was deleted or is not ready, no decided row that fits it is left, or another request appends the
        same rows.
    """
    with reading(session):
        review = by_ref(session, tables.Review, ref)
        dataset_ref = request.dataset or version_row(session, review.model, review.version).dataset_id
        if dataset_ref is None:
            raise Conflict("the dataset of the reviewed version was deleted; name another")
        dataset = by_ref(session, tables.Dataset, dataset_ref)
        row_of, new = rows_for(dataset)
        query = select(R).where(R.review_id == review.id, R.state == "decided", _waiting())
        found = session.scalars(query.order_by(R.row).limit(MOST_ROWS)).all()
        given = [(each.row, row_of(_instance(each), each.labels or [], each.row_id)) for each in found]
    rows = {number: row for number, row in given if row is not None}
    if not rows:
        why = f"none of the {len(given)} decided rows fits the dataset" if given else "no decided row is left to append"
        raise Conflict(f"{why}; decide rows first, or name another dataset")

    def claim(job: tables.Job) -> None:
        chosen = R.review_id == review.id, R.row.in_(list(rows)), R.state == "decided", _waiting()
        if len(session.scalars(update(R).where(*chosen).values(job_id=job.id).returning(R.row)).all()) != len(rows):
            raise Conflict("another request appends or changes the same rows; try again")

    new = new.model_copy(update={"part": request.part})
    return append_rows(session, dataset, new, list(rows.values()), 0, claim, corrects=True)


def _waiting() -> ColumnElement[bool]:
    """Of rows that no job has appended, or is about to."""
    taken = select(J.id).where(J.id == R.job_id, J.state.not_in(LOST)).exists()
    return ~taken


def _instance(row: tables.ReviewRow) -> dict[str, object]:
    given = {"text": row.text, "record": row.record}
    return {form: value for form, value in given.items() if value is not None}
