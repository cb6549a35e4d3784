"""Logs as JSON lines on standard error, one an event; what cannot be written is lost, and nothing else is."""

import contextlib
import logging
import sys
from collections.abc import Callable
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

_json = structlog.processors.JSONRenderer()


Keep = Callable[[str, str, dict[str, Any]], None]


def render(logger: Any, name: str, event: EventDict) -> str:
    """The line of an event; of one that cannot be spelled, its name and why."""
    try:
        return str(_json(logger, name, event))
    except Exception as error:
        return str(_json(logger, name, {"event": str(event.get("event"))[:200], "unreadable": type(error).__name__}))


def reported(logger: Any, name: str, event: EventDict) -> EventDict:
    """Add an event that names a job to that job's log."""
    keep = _kept.get(str(event.get("job_id")))
    if keep is not None:
        fields = {key: value for key, value in event.items() if key not in _OF_EVERY_LINE}
        keep(str(event.get("level", "info")), str(event.get("event")), fields)
    return event


def keep_log(job_id: str, keep: Keep) -> None:
    """Call ``keep`` with level, event and fields of each event that names the job, until :func:`end_log`."""
    _kept[job_id] = keep


def end_log(job_id: str) -> None:
    """Keep no more of that job's events."""
    _kept.pop(job_id, None)


_kept: dict[str, Keep] = {}
# an exception's text may quote the data, so it is only in the worker's log
_OF_EVERY_LINE = {"job_id", "attempt", "level", "event", "timestamp", "exception", "exc_info", "stack_info"}

SHARED: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
]


class StandardError:
    """Writes lines to standard error, as it is at that moment.

    Work must not end because its log cannot be written: on a disk that is full, and where nobody reads any more, the
    line is lost.
    """

    def msg(self, line: str) -> None:
        """Write a line."""
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed: ValueError; none at all: None has none
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

    log = debug = info = warning = warn = error = critical = exception = failure = fatal = msg


class _Handler(logging.Handler):
    """Takes what libraries log."""

    def __init__(self) -> None:
        super().__init__()
        self._out = StandardError()

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):  # a message whose arguments do not fit it
            self._out.msg(self.format(record))


def configure(level: str) -> None:
    """Let events of ``level`` (debug, info, warning or error) and above through, for this whole process."""
    structlog.configure(
        processors=[*SHARED, reported, render],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=lambda *_: StandardError(),
        cache_logger_on_first_use=False,
    )


def adopt_libraries(level: str) -> None:
    """Write what libraries log with the standard ``logging`` in the same form, in place of any earlier handler."""
    handler = _Handler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *SHARED],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Celery's own messages only carry ids of jobs; what happens to jobs is logged by those who run them.
    for name in ("celery", "kombu", "alembic"):
        logging.getLogger(name).setLevel(max(root.level, logging.WARNING))
