"""Keys: shown once, kept as digests, revoked at once."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.access import keys
from app.errors import Conflict, InvalidInput, NotFound, Unauthenticated
from app.store import tables


def test_a_secret_opens_what_its_role_opens(session: Session) -> None:
    made = keys.create(session, "ci", "editor")
    principal = keys.authenticate(session, keys.digest(made.secret))
    assert (principal.key_id, principal.name, principal.role) == (made.id, "ci", "editor")
    assert made.secret.startswith("pm_")
    assert len(made.secret) >= 35


def test_the_secret_is_not_kept(session: Session) -> None:
    made = keys.create(session, "ci", "editor")
    row = session.scalars(select(tables.Key)).one()
    assert made.secret not in repr(vars(row))
    assert made.secret[3:] not in repr(vars(row))


def test_a_revoked_or_unknown_secret_opens_nothing(session: Session) -> None:
    made = keys.create(session, "ci", "viewer")
    assert keys.revoke(session, made.id).revoked
    assert keys.revoke(session, made.id).revoked
    for secret in (made.secret, "pm_unknown", ""):
        with pytest.raises(Unauthenticated):
            keys.authenticate(session, keys.digest(secret))
    with pytest.raises(NotFound):
        keys.revoke(session, "0" * 32)


def test_names_are_unique_and_fit_urls(session: Session) -> None:
    keys.create(session, "ci", "viewer")
    with pytest.raises(Conflict, match="'ci'"):
        keys.create(session, "ci", "viewer")
    with pytest.raises(InvalidInput):
        keys.create(session, "a/b", "viewer")


def test_the_last_administrators_key_stays(session: Session) -> None:
    first = keys.create(session, "one", "admin")
    with pytest.raises(Conflict, match="last administrator"):
        keys.revoke(session, first.id)
    keys.create(session, "until-monday", "admin", datetime.now(UTC) + timedelta(days=3))
    with pytest.raises(Conflict, match="last administrator"):
        keys.revoke(session, first.id)
    keys.create(session, "two", "admin")
    assert keys.revoke(session, first.id).revoked


def test_a_later_use_is_kept(session: Session) -> None:
    made = keys.create(session, "ci", "viewer")
    keys.note_uses(session, {made.id: 5.0})
    first = keys.page(session).items[0].last_used_at
    keys.note_uses(session, {made.id: 500.0, "0" * 32: 1.0})
    assert keys.page(session).items[0].last_used_at == first
    keys.note_uses(session, {made.id: 0.0})
    later = keys.page(session).items[0].last_used_at
    assert first is not None
    assert later is not None
    assert later > first


def test_pages_follow_one_another(session: Session) -> None:
    names = [f"key{i}" for i in range(5)]
    for name in names:
        keys.create(session, name, "viewer")
    seen, token = [], None
    for _ in range(3):
        page = keys.page(session, 2, token)
        seen += [key.name for key in page.items]
        token = page.next_page_token
    assert seen == names[::-1]
    assert token is None
    for wrong in ("x", "!!", "AAAA", "é"):
        with pytest.raises(InvalidInput, match="page token"):
            keys.page(session, 2, wrong)
    with pytest.raises(InvalidInput, match="page_size"):
        keys.page(session, 0)


def test_of_several_first_starts_one_makes_the_administrators_key(
    database: sessionmaker[Session], tmp_path: Path
) -> None:
    file = tmp_path / "new" / "admin.key"
    barrier, made = threading.Barrier(4), []

    def start() -> None:
        with database() as session:
            barrier.wait()
            made.append(keys.ensure_admin(session, file))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    secrets = [secret for secret in made if secret]
    assert len(secrets) == 1
    assert len(made) == 4
    assert file.read_text().strip() == secrets[0]
    assert file.stat().st_mode & 0o777 == 0o600
    with database() as session:
        assert keys.authenticate(session, keys.digest(secrets[0])).role == "admin"
        assert keys.ensure_admin(session, file) is None
