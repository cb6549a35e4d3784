"""The base of all tables, and the SQL type of each Python type."""

from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, Double, String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Table(DeclarativeBase):
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        dict[str, Any]: JSON,
        list[Any]: JSON,
        float: Double,
        int: BigInteger,
    }


class InWorkspace:
    """A thing of one workspace; :mod:`app.store.scope` fills the column in, and confines sessions by it."""

    workspace: Mapped[str] = mapped_column(String(128))


class Owned(InWorkspace):
    """A thing that users make: ``owner`` is the name of the key that made it, None where nobody remembers."""

    owner: Mapped[str | None] = mapped_column(String(128))
