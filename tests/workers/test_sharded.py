"""Jobs in class shards: the same objective for any number of them, checkpoints of all shards, and clean ends."""

import math
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from noise import noise
from pools import pools
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app import tracing
from app.errors import Conflict, InvalidInput
from app.jobs import logs as job_logs
from app.jobs import service as jobs
from app.jobs.schemas import Job, TrainRequest
from app.models import service as models
from app.schemas import ProblemDocument
from app.store import tables
from app.store.files import files
from solvers.core.base import STATE_FORMAT
from solvers.core.model import Model
from solvers.core.sharded_linear_model import ShardedLinearModel
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.core.stored_models import load_model
from solvers.linear.layouts import hybrid_layout
from solvers.linear.sharded.relative_shards import RelativeShards
from solvers.output_codes.columns import one_by_one
from workers.phases import driving
from workers.running import lanes
from workers.sharding import sharded
from workers.sharding.shard import _Shard
from workers.sharding.sharded import Coordinator
from workers.tasks import run

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
Database = sessionmaker[Session]


@pytest.fixture
def submit(database: Database, dataset: Callable[..., str], redis_url: str, configure: Any) -> Callable[..., str]:
    """``submit(shards=2)`` queues a training job on 20 classes of noise."""
    configure(heartbeat_seconds=0.2, lease_seconds=600)
    dataset(noise(200, 30), name="noise")

    def one(
        model: str = "m",
        solver: str = "weston_watkins",
        shards: int | None = 2,
        exchange: Any = None,
        hierarchy: str | None = None,
        **params: Any,
    ) -> str:
        params = {"C": 0.1, "tol": 1e-3} | params
        # one worker alone would train once more on all rows
        request = TrainRequest(
            dataset="noise",
            model=model,
            solver=solver,
            shards=shards,
            exchange=exchange,
            hierarchy=hierarchy,
            params=params,
            refit=False,
        )
        with database() as session:
            return jobs.submit(session, request).id

    return one


def shown(database: Database, id: str) -> Job:
    with database() as session:
        return jobs.get(session, id)


def published(database: Database, id: str, model: str = "m") -> tuple[Any, Model, dict[str, Any]]:
    job = shown(database, id)
    assert job.state == "succeeded", job.error
    with database() as session:
        version = models.version(session, model)
        loaded, details = load_model(files().path(models.folder(session, version.id)) / "model", verify=True)
    return version, loaded, details


def trained(database: Database, id: str, model: str = "m") -> tuple[Any, ShardedLinearModel]:
    version, loaded, details = published(database, id, model)
    assert isinstance(loaded, ShardedLinearModel)
    assert [shard["classes"] for shard in details["shards"]] == [block.shape[1] for block in loaded.blocks]
    return version, loaded


def is_clean(database: Database, redis_server: Any, id: str) -> None:
    with redis_server.client() as client:
        assert [key for key in client.scan_iter() if key.startswith(b"job:")] == []
    with database() as session:
        assert session.scalars(select(tables.Slot.job_id).where(tables.Slot.job_id.is_not(None))).all() == []
    assert not files().path(f"jobs/{id}").exists()
    assert not list(files().path("models").rglob("*.part"))


def failed(database: Database, redis_server: Any, id: str) -> ProblemDocument:
    """Why the job failed, which left nothing behind."""
    job = shown(database, id)
    assert job.state == "failed"
    assert job.error is not None
    is_clean(database, redis_server, id)
    return job.error


