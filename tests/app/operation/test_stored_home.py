"""A home that an earlier version wrote is brought to this version, keeps what it held, and answers as it did."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.config import settings
from app.datasets import rows as dataset_rows
from app.datasets import service as datasets
from app.evaluations import service as evaluations
from app.hierarchies import service as hierarchies
from app.jobs import service as jobs
from app.models import deletions
from app.models import service as models
from app.models.schemas import Retention
from app.predictions import service as predictions
from app.predictions.model_cache import ModelCache
from app.rules import feedback
from app.rules import service as rules
from app.store import db, migrate

ARTEFACTS = Path(__file__).parents[2] / "artefacts"
# by the version that wrote it; the first has no number of its own
HOMES = {"0.1": ARTEFACTS / "home", "0.3.0": ARTEFACTS / "home-0.3.0"}
ANSWERS = {version: json.loads((home / "answers.json").read_text()) for version, home in HOMES.items()}


def _upgraded(home: Path, version: str) -> Path:
    shutil.copytree(HOMES[version] / "files", home / "files")
    with closing(sqlite3.connect(home / "polymargin.db")) as database:
        database.executescript((HOMES[version] / "polymargin.sql").read_text())
    migrate.upgrade(settings().sqlalchemy_url)
    return home


@pytest.mark.parametrize(("version", "name"), [(version, name) for version in HOMES for name in ANSWERS[version]])
def test_models_and_their_features_of_an_earlier_version_answer_as_they_did(
    version: str, name: str, home: Path
) -> None:
    _upgraded(home, version)
    loaded = ModelCache(db.sessions(), 1 << 30).get(("default", name, None, None))
    expected = ANSWERS[version][name]
    answer = predictions.predict(loaded, {"instances": expected["instances"], "top_k": 3}, 10)
    assert answer.pop("version_sha256") == loaded.version.sha256
    assert _known(_rounded(answer), expected["answer"]) == _rounded(expected["answer"])


def _known(answer: Any, expected: Any) -> Any:
    """What the expected answer has, too: later versions may add fields, and take none away."""
    if isinstance(expected, dict):
        return {name: _known(answer[name], value) for name, value in expected.items()}
    if isinstance(expected, list):
        return [_known(one, other) for one, other in zip(answer, expected, strict=True)]
    return answer


@pytest.mark.parametrize("version", HOMES)
def test_datasets_of_an_earlier_version_are_listed_and_read(version: str, home: Path) -> None:
    _upgraded(home, version)
    with db.sessions()() as session:
        shown = datasets.page(session).items
        assert sorted(dataset.name for dataset in shown) == sorted(ANSWERS[version])
        assert {dataset.state for dataset in shown} == {"ready"}
        letters, foods, shapes = (
            dataset_rows.rows(session, name, limit=2).rows for name in ("letters", "foods", "shapes")
        )
    assert [row.label for row in letters] == ["a", "b"]
    assert [row.text for row in foods] == ["red round apple", "green long leek"]
    assert len(shapes) == 2


def test_what_0_3_0_kept_beside_models_is_there_after_the_upgrade(home: Path) -> None:
    _upgraded(home, "0.3.0")
    with db.sessions()() as session:
        foods = models.get(session, "foods")
        assert foods.latest is not None
        assert [(alias.name, alias.version) for alias in foods.aliases] == [("production", 1)]
        assert (foods.latest.notes, foods.latest.tags) == ("the first", {"by": "hand"})
        kept: Retention = deletions.retention(session, "foods")
        assert kept.keep_last == 3
        (evaluation,) = evaluations.page(session).items
        assert (evaluation.model, evaluation.microseconds_per_row) == ("foods", None)
        assert [each.labels for each in feedback.page(session, "foods").items] == [["fruit"]]
        assert hierarchies.get(session, "tree").n_leaves == 3
        (queued,) = jobs.page(session, state="queued").items
        assert (queued.priority, queued.tags) == ("low", {"a": "b"})
        assert rules.page(session).items == []


def _rounded(value: Any) -> Any:
    """The same with every number to five digits: sums are added in an order that differs from machine to machine."""
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value
