"""The order of queued jobs, and the forecast of when each starts."""

import heapq
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, String, and_, bindparam, case, func, literal, select, tuple_
from sqlalchemy.orm import Session

from app.jobs import slots
from app.jobs import trials as trial_jobs
from app.jobs.schemas import JobKind, QueuePlace
from app.schemas import PRIORITIES, Priority
from app.store import tables
from app.store.db import db_now, reading
from app.store.queue import GENERAL

# Of the table, not of the class: who may take a job, or asks for its place, has to count those of all workspaces.
_JOBS = tables.Job.__table__
RUNNING = ("running", "cancelling")
MOST = 1000
_LEAST_READ = 4
# the turn, when its key was last served, when it was made, its id
_Turn = tuple[int, float, float, str]


def level_of(priority: Priority) -> int:
    """The number by which the jobs' table orders priorities: -1, 0 or 1."""
    return PRIORITIES.index(priority) - 1


def priority_of(level: int) -> Priority:
    """The name of a number that :func:`level_of` has given."""
    return PRIORITIES[level + 1]


def in_order(session: Session, queue: str, limit: int = MOST) -> list[str]:
    """Ids of the first ``limit`` queued jobs of a queue, of all workspaces, that which is taken next first."""
    return list(itertools.islice(upcoming(session, queue), limit))


def upcoming(session: Session, queue: str) -> Iterator[str]:
    """As :func:`in_order` all of them, read as they are asked for.

    An index orders the jobs of a key by age, and the oldest of each key is looked up there: the first job costs the
    same whatever the number of the others.
    """
    for level in range(1, -2, -1):
        yield from _of_priority(session, queue, level)


def _of_priority(session: Session, queue: str, priority: int) -> Iterator[str]:
    with reading(session):
        keys = session.execute(_OLDEST, {"queue": queue, "priority": priority})
        oldest = [row for row in keys if row.id is not None]
        ages = select(_JOBS.c.id, _JOBS.c.created_at).where(_JOBS.c.id.in_([row.id for row in oldest]))
        made = {row.id: float(row.created_at) for row in session.execute(ages)} if oldest else {}
        running = _running(session, queue)
    spaces: dict[tuple[float, str], list[Iterator[_Turn]]] = {}
    for row in oldest:
        first = (running[row.workspace, row.owner] + 1, row.served or 0.0, made[row.id], row.id)
        keys_of_space = spaces.setdefault((row.space_served or 0.0, row.workspace), [])
        keys_of_space.append(_of_key(session, queue, priority, row.workspace, row.owner, first))
    # a workspace's own jobs take their turns by key, and then the workspace takes its turn with the next of them
    ranked = []
    for (served, workspace), of_keys in spaces.items():
        others = sum(n for (of, _), n in running.items() if of == workspace)
        ranked.append(zip(itertools.count(others + 1), itertools.repeat(served), heapq.merge(*of_keys)))
    for _, _, (*_, id) in heapq.merge(*ranked):
        yield id


def _of_key(session: Session, queue: str, priority: int, workspace: str, owner: str, first: _Turn) -> Iterator[_Turn]:
    yield first
    turn, served, *last = first
    given = {"queue": queue, "priority": priority, "workspace": workspace, "owner": owner}
    n = _LEAST_READ
    while True:
        given |= {"created_at": last[0], "id": last[1], "n": n}
        with reading(session):
            rows = session.connection().execute(_LATER if owner else _LATER_OF_NOBODY, given).all()
        for row in rows:
            turn += 1
            yield turn, served, row.created_at, row.id
        if len(rows) < n:
            return
        last = list(rows[-1])
        n = min(16 * n, MOST)


def _running(session: Session, queue: str) -> Counter[tuple[str, str]]:
    c = _JOBS.c
    # counted here: grouped by SQL, SQLite would read all jobs in the order of an index
    rows = session.execute(select(c.workspace, c.owner).where(c.queue == queue, c.state.in_(RUNNING)))
    return Counter((row.workspace, row.owner or "") for row in rows)


def _oldest_of_each_key() -> Select[Any]:
    """Workspace, owner (empty for none) and id of each key's oldest job, and when both were served, by indices."""
    c = _JOBS.alias("next_job").c
    spaces = select(func.min(c.workspace).label("workspace")).where(_queued(c)).cte("spaces", recursive=True)
    after = select(func.min(c.workspace)).where(_queued(c), c.workspace > spaces.c.workspace).scalar_subquery()
    spaces = spaces.union_all(select(after).where(spaces.c.workspace.is_not(None)))
    # no key has an empty name: it means jobs whose owner is not known
    keys = select(spaces.c.workspace, literal("", String).label("owner")).where(spaces.c.workspace.is_not(None))
    owners = keys.cte("owners", recursive=True)
    of_space = and_(_queued(c), c.workspace == owners.c.workspace)
    following = select(func.min(c.owner)).where(of_space, c.owner > owners.c.owner).scalar_subquery()
    owners = owners.union_all(select(owners.c.workspace, following).where(owners.c.owner.is_not(None)))
    of_key = select(c.id).where(_queued(c), c.workspace == owners.c.workspace, ~trial_jobs.waits(c))
    oldest = of_key.order_by(c.created_at, c.id).limit(1).correlate(owners)
    id = case(
        (owners.c.owner == "", oldest.where(c.owner.is_(None)).scalar_subquery()),
        else_=oldest.where(c.owner == owners.c.owner).scalar_subquery(),
    )
    started = select(c.started_at).where(c.queue == bindparam("queue"), c.workspace == owners.c.workspace)
    started = started.where(c.started_at.is_not(None)).order_by(c.started_at.desc()).limit(1).correlate(owners)
    # nobody remembers whose jobs those without an owner were, nor when they were served
    served = started.where(c.owner == owners.c.owner).scalar_subquery().label("served")
    space_served = started.scalar_subquery().label("space_served")
    shown = select(owners.c.workspace, owners.c.owner, id.label("id"), served, space_served)
    return shown.where(owners.c.owner.is_not(None))


