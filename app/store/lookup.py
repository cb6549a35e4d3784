"""Lookup by id or unique name, and pagination."""

import base64
import binascii
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel
from sqlalchemy import Select, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session
from sqlalchemy.orm.interfaces import ORMOption

from app.errors import Forbidden, InvalidInput, Item, NotFound
from app.schemas import NAME_PATTERN
from app.store import tables
from app.store.scope import scope_of
from app.store.tables import Owned
from app.store.tables.base import Table

B = TypeVar("B", bound=BaseModel)
Row = TypeVar(
    "Row",
    tables.AuditEntry,
    tables.Dataset,
    tables.Evaluation,
    tables.Feedback,
    tables.Hierarchy,
    tables.Job,
    tables.Key,
    tables.Model,
    tables.ModelVersion,
    tables.Review,
    tables.Rule,
    tables.RuleRun,
    tables.Webhook,
    tables.WebhookDelivery,
)
Named = TypeVar("Named", tables.Dataset, tables.Hierarchy, tables.Model, tables.Review, tables.Rule, tables.Webhook)

MAX_PAGE = 1000


def check_range(offset: int, limit: int, most: int) -> None:
    """Raise InvalidInput unless offset is 0 or more and limit from 1 to ``most``."""
    if offset < 0 or not 1 <= limit <= most:
        raise InvalidInput(f"offset must be 0 or more and limit 1 to {most}; got offset {offset} and limit {limit}")


def by_ref(session: Session, table: type[Named], ref: str, *options: ORMOption, lock: bool = False) -> Named:
    """The row whose id or name is ``ref``; ``lock`` holds it to the end of the transaction.

    Raises
    ------
    NotFound
        There is none.
    """
    query = select(table).where(or_(table.id == ref, table.name == ref)).options(*options)
    if lock:
        query = query.with_for_update()
    # A name may look like another row's id: the id wins.
    rows = sorted(session.scalars(query), key=lambda row: row.id != ref)
    if not rows:
        raise NotFound(f"no {table.__name__.lower()} is named {ref!r:.80}")
    return rows[0]


def by_id(session: Session, table: type[Row], id: str) -> Row:
    """The row with that id; raises NotFound."""
    row = session.get(table, id)
    if row is None:
        raise NotFound(f"no {table.__name__.lower()} has the id {id!r:.80}")
    return row


def newest(
    session: Session,
    table: type[Row],
    query: Select[Any],
    page_size: int,
    page_token: str | None,
    id: InstrumentedAttribute[str] | None = None,
) -> tuple[Sequence[Row], str | None]:
    """Up to ``page_size`` rows of ``query`` by falling id, and the token of the following page.

    ``id`` is by default the table's; a query that joins another table by it is fast by the column whose index it uses.

    Raises
    ------
    InvalidInput
        The size is out of range, or the token does not come from a page.
    """
    if not 1 <= page_size <= MAX_PAGE:
        raise InvalidInput(f"page_size must be 1 to {MAX_PAGE}; got {page_size}")
    by = table.id if id is None else id
    if page_token:
        query = query.where(by < _id_of(page_token))
    rows = list(session.scalars(query.order_by(by.desc()).limit(page_size + 1)))
    more = len(rows) > page_size
    return rows[:page_size], _token_of(rows[page_size - 1].id) if more else None


def require_owner(session: Session, row: Owned) -> None:
    """Raise Forbidden unless the session's key owns the row or is an administrator."""
    scope = scope_of(session)
    if scope is not None and not scope.administers and row.owner != scope.owner:
        whose = "was created before owners were recorded" if row.owner is None else f"belongs to the key {row.owner!r}"
        raise Forbidden(f"It {whose}; only its owner and administrators may do this.")


def check_name(name: str) -> None:
    """Raise InvalidInput unless ``name`` fits URLs."""
    if not re.fullmatch(NAME_PATTERN, name):
        raise InvalidInput(
            "the name is not valid in URLs",
            [Item("1 to 128 letters, digits, '.', '_' or '-', beginning with a letter or digit", "/name")],
        )


def to_schema(schema: type[B], row: Table, **others: Any) -> B:
    """A row as the API shows it: fields that are called as columns have their values, and ``others`` their own.

    Columns whose names end in ``at`` are seconds since 1970, and become times in UTC.
    """
    values = {name: getattr(row, name) for name in _shared(schema, type(row)) if name not in others}
    times = {name: moment_or_none(value) for name, value in values.items() if name.rpartition("_")[2] == "at"}
    return schema(**values | times | others)


@cache
def _shared(schema: type[BaseModel], table: type[Table]) -> tuple[str, ...]:
    columns = table.__mapper__.columns
    return tuple(name for name in schema.model_fields if name in columns)


def moment(seconds: Any) -> datetime:
    """Seconds since 1970 as a time in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def moment_or_none(seconds: float | None) -> datetime | None:
    """As :func:`moment`, for a time that may not have come."""
    return None if seconds is None else moment(seconds)


def _token_of(id: str) -> str:
    return base64.urlsafe_b64encode(id.encode()).decode().rstrip("=")


def _id_of(token: str) -> str:
    try:
        id = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        id = ""
    if not re.fullmatch("[0-9a-f]{32}", id):
        raise InvalidInput("the page token is not valid", [Item("not a page token", "/page_token")])
    return id
