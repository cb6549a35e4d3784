"""Migrations: they build what the tables say, once, whichever process comes first."""

import multiprocessing
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, inspect, select, text
from sqlalchemy.orm import Session, sessionmaker

from app.store import db, migrate
from app.store.db import make_engine
from app.store.tables import Table

# the newest revision of version 1.0, until its release; a major version may change it
SCHEMA_OF_1_0 = "0036"
ARTEFACTS = Path(__file__).parents[2] / "artefacts"


def test_the_migrations_build_what_the_tables_say(database: sessionmaker[Session]) -> None:
    with database() as session:
        assert compare_metadata(MigrationContext.configure(session.connection()), Table.metadata) == []


def test_upgrading_again_changes_nothing(database: sessionmaker[Session]) -> None:
    with database() as session:
        url = session.get_bind().url.render_as_string(hide_password=False)  # type: ignore[union-attr]
    migrate.upgrade(url)
    with database() as session:
        assert len(session.execute(text("SELECT version_num FROM alembic_version")).all()) == 1


def test_a_file_of_an_earlier_version_learns_to_shrink_and_keeps_its_rows(tmp_path: Path) -> None:
    file = tmp_path / "polymargin.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE before (number INTEGER)")
        connection.execute("INSERT INTO before VALUES (7)")
        connection.commit()
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (0,)
    migrate.upgrade(f"sqlite:///{file}")
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
        assert connection.execute("SELECT number FROM before").fetchall() == [(7,)]


