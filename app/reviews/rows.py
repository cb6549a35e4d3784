"""The rows of a review queue: as the caller may see them, and who has claimed them for how long."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import and_, exists, or_, select, update
from sqlalchemy.orm import Session

from app.reviews.schemas import Alternative, ClaimRequest, Opinion, ReviewRow, ReviewRowPage
from app.store import tables
from app.store.db import db_now, reading, writing
from app.store.lookup import by_ref, moment_or_none, to_schema
from app.store.scope import scope_of

R, O = tables.ReviewRow, tables.ReviewOpinion
# of queries for rows that are locked: as they are now, not as the session knows them
FRESH = {"populate_existing": True}


def listed(session: Session, ref: str, limit: int, after: int | None = None, state: str | None = None) -> ReviewRowPage:
    """Rows of a queue in order, behind the place ``after``.

    Raises
    ------
    NotFound
        There is no such queue.
    """
    with reading(session):
        review = by_ref(session, tables.Review, ref)
        now: float = session.scalars(select(db_now())).one()
        query = select(R).where(R.review_id == review.id)
        live = and_(R.lease_until.is_not(None), R.lease_until > now)
        if after is not None:
            query = query.where(R.place > after)
        if state == "claimed":
            query = query.where(R.state == "open", live)
        elif state == "open":
            query = query.where(R.state == "open", ~live)
        elif state is not None:
            query = query.where(R.state == state)
        found = session.scalars(query.order_by(R.place).limit(limit + 1)).all()
        next_place = found[limit - 1].place if len(found) > limit else None
        return ReviewRowPage(rows=shown(session, review, found[:limit], caller(session), now), next_place=next_place)


def caller(session: Session) -> str:
    """Whom the caller's decisions are counted for."""
    scope = scope_of(session)
    return (scope and scope.owner) or "unknown"


def opinions(session: Session, review_id: str, numbers: Sequence[int]) -> Sequence[tables.ReviewOpinion]:
    """What people said of some rows, by row and time."""
    query = select(O).where(O.review_id == review_id, O.row.in_(numbers)).order_by(O.row, O.decided_at, O.person)
    return session.scalars(query, execution_options=FRESH).all()


def shown(
    session: Session, review: tables.Review, found: Sequence[tables.ReviewRow], person: str, now: float
) -> list[ReviewRow]:
    """Rows as the person may see them: blind queues hide probabilities, and a first opinion stays hidden."""
    given: dict[int, list[Any]] = {row.row: [] for row in found}
    if found:
        for each in opinions(session, review.id, list(given)):
            given[each.row].append(each)
    return [_shown_row(review, row, given[row.row], person, now) for row in found]


def _shown_row(
    review: tables.Review, row: tables.ReviewRow, given: Sequence[tables.ReviewOpinion], person: str, now: float
) -> ReviewRow:
    blind, sets = review.sure_share > 0, review.label_separator is not None
    live = row.lease_until is not None and row.lease_until > now
    hidden = {"probability": None} if blind and row.state != "decided" else {}
    everyones = row.state in ("decided", "disputed")  # a second opinion must not know the first
    return to_schema(
        ReviewRow,
        row,
        id=row.row_id,
        record=row.beside_text,
        alternatives=[
            Alternative.model_validate({"predicted": at == 0} | each | hidden)
            for at, each in enumerate(row.alternatives)
        ],
        sure=row.sure if row.state == "decided" else None,
        state="claimed" if live and row.state == "open" else row.state,
        label=None if sets or not row.labels else row.labels[0],
        claimed_by=row.claimed_by if live else None,
        claimed_until=moment_or_none(row.lease_until) if live else None,
        job=row.job_id,
        opinions=[
            to_schema(Opinion, each, label=None if sets or not each.labels else each.labels[0])
            for each in given
            if everyones or each.person == person
        ],
    )


def claim(session: Session, ref: str, request: ClaimRequest) -> list[ReviewRow]:
    """Claim rows that nobody has and that the caller has not decided, the least sure first.

    Callers that claim at the same time get different rows: each skips what another one has locked on PostgreSQL, and
    SQLite lets one of them write at a time.

    Raises
    ------
    NotFound
        There is no such queue.
    """
    person = caller(session)
    with writing(session):
        review = by_ref(session, tables.Review, ref)
        now: float = session.scalars(select(db_now())).one()
        own = exists().where(O.review_id == R.review_id, O.row == R.row, O.person == person, O.labels.is_not(None))
        free = or_(R.lease_until.is_(None), R.lease_until <= now)
        query = select(R).where(R.review_id == review.id, R.state == request.state, free, ~own)
        query = query.order_by(R.place).limit(request.count).with_for_update(skip_locked=True)
        rows = session.scalars(query, execution_options=FRESH).all()
        for row in rows:
            row.claimed_by, row.lease_until = person, now + 60.0 * request.minutes
        session.flush()
        return shown(session, review, rows, person, now)


def release(session: Session, ref: str, numbers: Sequence[int]) -> None:
    """Give rows back that the caller has claimed, so that others can claim them; other rows stay as they are.

    Raises
    ------
    NotFound
        There is no such queue.
    """
    with writing(session):
        review = by_ref(session, tables.Review, ref)
        own = R.review_id == review.id, R.row.in_(numbers), R.claimed_by == caller(session)
        session.execute(update(R).where(*own).values(claimed_by=None, lease_until=None))
