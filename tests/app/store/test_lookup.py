"""Things are found by id or by name."""

import pytest
from sqlalchemy.orm import Session

from app.errors import NotFound
from app.store import tables
from app.store.db import writing
from app.store.lookup import by_ref


def test_where_a_name_is_anothers_id_the_id_wins(session: Session) -> None:
    ids = ["1" * 32, "2" * 32]
    with writing(session):
        session.add(tables.Model(id=ids[0], name=ids[1], created_at=1.0))
        session.add(tables.Model(id=ids[1], name=ids[0], created_at=2.0))
    for id in ids:
        assert by_ref(session, tables.Model, id).id == id
    with pytest.raises(NotFound, match="no model is named 'other'"):
        by_ref(session, tables.Model, "other")
