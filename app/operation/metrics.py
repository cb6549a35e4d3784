"""What Prometheus may ask: requests and predictions as they pass, jobs and loaded models as they are now."""

import threading
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from app.durations import Durations
from app.operation.readiness import Load
from app.predictions.drift import VersionDrift
from app.store.storage_counts import COUNTS, StorageCounts

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The counters of one process.

    Parameters
    ----------
    load : callable
        Gives what goes on in the installation.
    cache_bytes : callable
        Gives the bytes of the models that are loaded.
    copies_bytes : callable
        Gives the bytes of the local copies of files in object storage.
    """

    def __init__(
        self,
        load: Callable[[], Load],
        cache_bytes: Callable[[], int],
        copies_bytes: Callable[[], int] = lambda: 0,
        storage: StorageCounts = COUNTS,
    ) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, str, int], int] = {}
        self._seconds: dict[tuple[str, str], Durations] = {}
        self._predictions = Durations()
        self._n_instances = 0
        self._registry = CollectorRegistry()
        self._registry.register(_Passed(self))
        self._registry.register(_Now(load, cache_bytes))
        self._registry.register(_Storage(storage, copies_bytes))

    def answered(self, method: str, route: str, status: int, seconds: float, *, streamed: bool) -> None:
        """Count one answered request; how long a stream of events was followed says nothing about latency."""
        key = method, route, status
        with self._lock:
            self._requests[key] = self._requests.get(key, 0) + 1
            if not streamed:
                durations = self._seconds.get((method, route))
                if durations is None:
                    durations = self._seconds[method, route] = Durations()
                durations.add(seconds)

    def predicted(self, n_instances: int, seconds: float) -> None:
        """Count one answered prediction request."""
        with self._lock:
            self._predictions.add(seconds)
            self._n_instances += n_instances

    def passed(self) -> Iterable[Metric]:
        """What was counted."""
        requests = CounterMetricFamily(
            "polymargin_requests", "Requests answered.", labels=("method", "route", "status")
        )
        spans = HistogramMetricFamily(
            "polymargin_request_seconds", "Time from a request to the end of its response.", labels=("method", "route")
        )
        predictions = HistogramMetricFamily(
            "polymargin_prediction_seconds", "Time to check the instances of one request and to score them.", labels=()
        )
        instances = CounterMetricFamily("polymargin_instances", "Instances predicted.", labels=())
        with self._lock:
            for (method, route, status), n in self._requests.items():
                requests.add_metric((method, route, str(status)), n)
            for key, durations in self._seconds.items():
                spans.add_metric(key, durations.buckets(), durations.seconds)
            predictions.add_metric((), self._predictions.buckets(), self._predictions.seconds)
            instances.add_metric((), self._n_instances)
        return requests, spans, predictions, instances

    def text(self, versions: Iterable[VersionDrift] | None = None) -> bytes:
        """All values in the text format of Prometheus, with those of ``versions`` by name where they are given."""
        found = generate_latest(self._registry)
        if versions is None:
            return found
        named = CollectorRegistry()
        named.register(_Versions(versions))
        return found + generate_latest(named)


class _Passed(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        return self._metrics.passed()


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
            "polymargin_job_waiting_seconds", "Waiting time of the oldest queued job.", value=found.waiting_seconds
        )
        workers = GaugeMetricFamily("polymargin_workers", "Live worker processes by queue.", labels=("queue",))
        for queue, count in found.workers.items():
            workers.add_metric((queue,), count)
        yield workers
        yield GaugeMetricFamily("polymargin_free_bytes", "Free on the disk of the data folder.", value=found.free_bytes)
        yield GaugeMetricFamily("polymargin_model_cache_bytes", "Bytes of loaded models.", value=self._cache_bytes())


class _Storage(Collector):
    def __init__(self, counts: StorageCounts, copies_bytes: Callable[[], int]) -> None:
        self._counts, self._copies_bytes = counts, copies_bytes

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        requests = CounterMetricFamily(
            "polymargin_storage_requests",
            "Attempts at requests to object storage, by outcome.",
            labels=("operation", "outcome"),
        )
        spans = HistogramMetricFamily(
            "polymargin_storage_seconds",
            "Time from such an attempt to the beginning of its answer.",
            labels=("operation",),
        )
        retries = CounterMetricFamily("polymargin_storage_retries", "Attempts after the first one.", labels=())
        evictions = CounterMetricFamily(
            "polymargin_file_cache_evictions", "Copies of files that were removed to make room.", labels=()
        )
        with self._counts.lock:
            for key, n in self._counts.requests.items():
                requests.add_metric(key, n)
            for operation, durations in self._counts.seconds.items():
                spans.add_metric((operation,), durations.buckets(), durations.seconds)
            retries.add_metric((), self._counts.retries)
            evictions.add_metric((), self._counts.evictions)
        yield from (requests, spans, retries, evictions)
        yield GaugeMetricFamily(
            "polymargin_file_cache_bytes", "Bytes of the copies of files on this machine.", value=self._copies_bytes()
        )


class _Versions(Collector):
    def __init__(self, versions: Iterable[VersionDrift]) -> None:
        self._versions = versions

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        of_version = ("workspace", "model", "version")
        answers = GaugeMetricFamily("polymargin_recent_answers", "Answers of the last seven days.", labels=of_version)
        psi = GaugeMetricFamily(
            "polymargin_score_psi", "Population stability index of their scores.", labels=of_version
        )
        variation = GaugeMetricFamily(
            "polymargin_label_total_variation",
            "Distance of their labels from those of held-out rows.",
            labels=of_version,
        )
        for each in self._versions:
            labels = (each.workspace, each.model, str(each.version))
            answers.add_metric(labels, each.n_answers)
            if each.psi is not None:
                psi.add_metric(labels, each.psi)
            if each.total_variation is not None:
                variation.add_metric(labels, each.total_variation)
        yield from (answers, psi, variation)
