"""The task of one shard: it takes its slot in a gang, trains its classes, and writes what is theirs."""

import contextlib
import math
import os
import socket
import time
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray
from sqlalchemy.exc import SQLAlchemyError
from threadpoolctl import threadpool_limits

from app import tracing
from app.config import settings
from app.errors import Conflict
from app.jobs import slots
from app.jobs.schemas import stored_request
from app.jobs.slots import Fenced, ShardLease
from app.store.db import DATABASE_AWAY, sessions
from app.store.files import Files, files
from solvers.core.artefact_files import read_array, write_array
from solvers.core.base import State
from solvers.registry import make
from solvers.sharding import reshard
from solvers.sharding.exchange import Exchange, ExchangeError, gather
from solvers.sharding.shardable import Shardable, shardable
from workers.phases.preparation import digest, prepare
from workers.running import compiling, cpu_affinity, job_memory, lanes
from workers.running.failing import explain
from workers.running.job_context import Drained, LeaseHeartbeat
from workers.sharding import gang
from workers.sharding.exchange import RedisExchange
from workers.sharding.gang import Report
from workers.sharding.gang_keys import await_gang, report_compiling

_DONE = "done"
_log = structlog.get_logger("polymargin.shard")


def run_shard(job_id: str, rank: int) -> None:
    """Take the slot if it is still free, and stay until the gang ends; raises nothing that the job can explain."""
    if lanes.drain_requested():
        return  # the slot stays free, and the coordinator notifies another worker
    claimed_at = time.monotonic()
    try:
        with sessions()() as session:
            lease = slots.claim(session, job_id, rank, f"{socket.gethostname()}:{os.getpid()}")
    except DATABASE_AWAY as error:
        _log.warning("claim_failed", job_id=job_id, rank=rank, error=type(error).__name__)
        return
    if lease is None:
        _log.info("shard_taken", job_id=job_id, rank=rank)
        return
    log = _log.bind(job_id=job_id, attempt=lease.attempt, rank=rank)
    log.info("shard_started", size=lease.size)
    with _ShardHeartbeat(lease, claimed_at) as heartbeat:
        outcome = _run_in_gang(lease, heartbeat)
        log.info("shard_ended", outcome=outcome)
        if outcome == _DONE:
            return  # the coordinator, which may not have read the last message yet, gives the slots back
        try:
            with sessions()() as session:
                slots.leave(session, lease)
        except SQLAlchemyError as error:
            log.warning("database_away", error=type(error).__name__)  # the lease runs out


class _ShardHeartbeat(LeaseHeartbeat):
    """The heartbeat of one shard."""

    def __init__(self, lease: ShardLease, claimed_at: float) -> None:
        super().__init__(lease.job_id, lease.attempt, claimed_at)
        self._lease = lease

    def phase(self, name: str) -> None:
        """The coordinator alone says what is being done."""

    def _beat(self) -> None:
        self.write(lambda session: slots.renew(session, self._lease))


def _run_in_gang(lease: ShardLease, heartbeat: _ShardHeartbeat) -> str:
    url = settings().redis_url
    try:
        shard = _Shard(lease, heartbeat, url)
        with (
            job_memory.bounded(),
            threadpool_limits(shard.request.threads),
            compiling.noticed(shard.report_compiling),
        ):
            shard.run()
    except ExchangeError as error:
        return f"left: {error}"
    except Fenced:
        gang.break_all(url, lease.job_id, lease.attempt, f"shard {lease.rank} did not renew its lease in time")
        return "fenced"
    except Drained:
        gang.break_all(url, lease.job_id, lease.attempt, gang.drained())
        return "drained"
    except Exception as error:
        document = explain(error, lease.job_id)
        gang.break_all(url, lease.job_id, lease.attempt, gang.failure(document))
        return str(document["code"])
    return _DONE


