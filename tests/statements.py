"""Statements of SQL that are compiled once in a process of tests, where each test has engines of its own.

SQLAlchemy keeps what it has compiled with an engine, and by the engine's dialect. A test with an empty database spends
half of its time on that; the service itself has one engine for all its life.
"""

from functools import partial
from typing import Any

from sqlalchemy import create_engine
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.util import LRUCache

from app.store import db

# as many as an engine keeps
_compiled: LRUCache[Any, Any] = LRUCache(500)


def share_statements() -> None:
    """From now on dialects of one class are the same, and all engines of the store keep statements in one place."""
    dialect: Any = DefaultDialect
    dialect.__eq__ = lambda self, other: type(self) is type(other)
    dialect.__hash__ = lambda self: hash(type(self))
    store: Any = db
    store.create_engine = partial(create_engine, execution_options={"compiled_cache": _compiled})
