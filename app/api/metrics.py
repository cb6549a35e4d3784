"""What Prometheus may ask: requests and predictions as they pass, jobs and loaded models as they are now."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """The counters of one process.

    Parameters
    ----------
    n_jobs : callable
        Gives the number of jobs in each state.
    cache_bytes : callable
        Gives the bytes of the models that are loaded.
    """

    def __init__(self, n_jobs: Callable[[], Mapping[str, int]], cache_bytes: Callable[[], int]) -> None:
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
        self._registry.register(_Now(n_jobs, cache_bytes))

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
    def __init__(self, n_jobs: Callable[[], Mapping[str, int]], cache_bytes: Callable[[], int]) -> None:
        self._n_jobs = n_jobs
        self._cache_bytes = cache_bytes

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        jobs = GaugeMetricFamily("polymargin_jobs", "Jobs by state.", labels=("state",))
        for state, count in self._n_jobs().items():
            jobs.add_metric((state,), count)
        yield jobs
        yield GaugeMetricFamily("polymargin_model_cache_bytes", "Bytes of loaded models.", value=self._cache_bytes())
