"""The task of one shard: it takes its seat in a gang, trains its classes, and writes what is theirs."""

import os
import socket
import time
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray
from sqlalchemy.exc import SQLAlchemyError
from threadpoolctl import threadpool_limits

from app.config import settings
from app.errors import InvalidInput
from app.schemas.jobs import TrainRequest
from app.services import slots
from app.services.fencing import Fenced
from app.services.slots import Seat
from app.store.db import DATABASE_AWAY, sessions
from app.store.files import Files, files
from solvers.base import State
from solvers.model import write_array
from solvers.registry import find, parse_params
from solvers.sharding import reshard
from solvers.sharding.exchange import Exchange, ExchangeError, gather
from solvers.sharding.shardable import Shardable
from solvers.version import VERSION
from workers import draining, gang, processors
from workers.exchange import RedisExchange
from workers.failing import explain
from workers.gang import Report
from workers.gang_keys import await_gang
from workers.heart import Heart
from workers.journal import Drained
from workers.preparing import digest, prepare

_DONE = "done"
_log = structlog.get_logger("polymargin.shard")


def run_shard(job_id: str, rank: int) -> None:
    """Take the seat if it is still to be had, and stay until the gang ends; raises nothing that the job can explain."""
    if draining.requested():
        return  # the seat stays free, and the coordinator rings for it
    claimed_at = time.monotonic()
    try:
        with sessions()() as session:
            seat = slots.claim(session, job_id, rank, f"{socket.gethostname()}:{os.getpid()}")
    except DATABASE_AWAY as error:
        _log.warning("claim_failed", job_id=job_id, rank=rank, error=type(error).__name__)
        return
    if seat is None:
        _log.info("seat_taken", job_id=job_id, rank=rank)
        return
    log = _log.bind(job_id=job_id, attempt=seat.attempt, rank=rank)
    log.info("shard_started", size=seat.size)
    with _Seated(seat, claimed_at) as heart:
        outcome = _attend(seat, heart)
        log.info("shard_ended", outcome=outcome)
        if outcome == _DONE:
            return  # the coordinator, which may not have read the last word yet, gives the slots back
        try:
            with sessions()() as session:
                slots.leave(session, seat)
        except SQLAlchemyError as error:
            log.warning("database_away", error=type(error).__name__)  # the lease runs out


class _Seated(Heart):
    """Signs of life of one shard."""

    def __init__(self, seat: Seat, claimed_at: float) -> None:
        super().__init__(seat.job_id, seat.attempt, claimed_at)
        self._seat = seat

    def _beat(self) -> None:
        self.write(lambda session: slots.renew(session, self._seat))


def _attend(seat: Seat, heart: _Seated) -> str:
    url = settings().redis_url
    try:
        shard = _Shard(seat, heart, url)
        with threadpool_limits(shard.request.threads):
            shard.run()
    except ExchangeError as error:
        return f"left: {error}"
    except Fenced:
        gang.break_all(url, seat.job_id, seat.attempt, f"shard {seat.rank} was too slow to keep its seat")
        return "fenced"
    except Drained:
        gang.break_all(url, seat.job_id, seat.attempt, gang.drained())
        return "drained"
    except Exception as error:
        document = explain(error, seat.job_id)
        gang.break_all(url, seat.job_id, seat.attempt, gang.failure(document))
        return str(document["code"])
    return _DONE