@pytest.mark.parametrize(
    ("solver", "bias"),
    [
        ("weston_watkins", 0.0),
        pytest.param("crammer_singer", 1.0, marks=pytest.mark.slow),
        ("one_vs_rest", 1.0),
        ("lee_lin_wahba", 1.0),
    ],
)
def test_any_number_of_shards_reaches_the_same_objective_with_the_same_kind_of_model(
    database: Database, submit: Callable[..., str], redis_server: Any, solver: str, bias: float
) -> None:
    found: list[Any] = []
    tol, close = 1e-3, 0.05
    for size in (1, 3):
        with pools(database, size):
            id = submit(solver=solver, shards=size, bias=bias, tol=tol)
            run(id)
        version, model = trained(database, id)
        assert len(model.blocks) == size
        assert (model.gathered().intercept is not None) == (bias > 0)
        assert version.gap <= tol
        assert set(version.report) == {"nonzero_weights", "nonzero_duals"}
        found.append(version)
        is_clean(database, redis_server, id)
    one, three = found
    assert three.primal == pytest.approx(one.primal, rel=tol)
    assert three.dual == pytest.approx(one.dual, rel=2 * tol)
    for name, share in one.report.items():
        assert three.report[name] == pytest.approx(share, abs=close), name
    assert three.metrics["train"]["error"] == pytest.approx(one.metrics["train"]["error"], abs=close)


TABLE = {"costs": {"c0": {"c1": 9.0}, "c3": {"c0": 0.5}}, "other_cost": 2.0}


@pytest.mark.parametrize(
    ("priced", "expected"),
    [
        (TABLE, [9.0, 0.5]),
        pytest.param(TABLE | {"cost_scaling": "slack"}, [9.0, 0.5], marks=pytest.mark.slow),
        pytest.param({"costs": "tree", "hierarchy": "tree"}, [2.0, 2.0], marks=pytest.mark.slow),
    ],
)
def test_shards_train_with_costs_and_their_model_has_them(
    database: Database,
    submit: Callable[..., str],
    hierarchy: Callable[..., str],
    priced: dict[str, Any],
    expected: list[float],
) -> None:
    hierarchy([("root", group) for group in "01234"] + [(str(i % 5), f"c{i}") for i in range(20)])
    with pools(database, 2):
        id = submit(solver="crammer_singer", shards=2, **priced)
        run(id)
    sharded, model = trained(database, id)
    id = submit(model="alone", solver="crammer_singer", shards=None, **priced)
    run(id)
    alone, other, _ = published(database, id, "alone")
    assert sharded.gap <= 1e-3
    assert sharded.primal == pytest.approx(alone.primal, rel=2e-3)
    assert model.costs is not None
    assert other.costs is not None
    pairs = [np.array([model.classes.index(label) for label in labels]) for labels in (("c0", "c3"), ("c1", "c0"))]
    assert model.costs.between(*pairs).tolist() == other.costs.between(*pairs).tolist() == expected


