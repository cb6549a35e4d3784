"""Isolation of workspaces: a session that acts for a key sees and creates rows of its workspace only.

Every query of such a session, and every change by a statement, is confined by one condition on each table that has a
workspace, so that a query which nobody thought of is confined, too. What it adds is its workspace's, and its owner's.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import event
from sqlalchemy.orm import ORMExecuteState, Session, with_loader_criteria

from app.store.tables import AuditEntry, InWorkspace, Key, Owned

DEFAULT = "default"


@dataclass(frozen=True)
class Scope:
    """The principal that a session acts for.

    Attributes
    ----------
    workspace : str
        Whose things it sees. Keys and the audit log of all workspaces are seen from the default one, which belongs to
        the installation.
    owner : str or None
        Name of the key that acts, and owns what it makes.
    administers : bool
        It may delete what others own.
    edits : bool
        It may train, and change what others see; a clerk's may not.
    promotes : bool
        It may move and remove protected aliases.
    """

    workspace: str
    owner: str | None = None
    administers: bool = False
    edits: bool = True
    promotes: bool = False


def confine(session: Session, scope: Scope) -> Session:
    """Confine the session to a principal; a session that was never confined, such as a sweep's, sees everything."""
    session.info["scope"] = scope
    return session


def scope_of(session: Session) -> Scope | None:
    """The principal that the session acts for, or None."""
    found: Scope | None = session.info.get("scope")
    return found


@event.listens_for(Session, "do_orm_execute")
def _confine_statement(state: ORMExecuteState) -> None:
    scope = scope_of(state.session)
    if scope is None or state.is_column_load or not (state.is_select or state.is_update or state.is_delete):
        return
    workspace = scope.workspace

    def only(table: type[InWorkspace]) -> Any:
        return table.workspace == workspace

    state.statement = state.statement.options(with_loader_criteria(Owned, only, include_aliases=True))
    if workspace != DEFAULT:
        for table in (Key, AuditEntry):
            state.statement = state.statement.options(with_loader_criteria(table, table.workspace == workspace))


@event.listens_for(Session, "before_flush")
def _mark_as_own(session: Session, _context: Any, _instances: Any) -> None:
    scope = scope_of(session) or Scope(DEFAULT)
    for row in session.new:
        if isinstance(row, InWorkspace) and row.workspace is None:
            row.workspace = scope.workspace
        if isinstance(row, Owned) and row.owner is None:
            row.owner = scope.owner
