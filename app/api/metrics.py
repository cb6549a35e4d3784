"""What Prometheus may ask: requests and predictions as they pass, jobs and loaded models as they are now."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.services.readiness import Load

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """The counters of one process.

    Parameters
    ----------
    load : callable
        Gives what goes on in the installation.
    cache_bytes : callable
        Gives the bytes of the models that are loaded.
    """

    def __init__(self, load: Callable[[], Load], cache_bytes: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "polymargin_requests", "Requests answered.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "polymargin_request_seconds",
            "Time from a request to the end of its answer.",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._predictions = Histogram(
            "polymargin_prediction_seconds",
            "Time to check the instances of one request and to score them.",
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._instances = Counter("polymargin_instances", "Instances predicted.", registry=self._registry)
        self._counted: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._registry.register(_Now(load, cache_bytes))

    def answered(self, method: str, route: str, status: int, seconds: float, *, streamed: bool) -> None:
        """Count one answered request; how long a stream of events was followed says nothing about latency."""
        counted = self._counted.get((method, route, status))
        if counted is None:  # to find the counter by its labels takes longer than to count
            counted = self._requests.labels(method, route, str(status)), self._seconds.labels(method, route)
            self._counted[method, route, status] = counted
        counted[0].inc()
        if not streamed:
            counted[1].observe(seconds)

    def predicted(self, n_instances: int, seconds: float) -> None:
        """Count one answered prediction request."""
        self._predictions.observe(seconds)
        self._instances.inc(n_instances)

    def text(self) -> bytes:
        """All values in the text format of Prometheus."""
        return generate_latest(self._registry)


class _Now(Collector):
    def __init__(self, load: Callable[[], Load], cache_bytes: Callable[[], int]) -> None:
        self._load = load
        self._cache_bytes = cache_bytes

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        jobs = GaugeMetricFamily("polymargin_jobs", "Jobs by state.", labels=("state",))
        found = self._load()
        for state, count in found.jobs.items():
            jobs.add_metric((state,), count)
        yield jobs
        yield GaugeMetricFamily(
            "polymargin_job_waiting_seconds", "How long the oldest queued job has waited.", value=found.waiting_seconds
        )
        workers = GaugeMetricFamily("polymargin_workers", "Living worker processes by queue.", labels=("queue",))
        for queue, count in found.workers.items():
            workers.add_metric((queue,), count)
        yield workers
        yield GaugeMetricFamily("polymargin_free_bytes", "Free on the disk of the data folder.", value=found.free_bytes)
        yield GaugeMetricFamily("polymargin_model_cache_bytes", "Bytes of loaded models.", value=self._cache_bytes())
