"""Where queued jobs stand in the order of their queue, and when each of them is taken."""

import heapq
from collections.abc import Iterable, Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.schemas.jobs.jobs import QueuePlace
from app.services.engine import live_workers
from app.services.engine.queue_order import RUNNING, in_order
from app.store import tables
from app.store.db import db_now, reading

# Of the table, not of the class, as in the order
J = tables.Job.__table__.c
_LATEST = 20


def places(session: Session, rows: Iterable[tables.Job]) -> Mapping[str, QueuePlace]:
    """Where each of the queued ones among ``rows`` stands, by id."""
    queued = [row for row in rows if row.state == "queued"]
    found: dict[str, QueuePlace] = {}
    for queue in sorted({row.queue for row in queued}):
        order = in_order(session, queue)
        starts = _starts(session, queue, len(order))
        position = {id: at for at, id in enumerate(order)}
        for row in queued:
            at = position.get(row.id)
            if row.queue == queue and at is not None:
                found[row.id] = QueuePlace(position=at + 1, starts_in_seconds=starts[at])
    return found


def _starts(session: Session, queue: str, n: int) -> list[float | None]:
    """Seconds until each of the next ``n`` jobs is taken: each process goes on with the next as soon as it is free."""
    with reading(session):
        processes = live_workers.alive(session).get(queue, 0)
        ended = (J.state == "succeeded") & (J.queue == queue) & J.started_at.is_not(None)
        latest = select((J.finished_at - J.started_at).label("took")).where(ended).order_by(J.finished_at.desc())
        took = [float(seconds) for seconds in session.scalars(latest.limit(_LATEST))]
        running = session.execute(
            select(J.progress, (db_now() - J.started_at).label("since")).where(J.state.in_(RUNNING), J.queue == queue)
        ).all()
    mean = sum(took) / len(took) if took else None
    left = [_left(row.progress, row.since, mean) for row in running]
    free: list[float] = [0.0] * max(0, processes - len(left)) + [each for each in left if each is not None]
    if not processes:
        return [None] * n
    heapq.heapify(free)
    found: list[float | None] = []
    for _ in range(n):
        if not free:
            found.append(None)
            continue
        at = heapq.heappop(free)
        found.append(at)
        if mean is not None:
            heapq.heappush(free, at + mean)
    return found


def _left(progress: Mapping[str, object] | None, since: float | None, mean: float | None) -> float | None:
    eta = (progress or {}).get("eta_seconds")
    if isinstance(eta, int | float):
        return float(eta)
    return None if mean is None else max(0.0, mean - float(since or 0.0))
