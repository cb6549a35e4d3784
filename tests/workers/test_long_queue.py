"""Ten thousand jobs wait; three thousand of them are worked off, and the others still wait, as was foretold."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session, sessionmaker

from app.jobs import queue as queue_order
from app.store import tables
from app.store.db import new_id, reading, writing
from app.store.queue import GENERAL
from workers import tasks

N_JOBS, N_DONE = 10_000, 3_000


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_of_ten_thousand_queued_jobs_three_thousand_are_worked_off_in_order(
    database: sessionmaker[Session], configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(log_level="critical")
    done: list[str] = []
    monkeypatch.setattr(
        tasks, "WORK", {"train": lambda context: (done.append(context.lease.job_id), context.end("failed"))}
    )
    fixed: dict[str, Any] = {"kind": "train", "state": "queued", "queue": GENERAL, "request": {}, "losses": 0}
    rows = [
        {"id": new_id(), "priority": number % 7 // 6, "workspace": f"w{number % 3}", "owner": f"k{number % 11}"}
        | {"attempt": 0, "created_at": 1e9 + number, **fixed}
        for number in range(N_JOBS)
    ]
    with database() as session, writing(session):
        session.execute(insert(tables.Job), rows)
    # of those that wait for another priority the keys' turns are known when it comes to them
    n_first = sum(row["priority"] == 1 for row in rows)
    with database() as session:
        foretold = queue_order.in_order(session, GENERAL, n_first)
        for row in rows[:n_first]:
            tasks.run(row["id"])
        foretold += queue_order.in_order(session, GENERAL, N_JOBS)
    for row in rows[n_first:N_DONE]:
        tasks.run(row["id"])
    assert done == foretold[:N_DONE]
    with database() as session:
        assert queue_order.in_order(session, GENERAL, N_JOBS) == foretold[N_DONE:]
    with database() as session, reading(session):
        ended = session.scalars(select(func.count()).where(tables.Job.state == "failed")).one()
    assert (len(done), ended, len(foretold)) == (N_DONE, N_DONE, N_JOBS)
