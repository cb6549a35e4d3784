"""Models: versions in order, aliases that move."""

import threading
from dataclasses import replace

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker
from version_facts import FACTS

from app.errors import InvalidInput, NotFound, PreconditionFailed
from app.models import aliases, versions
from app.models import service as models
from app.store import tables
from app.store.db import new_id, writing


def _add(session: Session, model: str = "m") -> int:
    with writing(session):
        return versions.add(session, model, replace(FACTS, job_id=new_id()), {"test": {"error": 0.25}, "train": {}})


def test_versions_are_numbered_from_one_and_the_latest_is_the_default(session: Session) -> None:
    assert [_add(session), _add(session), _add(session, "other")] == [1, 2, 1]
    assert models.version(session, "m").version == 2
    assert models.version(session, "m", 1).version == 1
    assert models.version(session, "m").metrics == {"test": {"error": 0.25}}
    model = models.get(session, "m")
    assert (model.versions, model.latest and model.latest.version) == ([2, 1], 2)
    assert models.get(session, model.id) == model
    assert [item.name for item in models.page(session).items] == ["other", "m"]
    assert [version.version for version in models.versions(session, "m")] == [2, 1]


def test_versions_made_at_once_get_different_numbers(database: sessionmaker[Session]) -> None:
    barrier = threading.Barrier(4)
    numbers: list[int] = []

    def add() -> None:
        with database() as session:
            barrier.wait()
            numbers.extend(_add(session) for _ in range(3))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 13))
    with database() as session:
        assert session.scalars(select(func.count()).select_from(tables.Model)).one() == 1


def test_an_alias_moves_and_its_revision_grows(session: Session) -> None:
    _add(session)
    _add(session)
    assert aliases.set_alias(session, "m", "production", 2).revision == 1
    moved = aliases.set_alias(session, "m", "production", 1, if_match=1)
    assert (moved.version, moved.revision) == (1, 2)
    assert models.version(session, "m", alias="production").version == 1
    assert models.version(session, "m", 1).aliases == ["production"]
    with pytest.raises(PreconditionFailed, match="revision 2"):
        aliases.set_alias(session, "m", "production", 2, if_match=1)
    with pytest.raises(PreconditionFailed):
        aliases.set_alias(session, "m", "production", 2, if_match=0)
    assert aliases.set_alias(session, "m", "candidate", 2, if_match=0).revision == 1
    aliases.delete_alias(session, "m", "candidate")
    with pytest.raises(NotFound):
        aliases.delete_alias(session, "m", "candidate")


def test_aliases_of_two_models_do_not_mix(session: Session) -> None:
    _add(session)
    _add(session, "other")
    aliases.set_alias(session, "m", "production", 1)
    with pytest.raises(NotFound):
        models.version(session, "other", alias="production")
    _add(session, "other")
    assert aliases.set_alias(session, "other", "production", 2, if_match=0).revision == 1
    assert aliases.set_alias(session, "other", "production", 1, if_match=1).revision == 2
    assert models.version(session, "m", alias="production").aliases == ["production"]
    aliases.delete_alias(session, "other", "production")
    assert models.version(session, "m", alias="production").version == 1


def test_what_is_not_there_is_not_found(session: Session) -> None:
    _add(session)
    for arguments in (("none",), ("m", 2), ("m", None, "none")):
        with pytest.raises(NotFound):
            models.version(session, *arguments)
    with pytest.raises(NotFound):
        aliases.set_alias(session, "m", "production", 9)
    with pytest.raises(InvalidInput):
        models.version(session, "m", 1, "production")
    with pytest.raises(InvalidInput):
        aliases.set_alias(session, "m", "a/b", 1)
    with pytest.raises(NotFound):
        models.folder(session, "none")
