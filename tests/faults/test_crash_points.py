"""A crash at every boundary of the work, from the upload to the alias: each is taken up, and leaves nothing behind."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

DRIVE = Path(__file__).with_name("crashing.py")


@pytest.mark.parametrize("every", [23, pytest.param(1, marks=pytest.mark.slow)])
def test_a_crash_at_any_boundary_of_the_work_leaves_it_whole(every: int, sqlite_template: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(DRIVE), str(sqlite_template), str(tmp_path), str(every)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    uninterrupted, *crashed, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert uninterrupted["wrong"] == last["wrong"] == []
    assert [result for result in crashed if result["wrong"]] == [], done.stderr[-3000:]
    assert {result["bits"] for result in crashed} == {uninterrupted["bits"]}
    assert len(crashed) * every >= 80
    if every == 1:
        boundaries = {f"{when} {what}" for when in ("before", "after") for what in ("fsync", "rename", "commit")}
        assert {result["where"] for result in crashed} >= boundaries
