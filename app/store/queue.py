"""The message queue: Celery over Redis carries ids of jobs only, and losing all of it loses nothing."""

from functools import lru_cache
from typing import Any

import redis
from celery import Celery
from kombu.connection import Connection
from kombu.entity import Exchange, Queue
from kombu.exceptions import KombuError
from kombu.messaging import Producer

from app.config import settings
from app.store.db import new_id

RUN_TASK = "polymargin.run"
SHARD_TASK = "polymargin.run_shard"
GENERAL = "general"

_NOTIFY_SECONDS = 2.0
_SILENT_SECONDS = 15.0
_AWAY = (KombuError, redis.RedisError, OSError)


def make_celery(redis_url: str, *consumed: str) -> Celery:
    """The Celery application over the Redis at ``redis_url`` (redis://, rediss:// or unix://path).

    Parameters
    ----------
    consumed : str
        Queues whose messages it takes. They are not acknowledged, as a lost one is sent again: an acknowledgement that
        fails while Redis is away would count as a message under way forever, and the worker would take no other.
    """
    celery = Celery("polymargin")
    celery.conf.update(
        broker_url=_broker_url(redis_url),
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "socket_keepalive": True,
            "health_check_interval": 10,
            # A connection may be dead without a word, as behind a router that has forgotten it: what is asked on it
            # would be waited for without end, and so would the messages of this worker.
            "socket_timeout": _SILENT_SECONDS,
            "socket_connect_timeout": _SILENT_SECONDS,
        },
        accept_content=["json"],
        task_serializer="json",
        result_serializer="json",
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        task_default_queue=GENERAL,
        task_queues=[_unacknowledged(name) for name in consumed] or None,
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=True,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        worker_pool_start_method="fork",  # the processes share their main process's order to end
        # A child imports the numerics before it is ready; the default of 4 s kills it on a busy machine.
        worker_proc_alive_timeout=120.0,
    )
    return celery


def notify_worker(job_id: str, queue: str, rank: int | None = None) -> bool:
    """Notify a worker of ``queue`` of a job, or of one shard of it.

    Returns
    -------
    bool
        False where Redis is away; nothing is raised, and a sweep notifies again.
    """
    try:
        with _connection() as connection:
            celery = _celery(settings().redis_url)
            producer = Producer(connection, serializer="json")  # type: ignore[no-untyped-call]
            task, args = (RUN_TASK, [job_id]) if rank is None else (SHARD_TASK, [job_id, rank])
            celery.amqp.send_task_message(
                producer,
                task,
                celery.amqp.create_task_message(new_id(), task, args=args, kwargs={}, ignore_result=True),
                queue=queue,
                retry=False,
            )
    except _AWAY:
        return False
    return True


def n_waiting(queue: str, redis_url: str | None = None) -> int | None:
    """How many messages wait in ``queue``; None where Redis is away."""
    try:
        with _connection(redis_url) as connection:
            size: int = connection.default_channel.client.llen(queue)
            return size
    except _AWAY:
        return None


def clear(queue: str) -> bool:
    """Remove all messages that wait in ``queue``; False where Redis is away."""
    try:
        with _connection() as connection:
            connection.default_channel.client.delete(queue)
    except _AWAY:
        return False
    return True


def reachable(redis_url: str | None = None) -> bool:
    """Whether Redis answers: that of the settings, or one at another address."""
    return n_waiting(GENERAL, redis_url) is not None


def _unacknowledged(name: str) -> Queue:
    exchange = Exchange(name)  # type: ignore[no-untyped-call]
    return Queue(name, exchange, routing_key=name, no_ack=True)  # type: ignore[no-untyped-call]


@lru_cache(maxsize=1)
def _celery(redis_url: str) -> Celery:
    return make_celery(redis_url)


def _connection(redis_url: str | None = None) -> Any:
    # Its own short-lived connection: a pooled one may be dead since Redis was restarted, and kombu tries forever by
    # default, which would hang the request that notifies.
    return Connection(  # type: ignore[no-untyped-call]
        _broker_url(redis_url or settings().redis_url),
        transport_options={
            "max_retries": 0,
            "interval_start": 0,
            "interval_step": 0,
            "interval_max": 0,
            "socket_timeout": _NOTIFY_SECONDS,
            "socket_connect_timeout": _NOTIFY_SECONDS,
            "connect_retries_timeout": _NOTIFY_SECONDS,
        },
    )


def _broker_url(redis_url: str) -> str:
    return "redis+socket://" + redis_url.removeprefix("unix://") if redis_url.startswith("unix://") else redis_url
