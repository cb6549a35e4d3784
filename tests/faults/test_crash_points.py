"""A crash at every boundary of the work, from the upload to the backup: each is taken up, and leaves nothing behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.store import migrate

DRIVE = Path(__file__).with_name("crashing.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "every", "part"),
    # every second boundary of each database; all of them take four times as long
    [pytest.param("sqlite", 2, 0, id="sqlite-even"), pytest.param("postgresql", 2, 1, id="postgresql-odd")],
)
def test_a_crash_at_any_boundary_of_the_work_leaves_it_whole(
    kind: str, every: int, part: int, sqlite_template: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    urls = []
    if kind == "postgresql":
        urls = [request.getfixturevalue(name) for name in ("postgres_database", "postgres_url")]
        migrate.upgrade(urls[1].replace("postgresql://", "postgresql+psycopg://"))
    command = [sys.executable, str(DRIVE), str(sqlite_template), str(tmp_path), str(every), str(part), *urls]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr[-3000:]
    uninterrupted, *crashed = [json.loads(line) for line in done.stdout.splitlines()]
    assert uninterrupted["wrong"] == []
    assert len(crashed) > 1
    assert [result for result in crashed if result["wrong"]] == [], done.stderr[-3000:]
    assert {tuple(result["bits"]) for result in crashed} == {tuple(uninterrupted["bits"])}
