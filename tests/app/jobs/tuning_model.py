"""The protocol of a tuning and a trial of it, on top of that of all jobs."""

from collections.abc import Callable, Iterator

from engine_model import HELD, OVER, Engine, Job, State, Step, with_job, with_worker


class TuningEngine(Engine):
    """Two jobs: a tuning, and the trial that it leaves its work to."""

    @property
    def promises(self) -> dict[str, Callable[[State], bool]]:
        return {
            "nobody holds a tuning whose trial is not over": lambda state: (
                not (_tuning(state).state in HELD and _is_open(_trial(state)))
            ),
            "a tuning that is over leaves no trial to be done": lambda state: (
                not (_tuning(state).state in OVER and _trial(state).state in ("queued", "running"))
            ),
        }

    def first(self, n_jobs: int) -> tuple[Job, ...]:
        assert n_jobs == 2
        return Job(kind="trial"), Job(kind="tune")

    def may_claim(self, state: State, j: int) -> bool:
        """app.jobs.leases.claim: a tuning is not taken while it has trials that are not over"""
        return state.jobs[j].kind == "trial" or not _is_open(_trial(state))

    def park(self, state: State, w: int) -> State | None:
        """app.jobs.tunings.park"""
        tuning = _tuning(state)
        if _trial(state).state != "none":
            return None
        if tuning.state == "cancelling":
            left = _with(state, tuning._replace(state="cancelled", lease="none"))
        else:
            left = _with(state, tuning._replace(state="queued", lease="none"))
            left = _with(left, _trial(state)._replace(state="queued"))
        return with_worker(left, w, None)

    def cancel_trial(self, trial: Job) -> Job:
        """app.jobs.trials.cancel"""
        return trial._replace(state={"queued": "cancelled", "running": "cancelling"}.get(trial.state, trial.state))

    def retry_trial(self, trial: Job) -> Job:
        """app.jobs.trials.retry"""
        again = trial.state in ("failed", "cancelled")
        return trial._replace(state="queued", losses=0, lease="none") if again else trial

    def steps(self, state: State) -> Iterator[Step]:
        for step in super().steps(state):
            if step.name in ("submit", "cancel", "retry"):
                yield from self._asked(state, step)
            elif step.name == "succeed" and self._holds_tuning(state, step.who) and _trial(state).state not in OVER:
                continue  # it has nothing to choose from
            else:
                yield step
        for w, worker in enumerate(state.workers):
            if worker is not None and self._holds_tuning(state, w):
                after = self.park(state, w)
                if after is not None:
                    yield Step("park", w, after)

    def _asked(self, state: State, step: Step) -> Iterator[Step]:
        on_trial = state.jobs[step.who].kind == "trial"
        if step.name == "cancel":
            yield step if on_trial else step._replace(to=_with(step.to, self.cancel_trial(_trial(step.to))))
        elif not on_trial and not (step.name == "retry" and _is_open(_trial(state))):
            again = step.name == "retry"
            yield step._replace(to=_with(step.to, self.retry_trial(_trial(step.to)))) if again else step

    def _holds_tuning(self, state: State, w: int) -> bool:
        worker = state.workers[w]
        if worker is None:
            return False
        job = state.jobs[worker[0]]
        return job.kind == "tune" and self.mine(job, worker[1])


def _place(state: State, kind: str) -> int:
    return next(at for at, job in enumerate(state.jobs) if job.kind == kind)


def _tuning(state: State) -> Job:
    return state.jobs[_place(state, "tune")]


def _trial(state: State) -> Job:
    return state.jobs[_place(state, "trial")]


def _with(state: State, job: Job) -> State:
    return with_job(state, _place(state, job.kind), job)


def _is_open(job: Job) -> bool:
    return job.state not in ("none", *OVER)