class _Shard:
    def __init__(self, lease: ShardLease, heartbeat: _ShardHeartbeat, url: str) -> None:
        self._lease, self._heartbeat, self._store = lease, heartbeat, files()
        self.request = stored_request(lease.request)
        self._exchange, self._control = gang.names(lease.job_id, lease.attempt)
        self._url = url
        self._said_at = -math.inf

    def run(self) -> None:
        """From the first message to the coordinator to the last one."""
        lease, request, began = self._lease, self.request, time.time_ns()
        trained = make(request.solver, request.params, seed=request.seed, threads=request.threads)
        problem = prepare(self._heartbeat, lease, self._store, request, trained).problem
        solver = shardable(trained)
        self._ready()
        wait = settings().exchange_seconds
        # the lease is there as soon as the job is claimed, and an old message may have led here before the gang is open
        await_gang(self._url, self._control, wait, self._ready)
        control = RedisExchange(self._url, self._control, lease.rank, lease.size + 1, timeout=wait, check=self._ready)
        try:
            own = np.flatnonzero(solver.partition(problem, lease.size) == lease.rank).astype(np.int32)
            first = gather(control, [digest(problem), gang.encode(gang.VERSIONS), gang.encode(cpu_affinity.current())])
            order = gang.decode(first[-1][0])
            state = self._start(control, order, solver, own)
            exchange = self._join(wait)
            try:
                with tracing.shard(lease.job_id, lease.attempt, lease.rank, order["trace"], began):
                    with cpu_affinity.separated([gang.decode(part[2]) for part in first[:-1]], lease.rank):
                        last = self._train(control, exchange, solver, problem, state)
                    if last is not None:
                        self._finish(control, solver, problem, last)
            finally:
                exchange.close()
        finally:
            control.close()

    def report_compiling(self) -> None:
        """Let the coordinator show that the training waits for compiled loops; at most once a second."""
        if time.monotonic() - self._said_at < 1.0:
            return
        self._said_at = time.monotonic()
        with contextlib.suppress(ExchangeError):  # which the training will meet itself
            report_compiling(self._url, self._control)

    def _join(self, wait: float) -> RedisExchange:
        """The exchange of what the solvers need of each other."""
        name, rank, size, check = self._exchange, self._lease.rank, self._lease.size, self._heartbeat.check
        address = self._address()
        if address is None:
            return RedisExchange(self._url, name, rank, size, timeout=wait, check=check)
        try:
            from workers.sharding.pair_exchange import PairExchange
        except ModuleNotFoundError as error:
            raise Conflict("POLYMARGIN_SHARD_ADDRESS needs pyzmq: pip install 'polymargin[pairs]'.") from error
        ports = settings().shard_port_range
        return PairExchange(self._url, name, rank, size, address=address, ports=ports, timeout=wait, check=check)

    def _address(self) -> str | None:
        return settings().shard_address

    def _ready(self) -> None:
        self._heartbeat.check()
        if lanes.drain_requested():
            raise Drained

    def _start(
        self, control: Exchange, order: dict[str, Any], solver: Shardable, own: NDArray[np.int32]
    ) -> State | None:
        if order["checkpoint"] is None:
            return None
        state: State | None = None
        try:
            state = read_state(self._store, order["checkpoint"], order["sha256"], solver, own)
        except (OSError, ValueError):
            _log.exception("checkpoint_unusable", job_id=self._lease.job_id, rank=self._lease.rank)
        usable = [part[0] for part in gather(control, [np.array([state is not None])])[:-1]]
        return state if all(flag[0] for flag in usable) else None

    def _train(
        self, control: Exchange, exchange: RedisExchange, solver: Shardable, problem: Any, state: State | None
    ) -> State | None:
        """Steps until the last one, whose state it returns, or until the coordinator sends the shards away."""
        last: State | None = state
        for step in solver.sharded(problem, exchange, state):
            last = step.state
            order, number = self._report(control, Report.from_step(step, exchange, lanes.drain_requested()))
            if step.converged:
                return last
            if order & gang.SAVE:
                gather(control, self._save(solver, step.state, number))
            if order & gang.LEAVE:
                return None
        self._report(control, Report.from_step(None, exchange, lanes.drain_requested()))
        return last

    def _report(self, control: Exchange, report: Report) -> tuple[int, int]:
        (order,) = gather(control, [report.array()])[-1]
        self._heartbeat.check()
        return int(order[0]), int(order[1])

    def _save(self, solver: Shardable, state: State, number: int) -> list[NDArray[np.uint8]]:
        lease = self._lease
        path = f"jobs/{lease.job_id}/{lease.attempt}-{number}-0"
        try:
            alone, common = solver.split(state)
            saved = [self._store.save_arrays(f"{path}/shard-{lease.rank}", alone, {})]
            if lease.rank == 0:
                saved.append(self._store.save_arrays(f"{path}/common", common, {}))
        except OSError:
            _log.exception("checkpoint_not_written", job_id=lease.job_id, rank=lease.rank)
            saved = []
        return [gang.encode(saved)]

    def _finish(self, control: Exchange, solver: Shardable, problem: Any, state: State) -> None:
        lease = self._lease
        store, folder = self._store, model_part(lease.job_id, lease.attempt)
        store.path(folder).mkdir(parents=True, exist_ok=True)
        part = solver.part(problem, state)
        hashes = {}
        for name, array in part.files(lease.rank).items():
            hashes[name] = write_array(store.path(f"{folder}/{name}.npy"), array)
            store.publish(f"{folder}/{name}.npy")
        gather(control, [gang.encode({"hashes": hashes, "reported": part.report()}), part.own])


def model_part(job_id: str, attempt: int) -> str:
    """The folder in which the shards of an attempt write their parts of the model."""
    return f"models/{job_id}.{attempt}/.model.part"


def read_state(store: Files, path: str, sha256: str, solver: Shardable, own: NDArray[np.int32]) -> State:
    """The state of a shard that has ``own``, from a checkpoint of any number of shards.

    Raises
    ------
    OSError, ValueError
        Files are not there, or are not what was written.
    """
    _, manifest = store.load_arrays(f"{path}/gang", sha256=sha256)
    common, _ = store.load_arrays(f"{path}/common", mmap=False, sha256=manifest["common"])
    parts = []
    for rank, digest_ in enumerate(manifest["shards"]):
        folder = f"{path}/shard-{rank}"
        classes = read_array(store.local(folder) / f"{reshard.OWN}.npy", mmap=False)
        if len(np.intersect1d(own, classes)):
            parts.append(store.load_arrays(folder, sha256=digest_)[0])
    return {**common, **solver.gathered(parts, own)}