class _Shard:
    def __init__(self, seat: Seat, heart: _Seated, url: str) -> None:
        self._seat, self._heart, self._store = seat, heart, files()
        self.request = TrainRequest.model_validate(seat.request)
        self._exchange, self._control = gang.names(seat.job_id, seat.attempt)
        self._url = url

    def run(self) -> None:
        """From the first word to the coordinator to the last one."""
        seat, request = self._seat, self.request
        solver = find(request.solver)(
            parse_params(request.solver, request.params), seed=request.seed, threads=request.threads
        )
        if not isinstance(solver, Shardable):
            raise InvalidInput(f"{request.solver} cannot be trained in shards")
        problem = prepare(self._heart, seat.job_id, seat.dataset_id, self._store, request).problem
        self._ready()
        wait = settings().exchange_seconds
        # the seat is there as soon as the job is claimed, and an old ring may have led here before the gang is open
        await_gang(self._url, self._control, wait, self._ready)
        control = RedisExchange(self._url, self._control, seat.rank, seat.size + 1, timeout=wait, check=self._ready)
        try:
            own = np.flatnonzero(solver.dealt(problem, seat.size) == seat.rank).astype(np.int32)
            first = gather(control, [digest(problem), gang.encode(VERSION), gang.encode(processors.place())])
            state = self._start(control, gang.decode(first[-1][0]), solver, own)
            exchange = RedisExchange(
                self._url, self._exchange, seat.rank, seat.size, timeout=wait, check=self._heart.check
            )
            try:
                with processors.kept_apart([gang.decode(part[2]) for part in first[:-1]], seat.rank):
                    last = self._train(control, exchange, solver, problem, state)
                if last is not None:
                    self._finish(control, solver, problem, last)
            finally:
                exchange.close()
        finally:
            control.close()

    def _ready(self) -> None:
        self._heart.check()
        if draining.requested():
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
            _log.exception("checkpoint_unusable", job_id=self._seat.job_id, rank=self._seat.rank)
        usable = [part[0] for part in gather(control, [np.array([state is not None])])[:-1]]
        return state if all(flag[0] for flag in usable) else None

    def _train(
        self, control: Exchange, exchange: RedisExchange, solver: Shardable, problem: Any, state: State | None
    ) -> State | None:
        """Steps until the last one, whose state it returns, or until the coordinator sends the shards away."""
        last: State | None = state
        for step in solver.sharded(problem, exchange, state, self.request.exchange):
            last = step.state
            order, number = self._report(control, Report.of(step, exchange, draining.requested()))
            if step.converged:
                return last
            if order & gang.SAVE:
                gather(control, self._save(solver, step.state, number))
            if order & gang.LEAVE:
                return None
        self._report(control, Report.of(None, exchange, draining.requested()))
        return last

    def _report(self, control: Exchange, report: Report) -> tuple[int, int]:
        (order,) = gather(control, [report.array()])[-1]
        self._heart.check()
        return int(order[0]), int(order[1])

    def _save(self, solver: Shardable, state: State, number: int) -> list[NDArray[np.uint8]]:
        seat = self._seat
        path = f"jobs/{seat.job_id}/{seat.attempt}-{number}-0"
        try:
            alone, common = solver.split(state)
            saved = [self._store.save_arrays(f"{path}/shard-{seat.rank}", alone, {})]
            if seat.rank == 0:
                saved.append(self._store.save_arrays(f"{path}/common", common, {}))
        except OSError:
            _log.exception("checkpoint_not_written", job_id=seat.job_id, rank=seat.rank)
            saved = []
        return [gang.encode(saved)]

    def _finish(self, control: Exchange, solver: Shardable, problem: Any, state: State) -> None:
        seat = self._seat
        folder = self._store.path(model_part(seat.job_id, seat.attempt))
        folder.mkdir(parents=True, exist_ok=True)
        part = solver.part(problem, state)
        files = part.files(seat.rank)
        hashes = {name: write_array(folder / f"{name}.npy", array) for name, array in files.items()}
        gather(control, [gang.encode({"hashes": hashes, "told": part.told()}), part.own])


def model_part(job_id: str, attempt: int) -> str:
    """The folder in which the shards of an attempt lay down their parts of the model."""
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
        classes = np.load(store.path(folder) / f"{reshard.OWN}.npy", allow_pickle=False)
        if len(np.intersect1d(own, classes)):
            parts.append(store.load_arrays(folder, sha256=digest_)[0])
    return {**common, **solver.gathered(parts, own)}
