"""Migrations: they build what the tables say, once, whoever comes first."""

import multiprocessing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text
from sqlalchemy.orm import Session, sessionmaker

from app.store import migrate
from app.store.db import make_engine
from app.store.tables import Table


def test_the_migrations_build_what_the_tables_say(database: sessionmaker[Session]) -> None:
    with database() as session:
        assert compare_metadata(MigrationContext.configure(session.connection()), Table.metadata) == []


def test_upgrading_again_changes_nothing(database: sessionmaker[Session]) -> None:
    with database() as session:
        url = session.get_bind().url.render_as_string(hide_password=False)  # type: ignore[union-attr]
    migrate.upgrade(url)
    with database() as session:
        assert len(session.execute(text("SELECT version_num FROM alembic_version")).all()) == 1


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_processes_that_start_at_once_all_find_the_newest_schema(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/new/polymargin.db"
    if kind == "postgresql":
        url = request.getfixturevalue("postgres_url").replace("postgresql://", "postgresql+psycopg://")
    start = multiprocessing.get_context("spawn")
    processes = [start.Process(target=migrate.upgrade, args=(url,)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    engine = make_engine(url)
    assert set(Table.metadata.tables) <= set(inspect(engine).get_table_names())
    engine.dispose()