def test_shards_that_exchange_with_each_other_make_the_model_of_those_over_redis(
    database: Database, submit: Callable[..., str], redis_server: Any, configure: Any
) -> None:
    found = []
    for model, options in (("redis", {}), ("pairs", {"shard_address": "127.0.0.1"})):
        configure(heartbeat_seconds=0.2, lease_seconds=600, **options)
        with pools(database, 2):
            id = submit(model=model)
            run(id)
        found.append(trained(database, id, model))
        is_clean(database, redis_server, id)
    (by_redis, first), (by_pairs, second) = found
    assert (by_pairs.primal, by_pairs.dual) == (by_redis.primal, by_redis.dual)
    for mine, other in zip(first.blocks, second.blocks, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_a_shard_without_an_address_beside_one_that_has_one_fails_the_job_and_says_so(
    database: Database, submit: Callable[..., str], redis_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def address(own: _Shard) -> str | None:
        return "127.0.0.1" if own._lease.rank == 0 else None

    monkeypatch.setattr(_Shard, "_address", address)
    with pools(database, 2):
        id = submit()
        run(id)
    assert "Shards 1 have no POLYMARGIN_SHARD_ADDRESS" in failed(database, redis_server, id).detail


def test_shards_that_take_their_slots_before_the_gang_is_open_wait_for_it(
    database: Database, submit: Callable[..., str], monkeypatch: Any
) -> None:
    opened = sharded.open_gang

    def late(*args: Any) -> None:
        time.sleep(0.3)
        opened(*args)

    monkeypatch.setattr(sharded, "open_gang", late)
    with pools(database, 2):
        id = submit(tol=0.5)
        run(id)
    job = shown(database, id)
    assert (job.state, job.attempt) == ("succeeded", 1)


def test_every_shard_is_traced_below_the_attempt(database: Database, submit: Callable[..., str]) -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.use(provider)
    try:
        with pools(database, 2):
            run(submit(shards=2, tol=0.5))
        spans = {span.name: span for span in exporter.get_finished_spans()}
    finally:
        tracing.end()
    for rank in range(2):
        shard = spans[f"shard {rank}"]
        assert shard.parent.span_id == spans["job train"].context.span_id
        assert shard.context.trace_id == spans["job train"].context.trace_id
        assert (shard.attributes["polymargin.job.shard"], shard.status.is_ok) == (rank, True)


@pytest.mark.slow
def test_steps_report_what_was_exchanged(database: Database, submit: Callable[..., str]) -> None:
    with pools(database, 2):
        id = submit()
        run(id)
    with database() as session:
        steps = job_logs.steps(session, id).steps
    totals = {name: sum(step.measures[f"exchange_{name}"] for step in steps) for name in ("rounds", "bytes")}
    assert totals["rounds"] >= len({step.epoch for step in steps})
    assert totals["bytes"] > 100 * totals["rounds"]
    assert all(step.measures["exchange_wait_seconds"] >= 0 for step in steps)
    for step in steps:
        lanes = [(step.measures[f"shard_{k}_bytes"], step.measures[f"shard_{k}_wait_seconds"]) for k in range(2)]
        assert sum(sent for sent, _ in lanes) == step.measures["exchange_bytes"]
        assert max(waited for _, waited in lanes) == step.measures["exchange_wait_seconds"]
    assert steps[-1].gap is not None
    assert steps[-1].gap <= 1e-3


def interrupt_behind(monkeypatch: pytest.MonkeyPatch, database: Database, job: str, step: int) -> None:
    """The worker is asked to end as soon as the job has a checkpoint of this step or a later one.

    It keeps one after every step, also where saving takes long.
    """
    monkeypatch.setattr(driving, "_CHECKPOINT_SHARE", math.inf)

    def reached() -> bool:
        with database() as session:
            kept = session.get(tables.Checkpoint, job)
            return kept is not None and kept.step >= step

    monkeypatch.setattr(lanes, "drain_requested", reached)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
def test_a_job_goes_on_from_the_last_checkpoint_of_all_shards_in_as_many_pools_as_there_are(
    database: Database, submit: Callable[..., str], monkeypatch: pytest.MonkeyPatch, configure: Any, size: int
) -> None:
    configure(checkpoint_seconds=0)
    with pools(database, 2):
        id = submit(C=10.0, tol=1e-4, max_epochs=40)
        run(id)
        version, whole = trained(database, id)
        other = submit(C=10.0, tol=1e-4, max_epochs=40)
        interrupt_behind(monkeypatch, database, other, 3)
        run(other)
        monkeypatch.setattr(lanes, "drain_requested", lambda: False)
    job = shown(database, other)
    assert (job.state, job.attempt) == ("queued", 1)
    with database() as session:
        row = session.get(tables.Checkpoint, other)
        assert row is not None
        assert row.step > 2
    configure(heartbeat_seconds=0.2)
    with pools(database, size):
        run(other)
    resumed, model = trained(database, other)
    assert len(model.blocks) == 2
    assert (resumed.primal, resumed.dual, resumed.epochs) == (version.primal, version.dual, version.epochs)
    np.testing.assert_array_equal(model.gathered().W, whole.gathered().W)


@pytest.mark.slow
def test_shards_with_lists_of_classes_go_on_after_an_interruption_and_end_with_one_sparse_model(
    database: Database, submit: Callable[..., str], redis_server: Any, monkeypatch: pytest.MonkeyPatch, configure: Any
) -> None:
    configure(checkpoint_seconds=0)
    with pools(database, 2):
        id = submit(C=10.0, tol=1e-4, max_epochs=40)
        run(id)
        version, dense = trained(database, id)
        # of 10 classes a shard, no feature is frequent
        monkeypatch.setattr(hybrid_layout, "DENSE_CLASSES", 9)
        monkeypatch.setattr(hybrid_layout, "FREQUENT", 100.0)
        other = submit(C=10.0, tol=1e-4, max_epochs=40)
        interrupt_behind(monkeypatch, database, other, 3)
        run(other)
        monkeypatch.setattr(lanes, "drain_requested", lambda: False)
        assert (shown(database, other).state, shown(database, other).attempt) == ("queued", 1)
        run(other)
    resumed, model, details = published(database, other)
    assert (resumed.primal, resumed.dual, resumed.epochs) == (version.primal, version.dual, version.epochs)
    assert resumed.report == version.report
    assert isinstance(model, SparseLinearModel)
    assert [shard["classes"] for shard in details["shards"]] == [10, 10]
    np.testing.assert_array_equal(model.W.toarray(), dense.gathered().W)
    is_clean(database, redis_server, other)


@pytest.mark.slow
def test_shards_do_not_resume_a_checkpoint_of_another_state_format_and_start_afresh(
    database: Database, submit: Callable[..., str], monkeypatch: pytest.MonkeyPatch, configure: Any
) -> None:
    configure(checkpoint_seconds=0)
    with pools(database, 2):
        id = submit(C=10.0, tol=1e-4, max_epochs=40)
        with monkeypatch.context() as patch:
            patch.setattr(driving, "VERSIONS", driving.VERSIONS | {"state_format": STATE_FORMAT - 1})
            interrupt_behind(patch, database, id, 1)
            run(id)
        monkeypatch.setattr(lanes, "drain_requested", lambda: False)
        with database() as session:
            assert session.get(tables.Checkpoint, id) is not None
        run(id)
    with database() as session:
        steps = job_logs.steps(session, id, limit=10000).steps
    assert {step.attempt for step in steps} == {2}
    assert steps[0].measures["started_afresh"] == 1.0
    trained(database, id)


@pytest.mark.slow
def test_columns_of_an_output_code_make_the_same_model_in_any_pools_and_after_an_interruption(
    database: Database, submit: Callable[..., str], redis_server: Any, monkeypatch: pytest.MonkeyPatch, configure: Any
) -> None:
    monkeypatch.setattr(one_by_one, "SLICE_CELLS", 1 << 16)
    configure(checkpoint_seconds=0)
    chosen = {"solver": "output_code", "base": "weston_watkins", "C": 1.0}
    alone = submit(shards=None, **chosen)
    run(alone)
    version, whole, _ = published(database, alone)
    with pools(database, 2):
        id = submit(**chosen)
        interrupt_behind(monkeypatch, database, id, 2)
        run(id)
        monkeypatch.setattr(lanes, "drain_requested", lambda: False)
    assert (shown(database, id).state, shown(database, id).attempt) == ("queued", 1)
    with database() as session:
        row = session.get(tables.Checkpoint, id)
        assert row is not None
        assert row.step > 1
    configure(heartbeat_seconds=0.2)
    with pools(database, 2):
        run(id)
    resumed, model, details = published(database, id)
    assert [shard["columns"] for shard in details["shards"]] == [10, 10]
    assert (resumed.version, resumed.report) == (version.version + 1, pytest.approx(version.report))
    assert resumed.primal == pytest.approx(version.primal, rel=1e-12)
    assert model.arrays().keys() == whole.arrays().keys()
    for name, array in whole.arrays().items():
        np.testing.assert_array_equal(model.arrays()[name], array)
    is_clean(database, redis_server, id)


def test_two_jobs_at_once_take_their_slots_one_after_the_other(
    database: Database, submit: Callable[..., str], redis_server: Any
) -> None:
    with pools(database, 2):
        ids = [submit(f"m{i}", max_epochs=5, tol=1e-6, dtype="float32") for i in range(2)]

        def until_done(id: str) -> None:
            while shown(database, id).state == "queued":
                run(id)
                time.sleep(0.05)

        threads = [threading.Thread(target=until_done, args=(id,)) for id in ids]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for i, id in enumerate(ids):
        trained(database, id, f"m{i}")
        is_clean(database, redis_server, id)


def test_a_job_that_waits_for_slots_says_so(database: Database, submit: Callable[..., str]) -> None:
    with pools(database, 2):
        id = submit()
    with database() as session:
        session.execute(tables.Worker.__table__.delete())  # type: ignore[attr-defined]
        session.commit()
    run(id)
    job = shown(database, id)
    assert job.state == "queued"
    assert job.progress is not None
    assert job.progress.phase == "waiting"


def test_more_shards_than_pools_or_classes_are_refused_with_the_numbers(
    database: Database, submit: Callable[..., str]
) -> None:
    with pools(database, 2):
        with pytest.raises(Conflict, match="3 shards need as many pools of workers; 2 are running: shard-0, shard-1"):
            submit(shards=3)
        with pytest.raises(InvalidInput) as refused:
            submit(shards=21)
    assert refused.value.errors[0].detail == "21 shards for 20 classes; each needs at least one"
    with pytest.raises(Conflict, match="0 are running"):
        submit()
    digits = [[1 if c >> t & 1 else -1 for t in range(5)] for c in range(20)]
    with pytest.raises(InvalidInput) as refused:
        submit(shards=6, solver="output_code", matrix=digits)
    assert refused.value.errors[0].detail == "6 shards for 5 columns; each needs at least one"
    with pytest.raises(InvalidInput, match="not trained in shards"):
        submit(solver="absolute_maximum")


def test_a_path_in_shards_is_refused_with_the_reason(database: Database, submit: Callable[..., str]) -> None:
    request = TrainRequest(solver="weston_watkins", dataset="noise", model="m", shards=2, path=[0.1, 1.0])
    with (
        pools(database, 2),
        database() as session,
        pytest.raises(InvalidInput, match="runs in one worker") as refused,
    ):
        jobs.submit(session, request)
    assert [(item.pointer, item.detail) for item in refused.value.errors] == [
        ("/shards", "give shards or a path, not both")
    ]


def test_a_job_is_cancelled_in_the_middle(
    database: Database, submit: Callable[..., str], redis_server: Any, configure: Any
) -> None:
    configure(checkpoint_seconds=1000)
    with pools(database, 2):
        id = submit(C=100.0, tol=1e-9, max_epochs=10**6, dtype="float32")
        thread = threading.Thread(target=run, args=(id,))
        thread.start()
        while (job := shown(database, id)).progress is None or job.progress.epoch == 0:
            assert job.state in {"queued", "running"}, job.error
            time.sleep(0.05)
        with database() as session:
            jobs.cancel(session, id)
        thread.join()
    assert shown(database, id).state == "cancelled"
    is_clean(database, redis_server, id)


def test_what_fails_in_a_shard_is_the_job_s_error(
    database: Database, submit: Callable[..., str], redis_server: Any, monkeypatch: Any
) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(RelativeShards, "partition", fail)
    with pools(database, 2):
        id = submit()
        run(id)
    assert failed(database, redis_server, id).code == "out_of_memory"


def test_shards_that_are_done_before_the_coordinator_has_read_so_are_not_lost(
    database: Database, submit: Callable[..., str], redis_server: Any, monkeypatch: Any
) -> None:
    def slow(self: Coordinator, mine: Any) -> Any:
        ticket = self._control.post(mine)
        time.sleep(0.1)
        self._watched_at = 0.0
        self._watch_shards()
        return self._control.collect(ticket)[: self._size]

    monkeypatch.setattr(Coordinator, "collect", slow)
    with pools(database, 2):
        id = submit(tol=0.5)
        run(id)
    trained(database, id)
    assert shown(database, id).attempt == 1
    is_clean(database, redis_server, id)
