"""A job as a stream of server-sent events, read from SQL in short looks."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from app.access.authentication import require_still
from app.errors import Unauthenticated
from app.jobs import logs as job_logs
from app.jobs import service as jobs
from app.jobs.schemas import FINAL_STATES, Job, JobStep

MEDIA_TYPE = "text/event-stream"

_LOOK_SECONDS = 0.3
_HEARTBEAT_SECONDS = 10.0
_STEPS = 1000


async def follow(request: Request, opened: Callable[[], Session], id: str, after: int) -> AsyncIterator[bytes]:
    """The steps numbered above ``after`` and every change of the job, until it is over, the client has
    gone, or what it was let in by has ended.

    Between two looks neither a thread nor a connection is held.
    """
    shown: Job | None = None
    spoke = time.monotonic()
    yield b"retry: 2000\n\n"
    while not await request.is_disconnected():
        try:
            await require_still(request)
        except Unauthenticated:
            return
        job, steps = await run_in_threadpool(_look, opened, id, after)
        message = b"".join(_event("step", step.model_dump_json(), step.number) for step in steps)
        more = len(steps) == _STEPS
        if not more and (shown is None or _differs(job, shown)):
            message += _event("state", job.model_dump_json())
            shown = job
        if message:
            yield message
            spoke = time.monotonic()
        after = steps[-1].number if steps else after
        if more:
            continue
        if job.state in FINAL_STATES:
            return
        if time.monotonic() - spoke >= _HEARTBEAT_SECONDS:
            yield b": still here\n\n"
            spoke = time.monotonic()
        await asyncio.sleep(_LOOK_SECONDS)


def _differs(job: Job, shown: Job) -> bool:
    # when a queued job starts is estimated again at every look
    but = {"queue": {"starts_in_seconds"}}
    return job.model_dump(exclude=but) != shown.model_dump(exclude=but)


def _look(opened: Callable[[], Session], id: str, after: int) -> tuple[Job, list[JobStep]]:
    with opened() as session:
        # The job first: if it is over, the steps read after it are all that there will be.
        job = jobs.get(session, id)
        return job, job_logs.steps(session, id, after, _STEPS).steps


def _event(kind: str, data: str, number: int | None = None) -> bytes:
    name = "" if number is None else f"id: {number}\n"
    return f"event: {kind}\n{name}data: {data}\n\n".encode()
