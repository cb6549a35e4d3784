"""The job engine's protocol as a model small enough to enumerate: beside each step, the function that takes it.

A state is what SQL, Redis and the workers know of a few jobs. Time is a step of its own, which ends a lease; a crash is
one that empties a worker. Messages are delivered in any order, again, or never.
"""

from array import array
from collections.abc import Callable, Iterator
from typing import NamedTuple

MAX_LOSSES = 2  # settings().max_attempts
HELD = ("running", "cancelling")
OVER = ("cancelled", "succeeded", "failed")
WRITES = ("heartbeat", "succeed", "fail", "give_back", "lose", "end_cancelled")
ASKED_FOR = ("submit", "cancel", "retry")


class Job(NamedTuple):
    """A job's row, and what Redis and the table of versions have of it."""

    state: str = "none"
    attempt: int = 0
    losses: int = 0
    lease: str = "none"  # none, valid or past
    message: bool = False
    versions: int = 0
    retries: int = 0
    kind: str = "train"


Worker = tuple[int, int] | None  # the job and the attempt that it believes to hold


class State(NamedTuple):
    jobs: tuple[Job, ...]
    workers: tuple[Worker, ...]


class Step(NamedTuple):
    """``who`` is the number of a job or of a worker."""

    name: str
    who: int
    to: State


