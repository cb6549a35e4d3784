import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asking import JSON, MARKER, TestClient, bearer, problem
from fastapi import FastAPI
from working import SPARSE, run, train, upload

from app import short_cache as remembered
from app.access import authentication as auth
from app.config import Settings
from app.main import create_app
from app.predictions import inference
from app.predictions.first_answers import ReadAhead
from app.predictions.inference import takes_moments
from app.predictions.model_cache import LoadedModel, ModelCache
from app.predictions.schemas import PredictResponse

SPARSE_URL = "/api/v1/models/letters/predict"


def ask(client: TestClient, model: str, instances: list[Any], **query: Any) -> PredictResponse:
    top_k = query.pop("top_k", 1)
    response = client.post(
        f"/api/v1/models/{model}/predict", params=query, json={"instances": instances, "top_k": top_k}
    )
    assert response.status_code == 200, response.text
    return PredictResponse.model_validate(response.json())


def test_every_kind_of_instance_gets_its_label(models: TestClient) -> None:
    assert ask(models, "letters", [{"indices": [1, 4], "values": [1, 0.5]}]).predictions[0].label == "b"
    assert ask(models, "foods", [{"text": "a green leek"}]).predictions[0].label == "vegetable"
    assert ask(models, "shapes", [{"features": {"height": 9, "width": 1}}]).predictions[0].label == "tall"
    assert ask(models, "shapes", [[9, 1.0]]).predictions[0].label == "flat"


def test_a_batch_is_answered_as_its_instances_one_by_one(models: TestClient) -> None:
    instances = [{"indices": [index % 6], "values": [1.0 + index]} for index in range(50)] + [
        {"indices": [], "values": []}
    ]
    together = ask(models, "letters", instances, top_k=3)
    assert together.predictions == [ask(models, "letters", [one], top_k=3).predictions[0] for one in instances]


def test_the_best_labels_come_first_and_no_more_than_there_are(models: TestClient) -> None:
    answer = ask(models, "letters", [{"indices": [0, 3], "values": [1, 0.5]}], top_k=1000)
    (prediction,) = answer.predictions
    scores = [entry.score for entry in prediction.top]
    assert scores == sorted(scores, reverse=True)
    assert {entry.label for entry in prediction.top} == {"a", "b", "c"}
    assert (
        (prediction.label, prediction.score) == (prediction.top[0].label, prediction.top[0].score) == ("a", scores[0])
    )
    assert (answer.model, answer.version) == ("letters", 1)
    assert answer.gap is not None


@pytest.mark.parametrize(
    ("instance", "words"),
    [
        ([1.0, 2.0], "2 numbers, expected"),
        ({"text": "a"}, "numbers"),
        ({"features": {"a": 1}}, "no names"),
        ({"indices": [1, 1], "values": [1, 2]}, "twice"),
        ({"indices": [1], "values": [1, 2]}, "1 indices and 2 values"),
        ({"indices": [10**9], "values": [1]}, "not between 0 and"),
        ({"indices": [-1], "values": [1]}, "not between 0 and"),
        ({"indices": [1.5], "values": [1]}, "integers"),
        ({"indices": [True], "values": [1]}, "integers"),
        ({"indices": [1], "values": ["1"]}, "numbers"),
        ({"indices": {"1": 1}, "values": [1]}, "integers"),
        ({"indices": [1]}, "an instance is"),
        ({"indices": [1], "values": [1], "more": MARKER}, "an instance is"),
        ({"text": 1}, "string"),
        ({"features": [1]}, "object of numbers"),
        ({"features": {"a": None}}, "object of numbers"),
        ([None], "list of numbers"),
        (MARKER, "an instance is"),
        (None, "an instance is"),
    ],
)
def test_an_instance_that_does_not_fit_is_pointed_at(models: TestClient, instance: Any, words: str) -> None:
    good = {"indices": [1], "values": [1]}
    response = models.post(SPARSE_URL, json={"instances": [good, good, good, instance]})
    (item,) = problem(response, 422, "invalid_input")["errors"]
    assert item["pointer"] == "/instances/3"
    assert words in item["detail"]
    assert MARKER not in response.text


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/instances"),
        ({"instances": []}, "/instances"),
        ({"instances": [{"indices": [], "values": []}] * 1001}, "/instances"),
        ({"instances": {"indices": [1], "values": [1]}}, "/instances"),
        ({"instances": [{"indices": [1], "values": [1]}], "top_k": 0}, "/top_k"),
        ({"instances": [{"indices": [1], "values": [1]}], "top_k": True}, "/top_k"),
        ({"instances": [{"indices": [1], "values": [1]}], "top_k": 1.5}, "/top_k"),
        ({"instances": [{"indices": [1], "values": [1]}], MARKER: 0}, ""),
    ],
)
def test_a_request_that_does_not_fit_its_schema_is_pointed_at(models: TestClient, body: Any, pointer: str) -> None:
    response = models.post(SPARSE_URL, json=body)
    assert problem(response, 422)["errors"][0]["pointer"] == pointer
    assert MARKER not in response.text


