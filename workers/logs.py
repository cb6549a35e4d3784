"""Structured logs on standard error, one JSON object a line."""

import logging
import sys

import structlog
from structlog.typing import Processor


def configure(level: str) -> None:
    """Send structlog's and the standard library's records to standard error as JSON."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Every message of Celery's own is a doorbell; what happens to jobs is logged here.
    logging.getLogger("celery").setLevel(max(root.level, logging.WARNING))
    logging.getLogger("kombu").setLevel(max(root.level, logging.WARNING))
    logging.getLogger("alembic").setLevel(max(root.level, logging.WARNING))
