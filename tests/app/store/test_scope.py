"""Sessions that act for a key are confined to a workspace, whatever they ask."""

import pytest
from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session, aliased, sessionmaker

from app.store import tables
from app.store.scope import Scope, confine

M = tables.Model


@pytest.fixture
def two(database: sessionmaker[Session]) -> sessionmaker[Session]:
    """The model m in the workspaces a and b."""
    for workspace in ("a", "b"):
        with database() as session:
            confine(session, Scope(workspace, f"key-{workspace}"))
            session.add(M(id=f"of-{workspace}", name="m", created_at=0.0))
            session.commit()
    return database


def test_every_kind_of_query_is_confined(two: sessionmaker[Session]) -> None:
    with confine(two(), Scope("a")) as session:
        other = aliased(M)
        assert session.get(M, "of-a") is not None
        assert session.get(M, "of-b") is None
        assert session.scalars(select(M.id)).all() == ["of-a"]
        assert session.scalars(select(other.name).where(other.id == "of-b")).all() == []
        assert session.scalars(select(func.count()).select_from(M)).one() == 1
        assert session.scalars(select(func.count()).where(M.id.in_(select(other.id)))).one() == 1
        assert session.execute(update(M).where(M.name == "m").values(created_at=1.0)).rowcount == 1  # type: ignore[attr-defined]
        assert session.execute(delete(M)).rowcount == 1  # type: ignore[attr-defined]
        session.commit()
    with two() as session:
        assert session.execute(select(M.id, M.workspace, M.owner, M.created_at)).all() == [("of-b", "b", "key-b", 0.0)]


def test_a_session_that_acts_for_nobody_sees_all_and_makes_things_of_the_default_workspace(
    two: sessionmaker[Session],
) -> None:
    with two() as session:
        session.add(M(id="of-default", name="m", created_at=0.0))
        session.commit()
        rows = session.execute(select(M.id, M.workspace, M.owner).order_by(M.id)).all()
        assert rows == [("of-a", "a", "key-a"), ("of-b", "b", "key-b"), ("of-default", "default", None)]
