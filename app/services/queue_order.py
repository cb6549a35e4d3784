"""Which queued job is taken next, and when a job will be.

The order is by priority, then in turn between workspaces, within one in turn between keys, then by age: a job's turn is
the number of jobs that its key has running, and of those of its priority that it queued before this one.
"""

import heapq
from collections.abc import Iterable, Mapping

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.schemas.job_options import PRIORITIES, Priority
from app.schemas.jobs import QueuePlace
from app.services import live_workers
from app.store import tables
from app.store.db import db_now, reading

# Of the table, not of the class: who may take a job, or asks for its place, has to count those of all workspaces.
J = tables.Job.__table__.c
_RUNNING = ("running", "cancelling")
MOST = 1000
_LATEST = 20


def level_of(priority: Priority) -> int:
    """The number by which the jobs' table orders priorities: -1, 0 or 1."""
    return PRIORITIES.index(priority) - 1


def priority_of(level: int) -> Priority:
    """The name of a number that :func:`level_of` has given."""
    return PRIORITIES[level + 1]


def in_order(session: Session, queue: str, limit: int = MOST) -> list[str]:
    """Ids of the queued jobs of a queue, of all workspaces, that which is taken next first."""
    per_space = (J.priority, J.workspace)
    per_owner = (*per_space, func.coalesce(J.owner, ""))
    age = (J.created_at, J.id)
    running = select(J.workspace, J.owner, func.count().label("n")).where(J.state.in_(_RUNNING), J.queue == queue)
    of_owner = running.group_by(J.workspace, J.owner).subquery()
    spaces = select(J.workspace, func.count().label("n")).where(J.state.in_(_RUNNING), J.queue == queue)
    of_space = spaces.group_by(J.workspace).subquery()
    same_owner = func.coalesce(of_owner.c.owner, "") == func.coalesce(J.owner, "")
    turn = (func.coalesce(of_owner.c.n, 0) + func.row_number().over(partition_by=per_owner, order_by=age)).label("turn")
    queued = (
        select(J.id, J.priority, J.workspace, J.created_at, turn, func.coalesce(of_space.c.n, 0).label("others"))
        .outerjoin(of_owner, (of_owner.c.workspace == J.workspace) & same_owner)
        .outerjoin(of_space, of_space.c.workspace == J.workspace)
        .where(J.state == "queued", J.queue == queue)
        .subquery()
    ).c
    # a workspace's own jobs take their turns by key, and then the workspace takes its turn with the next of them
    within = (queued.turn, queued.created_at, queued.id)
    place = func.row_number().over(partition_by=(queued.priority, queued.workspace), order_by=within)
    order = (queued.priority.desc(), queued.others + place, *within)
    with reading(session):
        return list(session.scalars(select(queued.id).order_by(*order).limit(limit)))


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
            select(J.progress, (db_now() - J.started_at).label("since")).where(J.state.in_(_RUNNING), J.queue == queue)
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
