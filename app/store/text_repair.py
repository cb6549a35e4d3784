"""Repairs rows with text that cannot be stored, which versions before took: in their migration, and in a restore."""

import json
from collections.abc import Iterator
from typing import Any

import structlog
from sqlalchemy import (
    JSON,
    Column,
    ColumnElement,
    Connection,
    MetaData,
    String,
    Table,
    Text,
    and_,
    cast,
    exists,
    false,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from app.json_text import repaired

_ROWS = 1000
log = structlog.get_logger("polymargin.store")


def repair(connection: Connection, tables: MetaData | None = None) -> int:
    """Put U+FFFD in place of U+0000 and halves of surrogate pairs in all rows; return how many values were changed.

    Parameters
    ----------
    tables : MetaData, optional
        The tables of the database; they are read from it by default.
    """
    if tables is None:
        tables = MetaData()
        tables.reflect(connection)
    n_changed = 0
    for table in tables.sorted_tables:
        conditions = {column: _unstorable(connection, column) for column in table.columns}
        # one look at a table, as few have such text
        if connection.scalar(select(exists().select_from(table).where(or_(*conditions.values())))):
            for column, condition in conditions.items():
                found = _broken(connection, column, condition)
                n_changed += sum(_replaced(connection, table, column, *each) for each in found)
    if n_changed:
        log.warning("text_repaired", values=n_changed)
    return n_changed


def _unstorable(connection: Connection, column: Column[Any]) -> ColumnElement[bool]:
    """The condition of values that may be such text."""
    sqlite = connection.dialect.name == "sqlite"
    position = func.instr if sqlite else func.strpos
    if isinstance(column.type, JSON):
        text = cast(column, Text)
        # a pair of surrogates is found, too, and is repaired to itself
        return or_(position(text, "\\u0000") > 0, position(func.lower(text), "\\ud") > 0)
    if isinstance(column.type, String) and sqlite:  # PostgreSQL has never taken one
        return func.instr(column, func.char(0)) > 0
    return false()


def _broken(
    connection: Connection, column: Column[Any], condition: ColumnElement[bool]
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Primary keys of the rows whose value in a column cannot be stored, and what to put in its place."""
    shown = cast(column, Text) if isinstance(column.type, JSON) else column
    query = select(*column.table.primary_key.columns, shown).where(condition)
    for rows in connection.execute(query).partitions(_ROWS):
        for *key, text in rows:
            value = _parsed(text) if isinstance(column.type, JSON) else text
            if repaired(value) != value:
                yield tuple(key), repaired(value)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _replaced(connection: Connection, table: Table, column: Column[Any], key: tuple[Any, ...], value: Any) -> bool:
    here = and_(*(part == given for part, given in zip(table.primary_key.columns, key, strict=True)))
    try:
        with connection.begin_nested():
            connection.execute(update(table).where(here).values({column: value}))
    except IntegrityError:  # another row has what the key would become
        log.error("text_not_repaired", table=table.name, column=column.name)
        return False
    return True