def test_eight_megabytes_of_wrong_instances_make_twenty_faults(models: TestClient) -> None:
    one = {"text": MARKER * 850}
    body = json.dumps({"instances": [one] * 950}).encode()
    assert 8_000_000 < len(body) <= 8 << 20
    response = models.post(SPARSE_URL, content=body, headers=JSON)
    assert len(problem(response, 422)["errors"]) == 20
    assert MARKER not in response.text
    numbers = b'{"instances": [[' + b"1," * 4_000_000 + b"1]]}"
    assert len(problem(models.post(SPARSE_URL, content=numbers, headers=JSON), 422)["errors"]) == 1


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"", JSON, 400),
        (b"{", JSON, 400),
        (b'{"instances": [[NaN]]}', JSON, 400),
        (b'{"instances": [[1e999]]}', JSON, 400),
        (b'{"instances": [{"text": "\xff"}]}', JSON, 400),
        (b'{"instances": [{"text": "\\ud800"}]}', JSON, 422),
        (b'{"instances": ' + b"[" * 100_000, JSON, 400),
        (b"[]", JSON, 422),
        (b"{}", {"Content-Type": "text/plain"}, 415),
    ],
)
def test_a_body_that_is_not_json_is_refused(
    models: TestClient, body: bytes, headers: dict[str, str], status: int
) -> None:
    problem(models.post(SPARSE_URL, content=body, headers=headers), status)


def test_a_model_that_is_still_to_come_names_its_job(client: TestClient) -> None:
    body = {"instances": [{"indices": [1], "values": [1]}]}
    assert "letters" in problem(client.post(SPARSE_URL, json=body), 404, "not_found")["detail"]
    upload(client, "letters", SPARSE, "svmlight")
    job = client.post(
        "/api/v1/jobs", json={"dataset": "letters", "model": "letters", "solver": "weston_watkins"}
    ).json()["id"]
    detail = problem(client.post(SPARSE_URL, json=body), 409, "conflict")["detail"]
    assert job in detail
    assert "no version yet" in detail
    run(job)
    assert client.post(SPARSE_URL, json=body).status_code == 200


def test_versions_and_aliases_answer_for_themselves(models: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "REMEMBERED_SECONDS", -1.0)
    train(models, "letters", "letters", params={"C": 0.01})
    one = [{"indices": [1], "values": [1]}]
    assert ask(models, "letters", one).version == 2
    assert ask(models, "letters", one, version=1).version == 1
    assert models.put("/api/v1/models/letters/aliases/production", json={"version": 1}).status_code == 200
    assert ask(models, "letters", one, alias="production").version == 1
    moved = models.put("/api/v1/models/letters/aliases/production", json={"version": 2}, headers={"If-Match": '"1"'})
    assert moved.status_code == 200
    assert ask(models, "letters", one, alias="production").version == 2
    body = {"instances": one}
    problem(models.post(SPARSE_URL, params={"version": 3}, json=body), 404)
    problem(models.post(SPARSE_URL, params={"alias": "none"}, json=body), 404)
    problem(models.post(SPARSE_URL, params={"alias": "production", "version": 1}, json=body), 422)
    problem(models.post(SPARSE_URL, params={"version": "one"}, json=body), 422)


