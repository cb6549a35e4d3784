"""Thousands of jobs wait; a thousand of them run in the order that was forecast, and the others still wait."""

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

N_JOBS, N_DONE = 5_000, 1_000


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_of_thousands_of_queued_jobs_a_thousand_run_in_order(
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
        forecast = queue_order.in_order(session, GENERAL, n_first)
        for row in rows[:n_first]:
            tasks.run(row["id"])
        forecast += queue_order.in_order(session, GENERAL, N_JOBS)
    for row in rows[n_first:N_DONE]:
        tasks.run(row["id"])
    assert done == forecast[:N_DONE]
    with database() as session:
        assert queue_order.in_order(session, GENERAL, N_JOBS) == forecast[N_DONE:]
    with database() as session, reading(session):
        ended = session.scalars(select(func.count()).where(tables.Job.state == "failed")).one()
    assert (len(done), ended, len(forecast)) == (N_DONE, N_DONE, N_JOBS)