class Engine:
    """The protocol, and the bounds within which it is enumerated; subclasses break it.

    Parameters
    ----------
    most_attempts, most_retries : int
        A job that has had so many is not given back, or tried again, any more.
    """

    def __init__(self, most_attempts: int = 3, most_retries: int = 1) -> None:
        self._most_attempts = most_attempts
        self._most_retries = most_retries
        self._known: dict[tuple[str, Job], Job | None] = {}

    @property
    def promises(self) -> dict[str, Callable[[State], bool]]:
        """What must hold in every state beside STATES."""
        return {}

    def first(self, n_jobs: int) -> tuple[Job, ...]:
        """The jobs before anything has happened."""
        return (Job(),) * n_jobs

    def may_claim(self, state: State, j: int) -> bool:
        """Whether what other jobs are in lets a worker take the job."""
        return True

    def steps(self, state: State) -> Iterator[Step]:
        """All that may happen next."""
        for j, job in enumerate(state.jobs):
            for name in ("submit", "cancel", "retry", "notify", "expire", "lose_message"):
                after = self._after(name, job)
                if after is not None and after != job:
                    yield Step(name, j, with_job(state, j, after))
        swept = tuple([self._after("sweep", job) or job for job in state.jobs])
        if swept != state.jobs:
            yield Step("sweep", 0, State(swept, state.workers))
        for w, worker in enumerate(state.workers):
            if worker is None:
                for j, job in enumerate(state.jobs):
                    if job.message:
                        yield from self._deliver(state, w, j)
                continue
            yield Step("crash", w, with_worker(state, w, None))
            for name in WRITES:
                yield from self._write(state, w, worker, name)

    # what users ask for

    def submit(self, job: Job) -> Job | None:
        """app.jobs.service.submit: the row is committed; then job_queue.notify, if Redis is there."""
        return job._replace(state="queued") if job.state == "none" else None

    def cancel(self, job: Job) -> Job | None:
        """app.jobs.service.cancel"""
        to = {"queued": "cancelled", "running": "cancelling"}.get(job.state)
        return None if to is None else job._replace(state=to)

    def retry(self, job: Job) -> Job | None:
        """app.jobs.service.retry"""
        if job.state not in ("failed", "cancelled") or job.retries >= self._most_retries:
            return None
        return job._replace(state="queued", losses=0, lease="none", retries=job.retries + 1)

    # what any worker does now and then, and what befalls

    def notify(self, job: Job) -> Job | None:
        """app.jobs.wakeups.notify, and app.operation.sweep._notify"""
        return job._replace(message=True) if job.state == "queued" else None

    def sweep(self, job: Job) -> Job:
        """app.operation.sweep._expire"""
        if job.state not in HELD or job.lease != "past":
            return job
        job = job._replace(lease="none", losses=job.losses + 1)
        if job.state == "cancelling":
            return job._replace(state="cancelled")
        return job._replace(state="failed" if job.losses >= MAX_LOSSES else "queued")

    def expire(self, job: Job) -> Job | None:
        """Time goes by, and no heartbeat comes."""
        return job._replace(lease="past") if job.lease == "valid" else None

    def lose_message(self, job: Job) -> Job | None:
        """Redis is flushed, or a process dies with the message that it took."""
        return job._replace(message=False) if job.message else None

    # what workers do

    def claim(self, job: Job) -> Job | None:
        """app.jobs.leases.claim: one conditional UPDATE; None where it hits no row."""
        if job.state != "queued":
            return None
        return job._replace(state="running", attempt=job.attempt + 1, lease="valid")

    def mine(self, job: Job, attempt: int) -> bool:
        """app.jobs.leases.fenced"""
        return job.attempt == attempt and job.state in HELD

    def heartbeat(self, job: Job) -> Job | None:
        """app.jobs.leases.heartbeat, record and save_checkpoint"""
        return job._replace(lease="valid")

    def succeed(self, job: Job) -> Job | None:
        """app.models.versions.add and leases.end, in one transaction; also where it is being cancelled"""
        return job._replace(state="succeeded", lease="none", versions=job.versions + 1)

    def fail(self, job: Job) -> Job | None:
        """app.jobs.leases.end: failed"""
        return job._replace(state="failed", lease="none")

    def end_cancelled(self, job: Job) -> Job | None:
        """app.jobs.leases.end: cancelled"""
        return job._replace(state="cancelled", lease="none") if job.state == "cancelling" else None

    def give_back(self, job: Job) -> Job | None:
        """app.jobs.leases.give_back"""
        if job.state == "cancelling":
            return job._replace(state="cancelled", lease="none")
        return job._replace(state="queued", lease="none") if job.attempt < self._most_attempts else None

    def lose(self, job: Job) -> Job | None:
        """app.jobs.leases.lose"""
        if job.state == "cancelling":
            return job._replace(state="cancelled", lease="none")
        losses = job.losses + 1
        return job._replace(state="failed" if losses >= MAX_LOSSES else "queued", lease="none", losses=losses)

    def _deliver(self, state: State, w: int, j: int) -> Iterator[Step]:
        """workers.tasks.run: whose message it was does not matter, any job that is queued may be the first in the order
        of the queue; where none is, the worker leaves."""
        for again in (False, True):  # a message may come once more
            rung = with_job(state, j, state.jobs[j]._replace(message=again))
            taken = [(first, self.claim(job)) for first, job in enumerate(rung.jobs)]
            possible = [
                (first, claimed) for first, claimed in taken if claimed is not None and self.may_claim(rung, first)
            ]
            for first, claimed in possible:
                yield Step("claim", w, with_worker(with_job(rung, first, claimed), w, (first, claimed.attempt)))
            if not possible and rung != state:
                yield Step("claim", w, rung)

    def _after(self, name: str, job: Job) -> Job | None:
        if (name, job) not in self._known:
            self._known[name, job] = getattr(self, name)(job)
        return self._known[name, job]

    def _write(self, state: State, w: int, worker: tuple[int, int], name: str) -> Iterator[Step]:
        j, attempt = worker
        job = state.jobs[j]
        if not self.mine(job, attempt):
            yield Step(name, w, with_worker(state, w, None))  # Fenced: it leaves
            return
        after = self._after(name, job)
        if after is not None:
            yield Step(name, w, with_worker(with_job(state, j, after), w, worker if name == "heartbeat" else None))