def test_a_file_at_the_newest_schema_is_left_to_its_writer(
    sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path(shutil.copy(sqlite_template, tmp_path))
    monkeypatch.setattr(db, "_BUSY_SECONDS", 0)
    with closing(sqlite3.connect(file)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        migrate.upgrade(f"sqlite:///{file}")
        assert migrate.current(f"sqlite:///{file}") == migrate.newest()


def test_a_database_of_a_later_version_is_left_as_it_is(sqlite_template: Path, tmp_path: Path) -> None:
    file = Path(shutil.copy(sqlite_template, tmp_path))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9000'")
        connection.commit()
    migrate.upgrade(f"sqlite:///{file}")
    assert migrate.current(f"sqlite:///{file}") == "9000"


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_later_migrations_keep_what_processes_of_1_0_read_and_write(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/kept.db"
    if kind == "postgresql":
        url = request.getfixturevalue("postgres_url").replace("postgresql://", "postgresql+psycopg://")
    migrate.upgrade(url, SCHEMA_OF_1_0)
    engine = make_engine(url)
    before, keys_before = _columns(engine), _constraints(engine)
    migrate.upgrade(url)
    after, keys_after = _columns(engine), _constraints(engine)
    engine.dispose()
    for table, columns in before.items():
        for name, column in columns.items():
            found = after.get(table, {}).get(name)
            assert found is not None, f"{table}.{name} is gone"
            assert str(found["type"]) == str(column["type"]), f"{table}.{name} has another type"
            assert found["nullable"] or not column["nullable"], f"{table}.{name} must have a value"
        for name in after[table].keys() - columns.keys():
            column = after[table][name]
            assert column["nullable"] or column["default"] is not None, f"{table}.{name} has no default"
        assert keys_after[table] <= keys_before[table], f"{table} has a new condition"


def _columns(engine: Engine) -> dict[str, dict[str, Any]]:
    schema = inspect(engine)
    return {
        table: {column["name"]: column for column in schema.get_columns(table)} for table in schema.get_table_names()
    }


def _constraints(engine: Engine) -> dict[str, set[str]]:
    """By table, what a row that is written must fulfil."""
    schema = inspect(engine)
    return {
        table: {f"unique {sorted(each['column_names'])}" for each in schema.get_unique_constraints(table)}
        | {f"unique {each['column_names']}" for each in schema.get_indexes(table) if each["unique"]}
        | {f"refers {each['constrained_columns']}" for each in schema.get_foreign_keys(table)}
        | {f"check {each['sqltext']}" for each in schema.get_check_constraints(table)}
        for table in schema.get_table_names()
    }


@pytest.mark.slow
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


ROWS: list[tuple[str, dict[str, Any]]] = [
    ("models", {"id": "m", "name": "topics", "created_at": 1.0}),
    (
        "model_versions",
        {
            "id": "v", "model_id": "m", "number": 1, "job_id": "j", "dataset_id": None, "dataset_sha256": "d",
            "solver": "spoc", "params": "{}", "seed": 0, "request": "{}", "code_version": "0", "n_classes": 2,
            "n_features": 3, "n_train": 4, "epochs": 5, "converged": True, "primal": 1.0, "dual": 1.0, "gap": 0.0,
            "violation": None, "seconds": 1.0, "path": "models/j.1", "sha256": "s", "size_bytes": 6, "created_at": 1.0,
        },
    ),
    ("aliases", {"model_id": "m", "name": "production", "version_id": "v", "revision": 1}),
    ("metrics", {"version_id": "v", "part": "test", "name": "error", "value": 0.5}),
    (
        "jobs",
        {
            "id": "j", "kind": "train", "state": "succeeded", "queue": "general", "dataset_id": None, "request": "{}",
            "attempt": 1, "losses": 0, "created_at": 1.0,
        },
    ),
    ("steps", {"job_id": "j", "number": 0, "attempt": 1, "epoch": 1, "seconds": 1.0}),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_versions_of_the_first_schema_stay_with_all_that_refers_to_them(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/old.db"
    if kind == "postgresql":
        url = request.getfixturevalue("postgres_url").replace("postgresql://", "postgresql+psycopg://")
    migrate.upgrade(url, "0001")
    engine = make_engine(url)
    with engine.begin() as connection:
        for table, row in ROWS:
            names = ", ".join(row)
            values = ", ".join(f":{name}" for name in row)
            connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({values})"), row)
    engine.dispose()
    migrate.upgrade(url)
    engine = make_engine(url)
    with engine.begin() as connection:
        for table, row in ROWS:
            (kept,) = connection.execute(text(f"SELECT * FROM {table}")).mappings().all()
            assert {name: kept[name] for name in row if name not in ("params", "request")} == {
                name: value for name, value in row.items() if name not in ("params", "request")
            }
        assert connection.execute(text("SELECT point, report FROM model_versions")).one() == (0, None)
        assert connection.execute(text("SELECT point, measures FROM steps")).one() == (0, None)
        connection.execute(text("DELETE FROM models"))
        assert connection.execute(text("SELECT count(*) FROM metrics")).scalar_one() == 0, "foreign keys hold again"
    engine.dispose()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_decisions_of_reviews_become_lists(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url = f"sqlite:///{tmp_path}/old.db"
    if kind == "postgresql":
        url = request.getfixturevalue("postgres_url").replace("postgresql://", "postgresql+psycopg://")
    migrate.upgrade(url, "0033")
    engine = make_engine(url)
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO reviews (id, name, job_id, model, version, dataset_version, sure_share, seed, opinions, "
                "created_at, workspace) VALUES ('r', 'q', 'j', 'm', 1, 1, 0, 0, 1, 0, 'default')"
            )
        )
        for row, label in enumerate(('a "b"', None)):
            given = {"row": row, "label": label, "sure": False}
            connection.execute(
                text(
                    "INSERT INTO review_rows (review_id, row, place, alternatives, sure, state, label, revision) "
                    "VALUES ('r', :row, 0, '[]', :sure, 'decided', :label, 1)"
                ),
                given,
            )
            connection.execute(
                text(
                    "INSERT INTO review_opinions (review_id, row, person, label, arbiter, decided_at) "
                    "VALUES ('r', :row, 'ann', :label, :sure, 0)"
                ),
                given,
            )
    engine.dispose()
    migrate.upgrade(url)
    engine = make_engine(url)
    with Session(engine) as session:
        for table in (Table.metadata.tables[name] for name in ("review_rows", "review_opinions")):
            assert session.execute(select(table.c.labels).order_by(table.c.row)).scalars().all() == [['a "b"'], None]
    engine.dispose()


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_an_upgrade_that_is_killed_changes_nothing_and_is_done_by_the_next(tmp_path: Path, share: float) -> None:
    path, sql = tmp_path / "polymargin.db", (ARTEFACTS / "home" / "polymargin.sql").read_text()

    def fill() -> None:
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as database:
            database.executescript(sql)

    fill()
    n_statements = _upgraded_by_a_process(path)
    with closing(sqlite3.connect(path)) as database:
        done = _rows_of(database)
    fill()
    with closing(sqlite3.connect(path)) as database:
        before = list(database.iterdump())
    assert _upgraded_by_a_process(path, int(share * n_statements)) == -signal.SIGKILL
    with closing(sqlite3.connect(path)) as database:
        assert list(database.iterdump()) == before
    assert _upgraded_by_a_process(path) == n_statements
    with closing(sqlite3.connect(path)) as database:
        assert _rows_of(database) == done


def _rows_of(database: sqlite3.Connection) -> list[str]:
    # in what order a table's keys are declared is chance
    return [line for line in database.iterdump() if line.startswith("INSERT")]


def _upgraded_by_a_process(path: Path, killed_after: int = 0) -> int:
    """How many statements an upgrade had, or what killed it."""
    program = f"""
import os, signal
from sqlalchemy import Engine, event
from app.store import db, migrate
n = 0
def count(*_):
    global n
    n += 1
    if n == {killed_after}:
        os.kill(os.getpid(), signal.SIGKILL)
event.listen(Engine, "after_cursor_execute", count)
migrate.upgrade("sqlite:///{path}")
print(n)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else done.returncode