def _later(of_nobody: bool) -> Select[Any]:
    """Times and ids of the ``n`` jobs of a key that come after one of its own."""
    c = _JOBS.c
    mine = c.owner.is_(None) if of_nobody else c.owner == bindparam("owner")
    after = tuple_(c.created_at, c.id) > tuple_(bindparam("created_at"), bindparam("id"))
    query = select(c.created_at, c.id).where(_queued(c), c.workspace == bindparam("workspace"), mine, after)
    return query.where(~trial_jobs.waits(c)).order_by(c.created_at, c.id).limit(bindparam("n"))


def _queued(c: Any) -> ColumnElement[bool]:
    return and_(c.queue == bindparam("queue"), c.state == "queued", c.priority == bindparam("priority"))


# to make these takes twenty times as long as to run them
_OLDEST = _oldest_of_each_key()
_LATER, _LATER_OF_NOBODY = _later(False), _later(True)


# Of the table, not of the class, as in the order
J = tables.Job.__table__.c
_LATEST = 20
IMPORT = "import"


def places(session: Session, rows: Iterable[tables.Job]) -> Mapping[str, QueuePlace]:
    """The place in the queue of each queued job among ``rows``, by id."""
    queued = [row for row in rows if row.state == "queued"]
    found: dict[str, QueuePlace] = {}
    for queue in sorted({row.queue for row in queued}):
        order = in_order(session, queue)
        starts, running = _starts(session, queue, order)
        position = {id: at for at, id in enumerate(order)}
        for row in queued:
            at = position.get(row.id)
            if row.queue == queue and at is not None:
                found[row.id] = QueuePlace(position=at + 1, starts_in_seconds=starts[at], running=running)
    return found


def _starts(session: Session, queue: str, order: Sequence[str]) -> tuple[list[float | None], list[JobKind]]:
    """Seconds until each of the next jobs is taken, and the kinds of those that run.

    Each process goes on with the next job as soon as it is free.

    Imports have a process of their own beside the others in the general pool, and take whichever is free first.
    """
    with reading(session):
        processes = slots.processes_alive(session).get(queue, 0)
        ended = (J.state == "succeeded") & (J.queue == queue) & J.started_at.is_not(None)
        latest = (
            select(J.kind, (J.finished_at - J.started_at).label("took")).where(ended).order_by(J.finished_at.desc())
        )
        took = session.execute(latest.limit(_LATEST)).all()
        running = session.execute(
            select(J.kind, J.progress, (db_now() - J.started_at).label("since")).where(
                J.state.in_(RUNNING), J.queue == queue
            )
        ).all()
        imports = set(session.scalars(select(J.id).where(J.id.in_(order), J.kind == IMPORT)))
    kinds = sorted({row.kind for row in running})
    if not processes:
        return [None] * len(order), kinds
    means = {
        is_import: _mean([float(row.took) for row in took if (row.kind == IMPORT) == is_import])
        for is_import in (True, False)
    }
    # the times at which the processes for all jobs are free, and those of the one for imports
    lanes: dict[bool, list[float | None]] = {True: [], False: []}
    n_lanes = {True: 1 if queue == GENERAL else 0, False: processes}
    for row in running:
        is_import = row.kind == IMPORT
        lane = is_import and len(lanes[True]) < n_lanes[True]
        lanes[lane].append(_left(row.progress, row.since, means[is_import]))
    free = {
        lane: [0.0] * max(0, n_lanes[lane] - len(left)) + [each for each in left if each is not None]
        for lane, left in lanes.items()
    }
    for each in free.values():
        heapq.heapify(each)
    found: list[float | None] = []
    for id in order:
        own = [lane for lane in (False, True) if free[lane] and (id in imports or not lane)]
        if not own:
            found.append(None)
            continue
        lane = min(own, key=lambda lane: free[lane][0])
        at, mean = heapq.heappop(free[lane]), means[id in imports]
        found.append(at)
        if mean is not None:
            heapq.heappush(free[lane], at + mean)
    return found, kinds


def _mean(seconds: Sequence[float]) -> float | None:
    return sum(seconds) / len(seconds) if seconds else None


def _left(progress: Mapping[str, object] | None, since: float | None, mean: float | None) -> float | None:
    """Seconds that a running job still takes; None where it says nothing and has run for longer than others."""
    eta = (progress or {}).get("eta_seconds")
    if isinstance(eta, int | float):
        return float(eta)
    return None if mean is None or mean < float(since or 0.0) else mean - float(since or 0.0)