def test_a_model_that_is_loaded_answers_without_sql(
    models: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = [{"indices": [1], "values": [1]}]
    ask(models, "letters", one)

    def asked(*_: object) -> None:
        raise AssertionError("the database was asked")

    monkeypatch.setattr(ModelCache, "get", asked)
    assert ask(models, "letters", one).version == 1
    assert app.state.models.nbytes > 0


def test_a_warm_prediction_waits_for_no_thread(
    models: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = [{"indices": [1], "values": [1]}]
    ask(models, "letters", one)
    deadline = time.monotonic() + 60
    while any(loaded.on_disk for loaded in app.state.models.loaded()):
        assert time.monotonic() < deadline, "the model's files are not read ahead"
        time.sleep(0.01)

    async def waited(*_: object) -> None:
        raise AssertionError("a thread was waited for")

    monkeypatch.setattr(inference, "run_in_threadpool", waited)
    monkeypatch.setattr(auth, "run_in_threadpool", waited)
    monkeypatch.setattr(remembered, "REMEMBERED_SECONDS", 600.0)
    for _ in range(10):
        assert ask(models, "letters", one).version == 1


def test_another_process_serves_a_promoted_version_and_meanwhile_the_one_before(
    models: TestClient, config: Settings, secrets: dict[str, str]
) -> None:
    train(models, "letters", "letters", params={"C": 0.01})
    url, one = "/api/v1/models/letters/aliases/production", [{"indices": [1], "values": [1]}]
    models.put(url, json={"version": 1})
    with TestClient(create_app(config), headers=bearer(secrets["viewer"])) as elsewhere:
        assert ask(elsewhere, "letters", one, alias="production").version == 1
        models.put(url, json={"version": 2}, headers={"If-Match": '"1"'})
        deadline = time.monotonic() + 60
        while (version := ask(elsewhere, "letters", one, alias="production").version) != 2:
            assert version == 1
            assert time.monotonic() < deadline, "the promotion is not seen"


def test_a_model_whose_files_are_gone_is_unavailable(models: TestClient, config: Any) -> None:
    for manifest in config.files_folder.glob("models/*/model/manifest.json"):
        manifest.unlink()
    response = models.post(SPARSE_URL, json={"instances": [{"indices": [1], "values": [1]}]})
    problem(response, 503, "unavailable")
    assert response.headers["retry-after"]


def test_values_whose_scores_are_no_numbers_are_refused(models: TestClient) -> None:
    body = {"instances": [{"indices": [0, 1], "values": [1.7e308, 1.7e308]}]}
    assert "beyond the range of floats" in problem(models.post(SPARSE_URL, json=body), 422)["detail"]


def test_only_what_takes_moments_is_scored_between_other_requests(models: TestClient, tmp_path: Path) -> None:
    kept: LoadedModel = models.app.state.models.get(("default", "letters", None, None))  # type: ignore[attr-defined]
    loaded = replace(kept, read_ahead=None)
    assert takes_moments(loaded, 1000)
    reading = ReadAhead(tmp_path)
    reading.over = False  # should the thread have ended before
    assert not takes_moments(replace(kept, read_ahead=reading), 1000)
    assert not takes_moments(loaded, 1 << 20)
    of_many = loaded.version.model_copy(update={"n_classes": 20_000})
    assert takes_moments(replace(loaded, version=of_many), 1000)
    assert not takes_moments(replace(loaded, version=of_many), 60_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(loaded.model), "kind", "kernel")
        assert takes_moments(loaded, 1000)
        assert not takes_moments(replace(loaded, nbytes=1 << 30), 1000)
