"""Traces: a request's span, and a job's with its phases, linked to it; nothing where no address is set."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from asking import TestClient
from working import SPARSE, run, upload

from app import tracing
from app.errors import PolymarginError

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans(client: TestClient) -> Iterator[InMemorySpanExporter]:
    """What is sent, while this process traces."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.use(provider)
    yield exporter
    tracing.end()


def _named(spans: InMemorySpanExporter, name: str) -> Any:
    (found,) = [span for span in spans.get_finished_spans() if span.name == name]
    return found


def test_a_job_is_traced_with_its_phases_and_linked_to_its_request(
    client: TestClient, spans: InMemorySpanExporter
) -> None:
    upload(client, "d", SPARSE, "svmlight")
    spans.clear()
    body = {"dataset": "d", "model": "m", "solver": "weston_watkins"}
    answer = client.post("/api/v1/jobs", json=body, headers={"traceparent": CALLER, "X-Request-ID": "r1"})
    asked = _named(spans, "POST /api/v1/jobs")
    assert f"{asked.context.trace_id:032x}" == CALLER.split("-")[1]
    assert asked.attributes["polymargin.request_id"] == "r1"
    assert (asked.attributes["http.route"], asked.attributes["http.response.status_code"]) == ("/api/v1/jobs", 202)
    run(answer.json()["id"])
    job = _named(spans, "job train")
    assert [link.context.span_id for link in job.links] == [asked.context.span_id]
    assert (job.parent, job.attributes["polymargin.job.outcome"]) == (None, "succeeded")
    phases = [span for span in spans.get_finished_spans() if span.parent == job.context]
    assert {"loading", "training", "testing", "saving"} <= {span.name for span in phases}


def test_a_job_that_fails_and_a_request_that_is_refused_say_so(client: TestClient, spans: InMemorySpanExporter) -> None:
    answer = client.post("/api/v1/datasets?name=d&format=svmlight", content=b"a x:y\n")
    run(answer.json()["job"])
    job = _named(spans, "job import")
    assert (job.status.is_ok, job.attributes["polymargin.job.outcome"]) == (False, "invalid_input")
    client.get("/api/v1/models/none")
    refused = _named(spans, "GET /api/v1/models/{ref}")
    assert (refused.attributes["http.response.status_code"], refused.status.is_ok) == (404, True)


def test_nothing_is_traced_unless_an_address_is_set(client: TestClient) -> None:
    assert not tracing.is_on()
    tracing.configure("", "service")
    assert not tracing.is_on()
    dataset = upload(client, "d", SPARSE, "svmlight")
    assert dataset["state"] == "ready"
    assert tracing.traceparent() is None


def test_an_address_without_the_extra_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(PolymarginError, match=r"polymargin\[otel\]"):
        tracing.configure("http://127.0.0.1:4318/v1/traces", "service")
