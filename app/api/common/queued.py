"""What routes share that queue a job: asked again with the same key, they answer with the first one's."""

from collections.abc import Callable

from fastapi import Response
from sqlalchemy.orm import Session

from app.api.common.parameters import Once, point_to
from app.api.common.paths import V1
from app.schemas.jobs.jobs import Job
from app.services.common.idempotency import fingerprint, once
from app.services.jobs import jobs
from app.store import tables


def queue_once(
    session: Session, response: Response, token: Once, asked: tuple[str, ...], make: Callable[[], Job]
) -> Job:
    """The job that ``make`` queues, or the one of the same request before; ``asked`` tells requests apart."""
    job, replayed = once(session, token, fingerprint(*asked), tables.Job, make, jobs.get)
    point_to(response, f"{V1}/jobs/{job.id}", replayed)
    return job
