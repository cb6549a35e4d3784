"""Traces by OpenTelemetry of requests, jobs and their phases; nothing is traced until :func:`configure` says where to.

A request's span goes on where the caller's ``traceparent`` says. A job is a trace of its own, as it may run long after;
its span is linked to that of the request that made it, whose ``traceparent`` the job's row keeps.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from opentelemetry import context, trace
from opentelemetry.trace import Link, NoOpTracer, Span, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from app.errors import PolymarginError
from app.version import VERSION

_PARENT = "traceparent"
_propagator = TraceContextTextMapPropagator()
_tracer: Tracer = NoOpTracer()
_provider: Any = None


def configure(endpoint: str, service: str) -> None:
    """Send this process's spans to an OTLP collector over HTTP; an empty address leaves tracing off.

    Raises
    ------
    PolymarginError
        The extra ``otel`` is not installed.
    """
    if not endpoint:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        detail = "POLYMARGIN_TRACE_ENDPOINT needs the extra otel: pip install 'polymargin[otel]'"
        raise PolymarginError(detail) from error
    provider = TracerProvider(resource=Resource.create({"service.name": service, "service.version": VERSION}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    use(provider)


def use(provider: Any) -> None:
    """Trace by a provider of tracers from now on; None: not at all."""
    global _tracer, _provider
    _provider = provider
    _tracer = NoOpTracer() if provider is None else provider.get_tracer("polymargin", VERSION)


def end() -> None:
    """Send what has not been sent, and trace no more."""
    if _provider is not None:
        _provider.shutdown()
    use(None)


def is_on() -> bool:
    """Whether anything is traced."""
    return _provider is not None


def traceparent() -> str | None:
    """The current span as a header for other processes (W3C Trace Context); None if nothing is traced."""
    carrier: dict[str, str] = {}
    _propagator.inject(carrier)
    return carrier.get(_PARENT)


@contextlib.contextmanager
def request(method: str, headers: Mapping[str, str]) -> Iterator[Span]:
    """The span of a request, below that which the caller's headers name."""
    parent = _propagator.extract({_PARENT: headers.get(_PARENT, "")})
    with _tracer.start_as_current_span(method, parent, SpanKind.SERVER, {"http.request.method": method}) as span:
        yield span


def answered(span: Span, method: str, route: str, status: int, request_id: str) -> None:
    """Record the result of a request in its span."""
    span.update_name(f"{method} {route}")
    attributes: dict[str, str | int] = {
        "http.route": route,
        "http.response.status_code": status,
        "polymargin.request_id": request_id,
    }
    span.set_attributes(attributes)
    if status >= 500:
        span.set_status(StatusCode.ERROR)


@contextlib.contextmanager
def job(job_id: str, kind: str, attempt: int, made_by: str | None) -> Iterator[Span]:
    """The span of an attempt at a job, linked to that of the request that made it."""
    maker = trace.get_current_span(_propagator.extract({_PARENT: made_by or ""})).get_span_context()
    attributes: dict[str, str | int] = {
        "polymargin.job.id": job_id,
        "polymargin.job.kind": kind,
        "polymargin.job.attempt": attempt,
    }
    links = [Link(maker)] if maker.is_valid else []
    with _tracer.start_as_current_span(f"job {kind}", context.Context(), SpanKind.CONSUMER, attributes, links) as span:
        yield span


@contextlib.contextmanager
def shard(job_id: str, attempt: int, rank: int, under: str | None, began: int) -> Iterator[Span]:
    """The span of one shard since ``began`` (nanoseconds), below that of the attempt which ``under`` names."""
    attributes: dict[str, str | int] = {
        "polymargin.job.id": job_id,
        "polymargin.job.attempt": attempt,
        "polymargin.job.shard": rank,
    }
    parent = _propagator.extract({_PARENT: under or ""}, context.Context())
    with _tracer.start_as_current_span(
        f"shard {rank}", parent, SpanKind.INTERNAL, attributes, start_time=began
    ) as span:
        yield span


def ended(span: Span, outcome: str) -> None:
    """Record the outcome of a job in its span; anything but these is a failure's code."""
    span.set_attribute("polymargin.job.outcome", outcome)
    if outcome not in ("succeeded", "given back", "left to trials", "waiting", "cancelled"):
        span.set_status(StatusCode.ERROR, outcome)


def phase(name: str) -> Span:
    """Begin the span of a phase of the job that goes on now; it lasts until its ``end()``."""
    return _tracer.start_span(name)
