"""Logs as JSON lines on standard error, one an event."""

import logging
import sys

import structlog
from structlog.typing import Processor

SHARED: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
]


def configure(level: str) -> None:
    """Let events of ``level`` (debug, info, warning or error) and above through, for this whole process."""
    structlog.configure(
        processors=[*SHARED, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )


def adopt_libraries(level: str) -> None:
    """Write what libraries tell the standard ``logging`` in the same form, in place of any handler that was there."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *SHARED],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Celery's own messages only carry ids of jobs; what happens to jobs is logged by those who run them.
    for name in ("celery", "kombu", "alembic"):
        logging.getLogger(name).setLevel(max(root.level, logging.WARNING))
