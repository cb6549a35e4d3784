import pytest
from asking import TestClient, problem
from fastapi import FastAPI

from app.jobs import slots
from app.operation import readiness
from app.store.db import sessions
from app.version import VERSION


def test_the_process_says_that_it_lives(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok", "version": VERSION}


def test_a_service_without_queue_and_workers_is_not_ready(client: TestClient) -> None:
    response = client.get("/readyz")
    document = problem(response, 503, "unavailable")
    assert [item["pointer"] for item in document["errors"]] == ["/queue", "/workers"]
    assert response.headers["retry-after"]


def test_a_service_with_all_its_parts_is_ready(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "reachable", lambda: True)
    with sessions()() as session:
        slots.report_worker(session, "here:1", "general", 2)
    parts = dict.fromkeys(("database", "queue", "workers", "storage"), "ok")
    assert client.get("/readyz").json() == {"ready": True, **parts}


def test_a_service_without_its_database_is_not_ready(
    client: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sessions()() as session:
        session.connection().exec_driver_sql("DROP TABLE workers")
        session.commit()
    document = problem(client.get("/readyz"), 503)
    assert "/database" in [item["pointer"] for item in document["errors"]]


def test_metrics_count_requests_predictions_jobs_and_loaded_bytes(models: TestClient) -> None:
    body = {"instances": [{"indices": [1], "values": [1]}] * 3}
    assert models.post("/api/v1/models/letters/predict", json=body).status_code == 200
    assert models.get("/api/v1/models/none").status_code == 404
    assert models.get("/api/v1/none/of/these").status_code == 404
    values = dict(line.rsplit(" ", 1) for line in models.get("/metrics").text.splitlines() if line[0] != "#")
    assert values['polymargin_requests_total{method="GET",route="/api/v1/models/{ref}",status="404"}'] == "1.0"
    assert values['polymargin_requests_total{method="any",route="unknown",status="404"}'] == "1.0"
    assert values['polymargin_request_seconds_count{method="POST",route="/api/v1/models/{ref}/predict"}'] == "1.0"
    assert values["polymargin_prediction_seconds_count"] == "1.0"
    assert values["polymargin_instances_total"] == "3.0"
    assert values['polymargin_jobs{state="succeeded"}'] == "6.0"
    assert float(values["polymargin_model_cache_bytes"]) > 0
