"""Jobs are found by their tags, and by state and kind, through indices."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event, insert, text
from sqlalchemy.orm import Session

from app.jobs import service as jobs
from app.jobs.schemas import JobPatch, TrainRequest
from app.store import db, migrate, tables
from app.store.scope import Scope, confine


def _submit(session: Session, **tags: str) -> str:
    return jobs.submit(session, TrainRequest(dataset="digits", model="m", solver="spoc", tags=tags or None)).id


def _found(session: Session, **asked: Any) -> list[str]:
    """Ids of all pages."""
    found, token = [], None
    while True:
        page = jobs.page(session, page_size=2, page_token=token, **asked)
        found += [job.id for job in page.items]
        token = page.next_page_token
        if token is None:
            return found


def test_jobs_are_found_by_tags_as_these_are_changed(session: Session, dataset: Callable[..., str]) -> None:
    dataset()
    made = [_submit(session, team="a" if i % 2 else "b", night=str(i)) for i in range(6)]
    _submit(session)
    assert _found(session, tag="team") == made[::-1]
    assert _found(session, tag="team=a") == made[5::-2]
    assert _found(session, tag="team=") == _found(session, tag="a") == _found(session, tag="tea") == []
    assert _found(session, tag="team=a", kind="train", state="queued") == made[5::-2]
    assert _found(session, tag="team=a", kind="import") == []
    jobs.change(session, made[0], JobPatch(tags={"team": "a", "night": None}))
    jobs.change(session, made[1], JobPatch(priority="high"))
    assert _found(session, tag="team=a") == [*made[5::-2], made[0]]
    assert made[0] not in _found(session, tag="night")
    assert _found(session, tag="night=1") == [made[1]]


def test_tags_of_another_workspace_find_nothing(session: Session, dataset: Callable[..., str]) -> None:
    dataset()
    _submit(session, team="a")
    assert _found(confine(session, Scope("other", "eve")), tag="team") == []


@pytest.mark.parametrize("asked", [{"tag": "team"}, {"tag": "team=a"}, {"state": "running"}, {"kind": "tune"}])
def test_among_many_jobs_those_that_are_asked_for_are_looked_up(session: Session, asked: dict[str, Any]) -> None:
    engine = session.get_bind()
    if engine.dialect.name != "sqlite":
        pytest.skip("the planner of PostgreSQL goes by statistics of the rows that are there")
    sent: list[tuple[str, Any]] = []

    def hear(*heard: Any) -> None:
        if "ORDER BY" in heard[2]:
            sent.append(heard[2:4])

    event.listen(engine, "before_cursor_execute", hear)
    try:
        assert jobs.page(confine(session, Scope("default", "ann")), **asked).items == []
    finally:
        event.remove(engine, "before_cursor_execute", hear)
    ((sql, values),) = sent
    plan = [row[3] for row in session.connection().exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)]
    (lookup,) = [step for step in plan if step.startswith("SEARCH jobs ")]
    assert "kind=?" in lookup or "id=?" in lookup, plan


ROW = {"id": "0" * 32, "kind": "train", "state": "succeeded", "queue": "general", "dataset_id": None, "request": "{}"}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_tags_of_an_earlier_version_are_found(
    kind: str, configure: Callable[..., None], request: pytest.FixtureRequest, tmp_path: Any
) -> None:
    url = f"sqlite:///{tmp_path}/old.db"
    if kind == "postgresql":
        url = request.getfixturevalue("postgres_url").replace("postgresql://", "postgresql+psycopg://")
    migrate.upgrade(url, "0025")
    configure(database_url=url)
    values = {"workspace": "default", "priority": 0, "attempt": 1, "losses": 0, "created_at": 1.0}
    with db.sessions()() as session:
        for i, tags in enumerate(['{"team": "a\\u00e4", "x.y": ""}', "null", None]):
            row = {**ROW, **values, "id": str(i) * 32, "tags": tags}
            names = ", ".join(row)
            session.execute(text(f"INSERT INTO jobs ({names}) VALUES ({', '.join(f':{name}' for name in row)})"), row)
        session.commit()
    migrate.upgrade(url)
    with db.sessions()() as session:
        assert _found(session, tag="team=aä") == _found(session, tag="x.y=") == ["0" * 32]
        assert session.query(tables.JobTag).count() == 2


def test_half_a_surrogate_pair_in_a_column_of_json_is_read(session: Session) -> None:
    row = {**ROW, "request": {"n": 2**70, "x": 0.1}, "attempt": 1, "losses": 0, "priority": 0}
    session.execute(insert(tables.Job), [{**row, "workspace": "default", "owner": None, "created_at": 1.0}])
    expected = {"text": "\ud800", "n": 2**70, "x": 0.1}
    kind = "JSON" if session.get_bind().dialect.name == "postgresql" else "TEXT"
    session.execute(text(f"UPDATE jobs SET request = CAST(:old AS {kind})"), {"old": json.dumps(expected)})
    assert session.get_one(tables.Job, "0" * 32).request == expected
