"""Pools of shards as threads of the test's process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.jobs import slots
from app.store import tables
from app.store.db import reading
from workers.sharding.shard import run_shard


@contextmanager
def pools(database: sessionmaker[Session], n: int, processes: int = 1) -> Iterator[list[str]]:
    """Pools ``shard-0`` to ``shard-(n-1)``, which take their slots as soon as those are reserved."""
    queues = [f"shard-{i}" for i in range(n)]
    stop = threading.Event()
    threads = []

    def attend(queue: str) -> None:
        S = tables.Slot
        with database() as session:
            while not stop.wait(0.02):
                slots.report_worker(session, f"test:{queue}", queue, processes)
                with reading(session):
                    lease = session.execute(
                        select(S.job_id, S.rank).where(S.queue == queue, S.worker.is_(None), S.job_id.is_not(None))
                    ).first()
                if lease is not None:
                    run_shard(lease.job_id, lease.rank)

    for queue in queues:
        with database() as session:
            slots.report_worker(session, f"test:{queue}", queue, processes)
        threads += [threading.Thread(target=attend, args=(queue,), name=queue) for _ in range(processes)]
    for thread in threads:
        thread.start()
    try:
        yield queues
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        with database() as session:
            for queue in queues:
                slots.worker_ends(session, f"test:{queue}")
