"""Alert rules and board name metrics that there are, and the page names all of them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.durations import Durations
from app.operation.metrics import Metrics
from app.operation.readiness import Load
from app.predictions.drift import VersionDrift
from app.store.storage_counts import StorageCounts

FOLDER = Path(__file__).parents[1] / "docs/how-to"
ALERTS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "monitoring/alerts.yaml").read_text())["groups"][0]["rules"]
BOARD = json.loads((FOLDER / "monitoring/grafana.json").read_text())
EXPRESSIONS = [rule["expr"] for rule in ALERTS] + [
    target["expr"] for panel in BOARD["panels"] for target in panel["targets"]
]


def _samples() -> dict[str, set[str]]:
    """Every time series that a process can have, and its labels."""
    storage = StorageCounts()
    storage.requests["GetObject", "failed"] = 1
    storage.seconds["GetObject"] = Durations()
    metrics = Metrics(lambda: Load({"queued": 1}, 2.0, {"general": 1}, 10**9), lambda: 5, lambda: 7, storage)
    metrics.answered("GET", "/x", 200, 0.01, streamed=False)
    metrics.predicted(3, 0.01)
    found: dict[str, set[str]] = {}
    text = metrics.text([VersionDrift("w", "m", 1, 9, 0.1, 0.2)]).decode()
    for name, labels in re.findall(r"^(\w+)(?:\{(.*?)\})? ", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


SAMPLES = _samples()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_what_is_asked_for_is_told(expression: str) -> None:
    named = re.findall(r"\b(polymargin_\w+)(?:\{(.*?)\})?", expression)
    assert named or "up{" in expression
    for name, chosen in named:
        assert name in SAMPLES, name
        assert set(re.findall(r"(\w+)=", chosen)) <= SAMPLES[name]
    for grouped in re.findall(r"by \((.*?)\)", expression):
        labels = set().union(*(SAMPLES[name] for name, _ in named)) | {"instance"}
        assert {label.strip() for label in grouped.split(",")} <= labels


def test_every_metric_is_on_the_page_and_on_the_board() -> None:
    page, board = (FOLDER / "watch-a-service.md").read_text(), json.dumps(BOARD)
    for name in SAMPLES:
        base = re.sub(r"_(bucket|count|sum|created)$", "", name)
        if name.endswith("_created"):
            continue
        assert f"`{base}`" in page, base
        assert base in board, base


def test_alerts_have_a_name_a_severity_and_a_summary() -> None:
    assert len({rule["alert"] for rule in ALERTS}) == len(ALERTS)
    for rule in ALERTS:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"]
