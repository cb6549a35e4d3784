"""The data folder is closed to everybody else."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.store.privacy import keep_private


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_a_new_data_folder_and_what_is_made_in_it_is_its_users_alone(tmp_path: Path) -> None:
    keep_private(tmp_path / "home")
    (tmp_path / "home" / "files").mkdir()
    (tmp_path / "home" / "files" / "polymargin.db").touch()
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes == {"home": 0o700, "files": 0o700, "polymargin.db": 0o600}


def test_a_data_folder_that_others_could_read_is_closed(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o755)
    keep_private(tmp_path / "home")
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700
