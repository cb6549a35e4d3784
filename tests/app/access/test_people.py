"""People are rows among the keys, one for each issuer and subject, on both databases."""

from collections.abc import Iterator

import pytest
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, sessionmaker

from app.access import keys, people, sign_ins
from app.access.keys import Principal
from app.access.people import Visitor
from app.config import Settings, settings
from app.errors import Forbidden, Unauthenticated
from app.store import tables

ANN = Visitor("https://id.example", "user-1", "ann", frozenset(["annotators"]))


@pytest.fixture
def session(database: sessionmaker[Session]) -> Iterator[Session]:
    with database() as session:
        yield session


@pytest.fixture
def config(session: Session) -> Settings:
    return settings().model_copy(update={"group_roles": "annotators=clerk; legal=editor@legal; heads=admin"})


def _admit(session: Session, visitor: Visitor, config: Settings) -> Principal:
    return people.save(session, visitor, people.resolve(session, visitor, config))


def _with(*groups: str) -> Visitor:
    return Visitor(ANN.issuer, ANN.subject, ANN.name, frozenset(groups))


def test_one_person_has_one_row_that_follows_the_groups(session: Session, config: Settings) -> None:
    first = _admit(session, ANN, config)
    assert (first.name, first.role, first.workspace, first.promotes) == ("ann", "clerk", "default", False)
    moved = _admit(session, _with("legal"), config)
    assert moved == Principal(first.key_id, "ann", "editor", "legal")
    head = _admit(session, _with("heads", "legal"), config)
    assert head == Principal(first.key_id, "ann", "admin", "default", promotes=True)
    assert not _admit(session, ANN, config).promotes
    assert [key.kind for key in keys.page(session).items] == ["person"]


def test_a_name_that_another_key_has_gets_a_number_also_where_a_person_moves_to(
    session: Session, config: Settings
) -> None:
    keys.create(session, "ann", "viewer", workspace="legal")
    assert _admit(session, ANN, config).name == "ann"
    assert _admit(session, _with("legal"), config).name == "ann-2"


def test_the_same_person_or_name_at_one_moment_is_noticed(session: Session, config: Settings) -> None:
    namesake = Visitor(ANN.issuer, "user-2", "ann", ANN.groups)
    both = [people.resolve(session, one, config) for one in (ANN, ANN, namesake)]
    people.save(session, ANN, both[0])
    with pytest.raises(IntegrityError):
        people.save(session, ANN, both[1])
    with pytest.raises(IntegrityError):
        people.save(session, namesake, both[2])
    assert _admit(session, ANN, config).key_id == both[0].key_id
    assert _admit(session, namesake, config).name == "ann-2"


def test_who_loses_all_groups_loses_the_sessions(session: Session, config: Settings) -> None:
    secret = sign_ins.begin(session, _admit(session, ANN, config).key_id)
    assert sign_ins.principal(session, keys.digest(secret)).name == "ann"
    with pytest.raises(Forbidden, match="is in no group"):
        people.resolve(session, _with(), config)
    with pytest.raises(Unauthenticated):
        sign_ins.principal(session, keys.digest(secret))


def test_a_revoked_person_stays_out_and_leaves_the_last_administrators_key(session: Session, config: Settings) -> None:
    admin = keys.create(session, "first", "admin")
    head = _admit(session, _with("heads"), config)
    with pytest.raises(keys.Conflict, match="last administrator"):
        keys.revoke(session, admin.id)
    assert keys.revoke(session, head.key_id).revoked
    with pytest.raises(Forbidden, match="may no longer"):
        people.resolve(session, _with("heads"), config)
    assert session.get(tables.Key, head.key_id) is not None


@pytest.mark.parametrize(
    ("claim", "groups"),
    [
        (["a", " b ", "", 7, None], {"a", "b"}),
        ("a, b,,", {"a", "b"}),
        (None, set()),
        (7, set()),
        ({"a": 1}, {"a"}),
    ],
)
def test_groups_are_texts(claim: object, groups: set[str]) -> None:
    assert people.groups_in(claim) == groups