def explore(engine: Engine, n_jobs: int, n_workers: int) -> tuple[list[State], set[str]]:
    """Every state that can come about, and which promises some of them, or some step, does not keep.

    States that differ by the numbering of jobs and workers alone count once.
    """
    known: dict[Job, Job] = {}
    first = State(engine.first(n_jobs), (None,) * n_workers)
    number = {first: 0}
    states = [first]
    before: list[array[int]] = [array("i")]  # by steps that nobody has to ask for
    broken: set[str] = set()
    for at, state in enumerate(states):  # which grows meanwhile
        broken |= {name for name, holds in (STATES | engine.promises).items() if not holds(state)}
        steps = list(engine.steps(state))
        broken |= {name for name, holds in STEPS.items() if not all(holds(state, step) for step in steps)}
        by_itself = {step.to for step in steps if step.name not in ASKED_FOR}
        for raw in dict.fromkeys(step.to for step in steps):
            to = _numbered(raw)
            place = number.get(to)
            if place is None:
                to = to._replace(jobs=tuple(known.setdefault(job, job) for job in to.jobs))
                place = number[to] = len(states)
                states.append(to)
                before.append(array("i"))
            if raw in by_itself:
                before[place].append(at)
    if not _can_all_end(states, before):
        broken.add("every job can come to its end")
    return states, broken


def _one_holder(state: State) -> bool:
    return all(state.workers.count((j, job.attempt)) <= 1 for j, job in enumerate(state.jobs))


def _stale_writes_nothing(before: State, step: Step) -> bool:
    worker = before.workers[step.who] if step.name in WRITES else None
    if worker is None:
        return True
    job = before.jobs[worker[0]]
    holds = job.state in HELD and job.attempt == worker[1]
    return holds or sorted(before.jobs) == sorted(step.to.jobs)


def _n_succeeded(state: State) -> int:
    return [job.state for job in state.jobs].count("succeeded")


STATES: dict[str, Callable[[State], bool]] = {
    "a job has at most one version": lambda state: all(job.versions <= 1 for job in state.jobs),
    "a job has a version exactly if it has succeeded": lambda state: all(
        (job.versions == 1) == (job.state == "succeeded") for job in state.jobs
    ),
    "a job has a lease exactly while it is held": lambda state: all(
        (job.lease != "none") == (job.state in HELD) for job in state.jobs
    ),
    "at most one worker holds a job's attempt": _one_holder,
    "a job loses no more workers than it may": lambda state: all(job.losses <= MAX_LOSSES for job in state.jobs),
}
STEPS: dict[str, Callable[[State, Step], bool]] = {
    "what has succeeded stays so": lambda before, step: _n_succeeded(before) <= _n_succeeded(step.to),
    "attempts only grow": lambda before, step: (
        sum([job.attempt for job in before.jobs]) <= sum([job.attempt for job in step.to.jobs])
    ),
    "a worker that has lost its job changes nothing": _stale_writes_nothing,
}


def _can_all_end(states: list[State], before: list["array[int]"]) -> bool:
    """Whether from every state all that was submitted may come to its end, although nobody asks for anything more."""
    waiting = [at for at, state in enumerate(states) if all(job.state in ("none", *OVER) for job in state.jobs)]
    good = set(waiting)
    while waiting:
        for at in before[waiting.pop()]:
            if at not in good:
                good.add(at)
                waiting.append(at)
    return len(good) == len(states)


def with_job(state: State, j: int, job: Job) -> State:
    return State((*state.jobs[:j], job, *state.jobs[j + 1 :]), state.workers)


def with_worker(state: State, w: int, worker: Worker) -> State:
    return State(state.jobs, (*state.workers[:w], worker, *state.workers[w + 1 :]))


def _numbered(state: State) -> State:
    """The same state with jobs and workers in order; of attempts before a job's last, all are the same to it."""
    jobs = state.jobs
    held: list[list[int]] = [[] for _ in jobs]
    n_idle = 0
    for worker in state.workers:
        if worker is None:
            n_idle += 1
        else:
            j, attempt = worker
            held[j].append(attempt if attempt == jobs[j].attempt else 0)
    for attempts in held:
        attempts.sort()
    order = sorted(range(len(jobs)), key=lambda j: (jobs[j], held[j]))
    workers = [(place, attempt) for place, j in enumerate(order) for attempt in held[j]]
    return State(tuple([jobs[j] for j in order]), (None,) * n_idle + tuple(workers))
