"""A home that an earlier version wrote is brought to this version, and answers as it did."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.config import settings
from app.services import datasets, predictions
from app.services.model_cache import ModelCache
from app.store import db, migrate

STORED = Path(__file__).parents[1] / "artefacts" / "home"
ANSWERS = json.loads((STORED / "answers.json").read_text())


@pytest.fixture
def stored_home(home: Path) -> Path:
    shutil.copytree(STORED / "files", home / "files")
    with closing(sqlite3.connect(home / "polymargin.db")) as database:
        database.executescript((STORED / "polymargin.sql").read_text())
    migrate.upgrade(settings().sqlalchemy_url)
    return home


@pytest.mark.parametrize("name", ANSWERS)
def test_models_and_their_features_of_an_earlier_version_answer_as_they_did(name: str, stored_home: Path) -> None:
    loaded = ModelCache(db.sessions(), 1 << 30).get(("default", name, None, None))
    answer = predictions.predict(loaded, {"instances": ANSWERS[name]["instances"], "top_k": 3}, 10)
    assert answer.pop("version_sha256") == loaded.version.sha256
    assert _rounded(answer) == _rounded(ANSWERS[name]["answer"])


def test_datasets_of_an_earlier_version_are_listed_and_read(stored_home: Path) -> None:
    with db.sessions()() as session:
        shown = datasets.page(session).items
        assert sorted(dataset.name for dataset in shown) == sorted(ANSWERS)
        assert {dataset.state for dataset in shown} == {"ready"}
        letters, foods, shapes = (datasets.rows(session, name, limit=2).rows for name in ("letters", "foods", "shapes"))
    assert [row.label for row in letters] == ["a", "b"]
    assert [row.text for row in foods] == ["red round apple", "green long leek"]
    assert [row.features for row in shapes] == [[(0, 9.0), (1, 1.0)], [(0, 1.0), (1, 9.0)]]


def _rounded(value: Any) -> Any:
    """The same with every number to five digits: sums are added in an order that differs from machine to machine."""
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value
