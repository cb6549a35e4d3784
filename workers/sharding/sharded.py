"""Training jobs in class shards: the coordinator of a gang drives the steps of all shards, and records them.

The model is put together from what each shard has written to one folder.
"""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray

from app import tracing
from app.config import settings
from app.errors import InvalidInput
from app.jobs import slots
from app.jobs.leases import Checkpoint
from app.jobs.schemas import TrainRequest
from app.store.files import Files
from app.store.queue import notify_worker
from solvers.core.artefact_files import read_array, write_array
from solvers.core.base import Solver, Step, within_range
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.sharding.exchange import Arrays, ExchangeError
from solvers.sharding.shardable import Shardable, shardable
from workers.phases.driving import Outcome, Run
from workers.phases.preparation import Prepared, digest, prepare
from workers.phases.publishing import Publisher
from workers.running import lanes
from workers.running.job_context import Drained, JobContext
from workers.sharding import gang
from workers.sharding.exchange import RedisExchange
from workers.sharding.gang import Lost, Report, Waiting
from workers.sharding.gang_keys import open_gang, require_gang, was_compiling
from workers.sharding.shard import model_part


@dataclass(eq=False)
class Assembly:
    """What the shards have written to ``folder``.

    Attributes
    ----------
    owns : sequence of int32 array
        What each shard has trained, by rank.
    reports : sequence of mapping
        By rank: ``hashes``, the SHA-256 of its files by their names, and what its part ``reported``.
    """

    folder: Path
    owns: Sequence[NDArray[np.int32]]
    reports: Sequence[Mapping[str, Any]]
    _model: Model | None = field(default=None, init=False)

    @property
    def owner(self) -> NDArray[np.int32]:
        """The rank that has trained each class."""
        owner = np.empty(sum(map(len, self.owns)), np.int32)
        for rank, own in enumerate(self.owns):
            owner[own] = rank
        return owner

    @property
    def hashes(self) -> dict[str, str]:
        """The SHA-256 of all files by their names."""
        return {name: digest for shard in self.reports for name, digest in shard["hashes"].items()}

    def make(self, solver: Shardable, problem: Problem) -> Model:
        """The model, around the mapped files where it stays in shards."""
        arrays = {name: read_array(self.folder / f"{name}.npy", mmap=True) for name in self.hashes}
        self._model = solver.assembled(problem, self.owner, arrays, [shard["reported"] for shard in self.reports])
        return self._model

    def save(self, to: Path, lineage: Mapping[str, Any]) -> str:
        """Move the files to the model's folder, or write it there and remove them; return the SHA-256 of its manifest.

        :meth:`make` comes first.
        """
        model = self._model
        assert model is not None
        if model.in_shards:
            more = {"owner": self.owner, **model.cost_arrays()}
            hashes = {name: write_array(self.folder / f"{name}.npy", array) for name, array in more.items()}
            return model.seal(self.folder, self.hashes | hashes, to, lineage)
        sha256 = model.save(to, lineage)
        shutil.rmtree(self.folder)
        return sha256


_START_LEASES = 2.0
# most shards that a step reports one by one
MOST_LANES = 64
_log = structlog.get_logger("polymargin.worker")


def train_sharded(context: JobContext, store: Files, request: TrainRequest, solver: Solver[Any]) -> None:
    """Train with one shard in each of the slots that the job has, and end the job with a model that stays in shards.

    Raises
    ------
    Lost, Waiting, Failed, Drained, Cancelled, Fenced
        As :mod:`workers.sharding.gang` and the context raise them; the gang is broken then, and nothing of it stays in
        Redis.
    """
    lease, url = context.lease, settings().redis_url
    assert lease.shards is not None
    try:
        gang.close_all(url, lease.job_id, range(1, lease.attempt))
        for name in gang.names(lease.job_id, lease.attempt):
            open_gang(url, name)
        Coordinator(context, store, request, solver, lease.shards, url).run()
    except ExchangeError as error:
        raise gang.outcome(error) from error
    except BaseException as error:
        gang.break_all(url, lease.job_id, lease.attempt, f"the coordinator has ended: {type(error).__name__}")
        raise
    finally:
        gang.close_all(url, lease.job_id, range(lease.attempt, lease.attempt + 1))


