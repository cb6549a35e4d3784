"""Memory that runs out in one job: it fails, and what runs beside it does not notice."""

from collections.abc import Callable
from typing import Any

import pytest
from invariants import broken
from sqlalchemy.orm import Session, sessionmaker

from app.jobs.schemas import Job
from app.models import service as models

Until = Callable[[str, Callable[[Job], bool]], Job]

# Python by which the training of one model takes far more than was estimated
GREEDY = """
import numpy
from workers.job_kinds import training
right = training.prepare
def prepare(context, *rest):
    if context.lease.request["model"] == "greedy":
        numpy.ones(3 << 28)
    return right(context, *rest)
training.prepare = prepare
"""


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_job_out_of_memory_fails_alone_beside_another_of_the_same_worker(
    workers: Any,
    configure: Callable[..., None],
    database: sessionmaker[Session],
    long_job: Callable[..., str],
    until: Until,
) -> None:
    # a lease that no busy machine lets run out
    configure(job_memory_bytes=1 << 28, lease_seconds=60)
    worker = workers.start(concurrency=2, first=GREEDY)
    sibling = long_job("sibling")
    until(sibling, lambda job: job.progress is not None and job.progress.epoch > 0)
    greedy = long_job("greedy", max_epochs=3)
    failed = until(greedy, lambda job: job.state in {"succeeded", "failed"})
    assert failed.error is not None
    assert (failed.error.code, failed.attempt) == ("out_of_memory", 1)
    assert until(sibling, lambda job: job.state in {"succeeded", "failed"}).state == "succeeded"
    # the process that it ran in takes other jobs as before
    after = [long_job(f"after{number}", max_epochs=3) for number in range(4)]
    for id in after:
        assert until(id, lambda job: job.state == "succeeded").attempt == 1
    assert (worker.poll(), workers.surplus()) == (None, {})
    with database() as session:
        assert [version.version for version in models.versions(session, "sibling")] == [1]
    assert broken(database, [sibling, greedy, *after]) == []
