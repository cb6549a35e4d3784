"""Tunings and their trials keep the engine's promises in every state, and the code does as the model."""

import random
from collections.abc import Callable

import pytest
from engine_model import MAX_LOSSES, Engine, Job, State, Step, explore
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker
from test_engine_model import Code
from tuning_model import TuningEngine

from app.jobs import service as jobs
from app.jobs import tunings
from app.jobs.request_schemas import TrialRequest, TuneRequest
from app.store import tables


@pytest.mark.parametrize(
    ("engine", "n_workers"),
    [
        (TuningEngine(most_attempts=2, most_retries=0), 1),
        pytest.param(TuningEngine(), 1, marks=pytest.mark.slow),
        pytest.param(TuningEngine(), 2, marks=pytest.mark.slow),
    ],
)
def test_every_reachable_state_of_a_tuning_keeps_the_promises(engine: TuningEngine, n_workers: int) -> None:
    states, broken = explore(engine, 2, n_workers)
    assert {(job.kind, job.state) for state in states for job in state.jobs} >= {
        ("tune", "queued"), ("trial", "queued"), ("trial", "cancelling"), ("trial", "failed"), ("tune", "succeeded"),
    }  # fmt: skip
    assert broken == set()


class _ClaimsTooEarly(TuningEngine):
    def may_claim(self, state: State, j: int) -> bool:
        return True


class _LeavesTrialsBehind(TuningEngine):
    def cancel_trial(self, trial: Job) -> Job:
        return trial


class _ForgetsTheTuning(TuningEngine):
    def may_claim(self, state: State, j: int) -> bool:
        trial = next(job for job in state.jobs if job.kind == "trial")
        return state.jobs[j].kind == "trial" or trial.state in ("none", "succeeded")


@pytest.mark.parametrize(
    ("engine", "promise"),
    [
        (_ClaimsTooEarly, "nobody holds a tuning whose trial is not over"),
        (_LeavesTrialsBehind, "a tuning that is over leaves no trial to be done"),
        (_ForgetsTheTuning, "every job can come to its end"),
    ],
)
def test_a_protocol_of_tunings_that_is_broken_breaks_a_promise(engine: type[Engine], promise: str) -> None:
    assert promise in explore(engine(most_attempts=1, most_retries=0), 2, 1)[1]


class _TuningCode(Code):
    """As the engine is asked for the steps of all jobs, here the first is the trial, and the second the tuning."""

    engine = TuningEngine()

    def _submit(self, session: Session, who: int) -> str:
        request = TuneRequest.model_validate({"dataset": "digits", "model": "m", "space": [{"solver": "softmax"}]})
        return jobs.submit(session, request).id

    def _n_made(self, session: Session, id: str) -> int:
        row = session.get_one(tables.Job, id)
        return int(row.result is not None) if row.kind == "trial" else super()._n_made(session, id)

    def _write(self, session: Session, step: Step) -> None:
        lease = self._leases[step.who]
        assert lease is not None
        if step.name != "park":
            super()._write(session, step)
            return
        made = tunings.park(session, lease, [TrialRequest(number=0, solver="softmax", params={})])
        self._ids[0] = made[0] if made else None
        self._leases[step.who] = None


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))])
def test_the_code_of_tunings_does_what_the_model_does(
    seed: int, database: sessionmaker[Session], dataset: Callable[..., str], configure: Callable[..., None]
) -> None:
    configure(max_attempts=MAX_LOSSES, lease_seconds=3600)
    dataset()
    choose, names = random.Random(seed), set()
    engine = TuningEngine(most_attempts=9, most_retries=99)
    code, state = _TuningCode(database, 2, 2), State(engine.first(2), (None, None))
    for taken in range(150):
        steps = [step for step in engine.steps(state) if step.name != "succeed" or taken > 60]
        if not steps:
            break
        # a tuning leaves its work to its trial once
        parks = any(step.name == "park" for step in steps)
        name = "park" if parks else choose.choice(sorted({step.name for step in steps}))
        step = choose.choice([step for step in steps if step.name == name])
        code.take(step, state)
        state = step.to
        names.add(name)
        expected = [(job.state, job.attempt, job.losses, job.lease, job.versions) for job in state.jobs]
        assert code.shown() == expected, step
    assert "park" in names
    with database() as session:
        kinds = session.scalars(select(tables.Job.kind).order_by(tables.Job.id)).all()
    assert kinds == ["import", "tune", "trial"]