class Coordinator:
    """The last rank of a gang's control.

    Parameters
    ----------
    solver : Solver
    size : int
        Number of shards.
    url : str
        Of Redis.
    """

    def __init__(
        self, context: JobContext, store: Files, request: TrainRequest, solver: Solver[Any], size: int, url: str
    ) -> None:
        self._context, self._store, self._request, self._solver, self._size = context, store, request, solver, size
        self._began = self._watched_at = time.monotonic()
        self._all_joined = False
        self._notify_shards()
        self._url, self._gang = url, gang.names(context.lease.job_id, context.lease.attempt)[1]
        self._control = RedisExchange(
            url,
            self._gang,
            size,
            size + 1,
            timeout=settings().exchange_seconds,
            check=self._watch_shards,
        )
        self._run = _GangRun(context, store, self)
        self._counts = np.zeros((size, 3))

    def run(self) -> None:
        """From the shards' first message to the job's success."""
        try:
            prepared = prepare(self._context, self._context.lease, self._store, self._request, self._solver)
            publisher = Publisher(self._context, self._store, self._request, prepared)
            outcome = self._start(prepared)
            self._context.phase("training", at_once=False)
            outcome = self._train(outcome)
            self._finish(publisher, outcome)
        finally:
            self._control.close()

    def collect(self, mine: Arrays) -> list[Arrays]:
        """What the shards post in the next round, by rank; the coordinator posts first."""
        return self._control.collect(self._control.post(mine))[: self._size]

    def _start(self, prepared: Prepared) -> Outcome | None:
        resumed = self._run.resume()
        start: dict[str, str | None] = {"checkpoint": None, "sha256": None}
        checkpoint = self._run.checkpoint
        if resumed is not None and checkpoint is not None:
            start = {"checkpoint": checkpoint.path, "sha256": checkpoint.sha256}
        start["trace"] = tracing.traceparent()
        made = digest(prepared.problem)
        for rank, (other, version, _) in enumerate(self.collect([gang.encode(start)])):
            if gang.decode(version) != gang.VERSIONS:
                raise InvalidInput(
                    f"shard {rank} runs version {gang.decode(version)}; the coordinator runs {gang.VERSIONS}"
                )
            if not np.array_equal(made, other):
                raise InvalidInput(f"shard {rank} has loaded different data than the coordinator")
        self._all_joined = True
        if resumed is not None and not all(part[0][0] for part in self.collect([])):
            self._run.start_afresh("a shard cannot read its part of the checkpoint")
            return None
        return resumed

    def _train(self, outcome: Outcome | None) -> Outcome:
        self._run.begin(self._solver, 0, None if outcome is None else outcome.state)
        order, began = gang.CONTINUE, time.monotonic()
        while True:
            reports = [Report(*part[0]) for part in self.collect([np.array([order, self._run.next_number], np.int64)])]
            self._run.seconds += time.monotonic() - began
            if reports[0].ended:
                break
            outcome = Outcome(self._run.note(self._within_range(self._step(reports))), {})
            if outcome.reached.converged:
                break
            if order & gang.SAVE:
                self._run.try_to_save(outcome)
            if order & gang.LEAVE:
                raise Drained
            self._context.check(drain=False)
            order = gang.CONTINUE
            if lanes.drain_requested() or any(report.drains for report in reports):
                order = gang.SAVE | gang.LEAVE
            elif self._run.checkpoint_due():
                order = gang.SAVE
            began = time.monotonic()
        self._context.flush()
        if outcome is None:
            raise RuntimeError(f"solver {self._solver.name} ended without a step")
        return outcome

    def _within_range(self, step: Step) -> Step:
        return next(within_range([step], self._solver.handles.certified))

    def _step(self, reports: Sequence[Report]) -> Step:
        counts = np.array([[report.rounds, report.bytes, report.waited] for report in reports])
        rounds, sent, waited = (counts - self._counts).T
        self._counts = counts
        measures = {
            "exchange_rounds": float(rounds.max()),
            "exchange_bytes": float(sent.sum()),
            "exchange_wait_seconds": float(waited.max()),
        }
        if len(reports) <= MOST_LANES:
            for rank in range(len(reports)):
                measures[f"shard_{rank}_bytes"] = float(sent[rank])
                measures[f"shard_{rank}_wait_seconds"] = float(waited[rank])
        first = reports[0]
        return Step(int(first.epoch), first.primal, first.dual, first.violation, bool(first.converged), {}, measures)

    def _finish(self, publisher: Publisher, outcome: Outcome) -> None:
        lease = self._context.lease
        self._context.phase("saving", at_once=False)
        parts = self.collect([])
        self._context.read(lambda session: slots.give_up(session, lease.job_id))
        folder = model_part(lease.job_id, lease.attempt)
        assembly = Assembly(
            self._store.path(folder), [own for _, own in parts], [gang.decode(report) for report, _ in parts]
        )
        for name in assembly.hashes:
            self._store.local(f"{folder}/{name}.npy")
        solver = shardable(self._solver)
        self._context.phase("testing", at_once=False, fraction=1.0, eta_seconds=None)
        model = assembly.make(solver, publisher.prepared.problem)
        measured = publisher.measured(model, self._solver, outcome)
        self._context.phase("saving", at_once=False)
        shards = [{"rank": rank, solver.trains: len(own)} for rank, own in enumerate(assembly.owns)]

        def save(to: Path, lineage: Mapping[str, Any]) -> str:
            sha256 = assembly.save(to, lineage)
            self._store.delete(folder)
            return sha256

        version = publisher.written(measured, outcome, model, save=save, lineage={"shards": shards})
        self._context.succeed(version.add)

    def _watch_shards(self) -> None:
        """While the coordinator waits: is the job still its own, is every shard alive, has each one joined?"""
        self._context.check(drain=not self._all_joined)
        if time.monotonic() - self._watched_at < min(1.0, settings().heartbeat_seconds):
            return
        self._watched_at = time.monotonic()
        lease = self._context.lease
        held = self._context.read(lambda session: slots.held_slots(session, lease.job_id, lease.attempt))
        gone = sorted(set(range(self._size)) - {slot.rank for slot in held if not (slot.worker and slot.lost)})
        if gone:
            # a shard may have left because it was the first to notice that Redis has lost the gang
            require_gang(self._url, self._gang)
            raise Lost(f"shard {gone[0]} of {self._size} was lost")
        absent = [slot for slot in held if slot.worker is None]
        if not absent:
            if was_compiling(self._url, self._gang):
                self._context.compiling()
            return
        if self._watched_at - self._began > _START_LEASES * settings().lease_seconds:
            raise Waiting(f"no worker on the queue {absent[0].queue} has claimed shard {absent[0].rank}")
        self._notify_shards()

    def _notify_shards(self) -> None:
        lease = self._context.lease
        self._context.read(lambda session: slots.keep_waiting(session, lease.job_id, lease.attempt))
        for slot in self._context.read(lambda session: slots.held_slots(session, lease.job_id, lease.attempt)):
            if slot.worker is None:
                notify_worker(lease.job_id, slot.queue, slot.rank)


class _GangRun(Run):
    """A run whose state lies with the shards: its checkpoints are a manifest of theirs."""

    def __init__(self, context: JobContext, store: Files, coordinator: Coordinator) -> None:
        super().__init__(context, store)
        self._coordinator = coordinator
        self.checkpoint: Checkpoint | None = None

    @property
    def next_number(self) -> int:
        """Of the step to come."""
        return 0 if self._reached is None else self._reached.number + 1

    def _load(self, checkpoint: Checkpoint) -> tuple[Mapping[str, NDArray[Any]], dict[str, Any]]:
        self.checkpoint = checkpoint
        return self._store.load_arrays(f"{checkpoint.path}/gang", sha256=checkpoint.sha256)

    def _write(self, path: str, outcome: Outcome, manifest: dict[str, Any]) -> str:
        saved = [gang.decode(part[0]) for part in self._coordinator.collect([])]
        if not all(saved):
            self._store.delete(path)
            raise OSError(f"shard {[bool(part) for part in saved].index(False)} did not write its part")
        manifest = {**manifest, "shards": [part[0] for part in saved], "common": saved[0][1]}
        return self._store.save_arrays(f"{path}/gang", {}, manifest)
