"""The job engine's protocol keeps its promises in every state that it can reach, and the code does as the model."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from engine_model import HELD, MAX_LOSSES, Engine, Job, State, Step, explore
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session, sessionmaker
from version_facts import FACTS

from app.jobs import leases
from app.jobs import queue as queue_order
from app.jobs import service as jobs
from app.jobs.leases import Fenced, Lease
from app.jobs.schemas import TrainRequest
from app.models import versions
from app.operation import sweep as sweeping
from app.store import tables
from app.store.db import db_now
from app.store.queue import GENERAL


@pytest.mark.parametrize(("n_jobs", "n_workers"), [(1, 2), (1, 3), pytest.param(2, 2, marks=pytest.mark.slow)])
def test_every_reachable_state_keeps_the_promises(n_jobs: int, n_workers: int) -> None:
    states, broken = explore(Engine(), n_jobs, n_workers)
    assert {job.state for state in states for job in state.jobs} >= {"none", "queued", "running", "cancelling"}
    assert len(states) > 500
    assert broken == set()


class _Unfenced(Engine):
    def mine(self, job: Job, attempt: int) -> bool:
        return True


class _OfAnyAttempt(Engine):
    def mine(self, job: Job, attempt: int) -> bool:
        return job.state in HELD


class _ClaimsWhatRuns(Engine):
    def claim(self, job: Job) -> Job | None:
        return job._replace(state="running", lease="valid") if job.state in ("queued", "running") else None


class _NeverNotifiesAgain(Engine):
    def submit(self, job: Job) -> Job | None:
        return job._replace(state="queued", message=True) if job.state == "none" else None

    def notify(self, job: Job) -> Job | None:
        return None


class _SweepsOnlyWhatRuns(Engine):
    def sweep(self, job: Job) -> Job:
        return job if job.state == "cancelling" else super().sweep(job)

    def end_cancelled(self, job: Job) -> Job | None:
        return None


class _RetriesWhatSucceeded(Engine):
    def retry(self, job: Job) -> Job | None:
        if job.state == "succeeded" and job.retries == 0:
            return job._replace(state="queued", retries=1)
        return super().retry(job)


class _PublishesBeforeTheFence(Engine):
    def heartbeat(self, job: Job) -> Job | None:
        return job._replace(lease="valid", versions=min(2, job.versions + 1))


class _RequeuesForEver(Engine):
    def sweep(self, job: Job) -> Job:
        swept = super().sweep(job)
        return (
            swept._replace(state="queued", losses=min(swept.losses, MAX_LOSSES + 1))
            if swept.state == "failed"
            else swept
        )

    def claim(self, job: Job) -> Job | None:
        return super().claim(job) if job.attempt < 5 else None


BROKEN: list[tuple[type[Engine], str]] = [
    (_Unfenced, "a job has at most one version"),
    (_OfAnyAttempt, "a worker that has lost its job changes nothing"),
    (_ClaimsWhatRuns, "at most one worker holds a job's attempt"),
    (_NeverNotifiesAgain, "every job can come to its end"),
    (_SweepsOnlyWhatRuns, "every job can come to its end"),
    (_RetriesWhatSucceeded, "what has succeeded stays so"),
    (_PublishesBeforeTheFence, "a job has a version exactly if it has succeeded"),
    (_RequeuesForEver, "a job loses no more workers than it may"),
]


@pytest.mark.parametrize(("engine", "promise"), BROKEN)
def test_an_engine_that_is_broken_breaks_a_promise(engine: type[Engine], promise: str) -> None:
    assert promise in explore(engine(), 1, 2)[1]


class Code:
    """The engine itself, asked for the steps of the model; it has no Redis, so messages are the model's."""

    engine: Engine = Engine()

    def __init__(self, database: sessionmaker[Session], n_jobs: int, n_workers: int) -> None:
        self._database = database
        self._ids: list[str | None] = [None] * n_jobs
        self._leases: list[Lease | None] = [None] * n_workers

    def take(self, step: Step, before: State) -> None:
        with self._database() as session:
            if step.name in ("notify", "lose_message", "crash"):
                if step.name == "crash":
                    self._leases[step.who] = None
            elif step.name == "claim":
                self._claim(session, step, before)
            elif step.name in ("submit", "cancel", "retry", "expire", "sweep"):
                self._ask(session, step)
            else:
                self._write(session, step)

    def shown(self) -> list[tuple[str, int, int, str, int]]:
        found = []
        with self._database() as session:
            for id in self._ids:
                row = None if id is None else session.get(tables.Job, id)
                if row is None:
                    found.append(("none", 0, 0, "none", 0))
                    continue
                now = session.scalars(select(db_now())).one()
                lease = "none" if row.lease_until is None else "valid" if row.lease_until > now else "past"
                n = self._n_made(session, str(id))
                found.append((row.state, row.attempt, row.losses, lease, n))
        return found

    def _n_made(self, session: Session, id: str) -> int:
        return session.scalars(select(func.count()).where(tables.ModelVersion.job_id == id)).one()

    def _submit(self, session: Session, who: int) -> str:
        return jobs.submit(session, TrainRequest(solver="weston_watkins", dataset="digits", model="m")).id

    def _claim(self, session: Session, step: Step, before: State) -> None:
        taken = step.to.workers[step.who]
        order = queue_order.in_order(session, GENERAL)
        queued = [j for j, job in enumerate(before.jobs) if job.state == "queued" and self.engine.may_claim(before, j)]
        assert sorted(order) == sorted(str(self._ids[j]) for j in queued)
        if taken is None:
            assert order == []
            return
        id = self._ids[taken[0]]
        assert id in order
        self._leases[step.who] = leases.claim(session, id, f"worker {step.who}")
        assert self._leases[step.who] is not None

    def _ask(self, session: Session, step: Step) -> None:
        id = self._ids[step.who]
        if step.name == "submit":
            self._ids[step.who] = self._submit(session, step.who)
        elif step.name == "sweep":
            sweeping.expire(session)
        elif step.name == "expire":
            session.execute(update(tables.Job).where(tables.Job.id == id).values(lease_until=db_now() - 1))
            session.commit()
        else:
            assert id is not None
            {"cancel": jobs.cancel, "retry": jobs.retry}[step.name](session, id)

    def _write(self, session: Session, step: Step) -> None:
        lease = self._leases[step.who]
        assert lease is not None
        holds = step.to.workers[step.who] is not None
        try:
            if step.name == "heartbeat":
                leases.heartbeat(session, lease)
            elif step.name == "give_back":
                leases.give_back(session, lease)
            elif step.name == "lose":
                leases.lose(session, lease)
            else:
                with leases.fenced(session, lease):
                    if step.name == "succeed" and lease.kind != "trial":
                        versions.add(session, "m", replace(FACTS, job_id=lease.job_id), {})
                    made = {"measures": {}} if step.name == "succeed" and lease.kind == "trial" else None
                    ends = {"succeed": "succeeded", "fail": "failed", "end_cancelled": "cancelled"}
                    leases.end(session, lease, ends[step.name], result=made)  # type: ignore[arg-type]
        except Fenced:
            assert not holds
        if not holds:
            self._leases[step.who] = None


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))])
def test_the_code_does_what_the_model_does(
    seed: int, database: sessionmaker[Session], dataset: Callable[..., str], configure: Callable[..., None]
) -> None:
    configure(max_attempts=MAX_LOSSES, lease_seconds=3600)
    dataset()
    choose = random.Random(seed)
    engine = Engine(most_attempts=9, most_retries=9)
    code, state = Code(database, 2, 2), State((Job(), Job()), (None, None))
    names = set()
    for taken in range(150):
        # of each kind as often, but that what has succeeded is over for good
        steps = [step for step in engine.steps(state) if step.name != "succeed" or taken > 100]
        if not steps:
            break
        name = choose.choice(sorted({step.name for step in steps}))
        step = choose.choice([step for step in steps if step.name == name])
        code.take(step, state)
        state = step.to
        names.add(name)
        expected = [(job.state, job.attempt, job.losses, job.lease, job.versions) for job in state.jobs]
        assert code.shown() == expected, step
    assert len(names) >= 8
