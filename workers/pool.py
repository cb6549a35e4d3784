"""A pool of processes that run jobs."""

import os
import socket
import time
import warnings
from typing import Any

from celery import signals
from celery.apps.worker import Worker
from celery.exceptions import SecurityWarning
from sqlalchemy.exc import DBAPIError

from app import logs, tracing
from app.config import settings
from app.store import migrate
from app.store.failures import is_passing
from app.store.privacy import keep_private
from app.store.queue import GENERAL, RUN_TASK, SHARD_TASK, make_celery
from workers import sweeper
from workers.running import job_memory, lanes
from workers.sharding.shard import run_shard
from workers.tasks import run


def run_pool(queue: str = GENERAL, concurrency: int = 2) -> None:
    """Run a worker until SIGTERM: then its jobs are given back, and it ends.

    Parameters
    ----------
    concurrency : int
        Jobs that may run at the same time, one process each; in the general pool one more process takes imports alone.
    """
    logs.configure(settings().log_level)
    logs.adopt_libraries(settings().log_level)
    # It warns of pickled messages under root; only JSON is accepted here.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    keep_private(settings().home)
    upgrade_database()
    job_memory.divide(concurrency)
    if queue == GENERAL:
        lanes.divide(concurrency)
    celery = make_celery(settings().redis_url, queue)
    celery.task(name=RUN_TASK, ignore_result=True)(run)
    celery.task(name=SHARD_TASK, ignore_result=True)(run_shard)
    signals.setup_logging.connect(_keep_logging, weak=False)
    signals.worker_process_init.connect(_give_way, weak=False)
    signals.worker_process_shutdown.connect(_end_tracing, weak=False)
    signals.worker_shutting_down.connect(_on_shutting_down, weak=False)
    name = f"{socket.gethostname()}:{os.getpid()}"
    worker = Worker(
        app=celery,
        hostname=f"polymargin@{name}",
        queues=[queue],
        # one more, which takes imports alone
        concurrency=concurrency + 1 if queue == GENERAL else concurrency,
        pool="prefork",
        loglevel="WARNING",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    )
    end_sweeping = sweeper.start(name, queue, concurrency)
    try:
        worker.start()
    finally:
        end_sweeping()
        lanes.clear()
    raise SystemExit(worker.exitcode)


def upgrade_database() -> None:
    """Bring the database to the newest schema, as soon as it is available."""
    while True:
        try:
            return migrate.upgrade(settings().sqlalchemy_url)
        except DBAPIError as error:
            if not is_passing(error):
                raise
            sweeper.log_away(error)
        time.sleep(settings().sweep_seconds)


def _keep_logging(**_: Any) -> None:
    """Do nothing: Celery does not configure logging if this signal has a listener."""


def _give_way(**_: Any) -> None:
    """In a process that runs jobs: the API, and the sweep in the main process, come first."""
    os.nice(settings().worker_niceness)
    # not before the fork: the thread that sends spans would stay behind
    tracing.configure(settings().trace_endpoint, "polymargin-worker")


def _end_tracing(**_: Any) -> None:
    tracing.end()


def _on_shutting_down(**_: Any) -> None:
    lanes.request_drain()
