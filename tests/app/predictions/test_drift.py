"""Drift: late answers beside those to held-out rows."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from asking import TestClient, bearer, problem
from fastapi import FastAPI
from sqlalchemy.exc import OperationalError

from app.config import Settings
from app.main import create_app
from app.predictions import answer_counts
from app.predictions.answer_reference import AnswerReference, answer_reference, of_details
from app.predictions.inspection_schemas import Drift
from app.store.part_shift import total_variation
from solvers.core.linear_model import LinearModel

URL = "/api/v1/models/letters/versions/1/drift"
A = {"indices": [0], "values": [1]}


def predict(client: TestClient, instances: list[Any], **more: Any) -> None:
    response = client.post("/api/v1/models/letters/predict", json={"instances": instances, **more})
    assert response.status_code == 200, response.text


def drift(client: TestClient, **query: Any) -> Drift:
    response = client.get(URL, params=query)
    assert response.status_code == 200, response.text
    return Drift.model_validate(response.json())


def test_answers_with_one_label_alone_are_far_from_the_held_out_ones(models: TestClient) -> None:
    before = drift(models)
    assert (before.n_answers, before.scores, before.labels) == (0, None, None)
    assert before.n_expected > 0
    predict(models, [A] * 40)
    for _ in range(10):
        predict(models, [A])
    predict(models, [A], include=["b"])  # chosen, and left out
    found = drift(models, days=1)
    assert found.n_answers == 50
    assert found.scores is not None
    assert found.labels is not None
    assert math.isclose(sum(found.scores.found), 1.0)
    assert math.isclose(sum(found.scores.expected), 1.0)
    assert found.scores.psi > 0
    assert found.labels.moved[0].found in (0.0, 1.0)
    assert found.labels.total_variation > found.labels.total_variation_by_chance > 0
    text = models.get("/metrics").text
    assert 'polymargin_recent_answers{model="letters",version="1",workspace="default"} 50.0' in text
    open_text = models.get("/metrics", headers={"Authorization": ""}).text
    assert "polymargin_jobs" in open_text
    assert "letters" not in open_text
    assert "recent_answers" not in open_text
    assert "letters" not in models.get("/metrics", headers={"Authorization": "Bearer pm_wrong"}).text
    picture = models.get("/api/v1/figures/drift", params={"model": "letters", "version": 1})
    assert picture.content.startswith(b"<?xml")
    assert 'id="drift"' in models.get("/models/letters/versions/1").text


def test_too_few_answers_are_not_measured(models: TestClient) -> None:
    predict(models, [A])
    one = drift(models)
    assert (one.scores, one.labels) == (None, None)
    assert one.too_few == "1 answer is too few to measure drift in the last 7 days: it needs at least 30."
    text = models.get("/metrics").text
    assert 'polymargin_recent_answers{model="letters",version="1",workspace="default"} 1.0' in text
    assert 'polymargin_score_psi{model="letters"' not in text
    predict(models, [A] * 28)
    assert (drift(models, days=1).too_few or "").startswith("29 answers are too few to measure drift today")
    predict(models, [A])
    enough = drift(models)
    assert enough.too_few is None
    assert enough.scores is not None


def test_total_variation_by_chance_is_at_most_one() -> None:
    held_out = np.ones(1000)
    variation, by_chance = total_variation(held_out, np.eye(1000)[0])
    assert variation <= by_chance == 1.0


def test_metrics_name_versions_to_keys_of_their_workspace_and_to_all_where_the_settings_say_so(
    models: TestClient, config: Settings
) -> None:
    predict(models, [A] * 40)
    other = models.post("/api/v1/keys", json={"name": "o", "role": "viewer", "workspace": "other"}).json()["secret"]
    assert "recent_answers" in models.get("/metrics", headers=bearer(other)).text
    assert "letters" not in models.get("/metrics", headers=bearer(other)).text
    problem(models.get("/metrics", headers=bearer("pm_wrong")), 401)
    with TestClient(create_app(config.model_copy(update={"open_metrics": True}))) as client:
        assert client.get("/metrics").status_code == 200
        # a process names the versions that it has loaded
        assert "polymargin_recent_answers" in client.get("/metrics").text


def test_processes_add_up_and_one_that_ends_writes_what_it_has_counted(
    models: TestClient, config: Settings, secrets: dict[str, str]
) -> None:
    predict(models, [A] * 3)
    with TestClient(create_app(config), headers=bearer(secrets["viewer"])) as elsewhere:
        predict(elsewhere, [A] * 4)
    assert drift(models).n_answers == 7


def test_counts_that_the_database_does_not_take_are_kept(
    models: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict(models, [A] * 3)
    with monkeypatch.context() as broken:

        def away(*_: object) -> None:
            raise OperationalError("insert", {}, Exception("away"))

        broken.setattr(answer_counts, "add", away)
        app.state.models.counts.write()
    assert drift(models).n_answers == 3


def test_what_is_not_there_has_no_drift(models: TestClient) -> None:
    problem(models.get("/api/v1/models/letters/versions/9/drift"), 404, "not_found")
    problem(models.get(URL, params={"days": 91}), 422, "invalid_input")


def test_bins_of_the_reference_have_equal_shares() -> None:
    model = LinearModel(["a", "b"], 1, np.array([0]), np.array([[1.0, -1.0]]))
    reference = answer_reference(model, sp.csr_matrix(np.arange(-50.0, 50.0)[:, None]))
    assert reference is not None
    assert sum(reference.scores) == 100
    assert max(reference.scores) - min(reference.scores) <= 2
    assert reference.labels == {"a": 50, "b": 50}
    assert of_details({"answers": reference.kept()}) == reference
    assert answer_reference(model, sp.csr_matrix((0, 1))) is None


@pytest.mark.parametrize(
    "kept",
    [
        None,
        [],
        {},
        {"edges": [1.0, 0.0], "scores": [1, 1, 1], "labels": {}},
        {"edges": [1.0], "scores": [1], "labels": {}},
        {"edges": [1.0], "scores": [1, -1], "labels": {}},
        {"edges": ["1"], "scores": [1, 1], "labels": {}},
        {"edges": [], "scores": [0], "labels": {}},
    ],
)
def test_a_reference_of_another_form_is_none(kept: Any) -> None:
    assert of_details({"answers": kept}) is None
    assert AnswerReference((), (1,), {}).kept() == {"edges": [], "scores": [1], "labels": {}}
