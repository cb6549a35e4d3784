from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for one content after another."""
    return tmp_path_factory.mktemp("format") / "data"
