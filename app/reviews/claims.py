"""Claims: which rows of a review queue a person has, and for how long."""

from collections.abc import Sequence

from sqlalchemy import exists, or_, select, update
from sqlalchemy.orm import Session

from app.reviews.rows import FRESH, caller, shown
from app.reviews.schemas import ClaimRequest, ReviewRow
from app.store import tables
from app.store.db import db_now, writing
from app.store.lookup import by_ref

R, O = tables.ReviewRow, tables.ReviewOpinion


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
