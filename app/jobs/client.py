"""Jobs of a remote service: submit, watch, wait, cancel."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import PrivateAttr

from app.curation.schemas import SuggestedRows, WrongLabels
from app.display.cards import stage
from app.jobs.plan_schemas import JobPlan
from app.jobs.request_schemas import Trial
from app.jobs.schemas import FINAL_STATES, JobKind, JobLog, JobRequest, JobState, JobSteps, TrainRequest
from app.jobs.schemas import Job as JobBody
from app.predictions.schemas import BatchPredictRequest, PredictionPlan
from app.remote.errors import JobFailedError
from app.remote.events import Event, follow
from app.remote.files import receive_file
from app.remote.progress import progress_bar
from app.remote.transport import Resource, Transport, given
from app.schemas import Page, Priority


class Job(JobBody):
    """A job as it was when last asked for; ``refresh`` and ``wait`` bring it up to date."""

    _transport: Transport = PrivateAttr()

    def refresh(self) -> Self:
        self._take(self._transport.get(JobBody, f"/jobs/{self.id}"))
        return self

    def wait(self, timeout: float | None = None, progress: bool | None = None) -> Self:
        """Wait until the job has succeeded.

        Parameters
        ----------
        timeout : float or None
            Seconds to wait at most.
        progress : bool or None
            False: no progress bar; None: a bar in notebooks and terminals.

        Raises
        ------
        TimedOutError
            ``timeout`` seconds have passed; the job goes on.
        JobFailedError
            It failed or was cancelled; ``errors`` has the service's list of faults.
        """
        title = f"{self.kind} {self.request.get('model', '')}".strip()
        with progress_bar(progress, title, 1.0) as update:
            for _ in self._transport.looks(timeout, lambda: f"Job {self.id} is still {self.state}"):
                if self.refresh().finished:
                    break
                update(0.0 if self.progress is None else self.progress.fraction, stage(self))
        if self.state == "succeeded":
            return self
        if self.error is None:
            raise JobFailedError(f"Job {self.id} was {self.state}")
        raise JobFailedError(f"Job {self.id} {self.state}: {self.error.detail}", self.error.errors)

    def events(self, after: str | None = None) -> Iterator[Event]:
        """What happens until the job ends, as it happens; the past first, or only what follows event id ``after``."""
        return follow(self._transport, f"/jobs/{self.id}/events", _is_last, after)

    def save_predictions(self, path: str | Path) -> int:
        """Write the file that a prediction job has made to ``path``, which appears whole or not at all; its bytes."""
        return receive_file(self._transport, f"/jobs/{self.id}/predictions", Path(path), {})

    def suggested_rows(self, offset: int = 0, limit: int = 20) -> SuggestedRows:
        """Rows that a job of kind ``suggest_rows`` has chosen, up to 200 at once."""
        return self._transport.get(SuggestedRows, f"/jobs/{self.id}/suggested-rows", offset=offset, limit=limit)

    def wrong_labels(self, offset: int = 0, limit: int = 20) -> WrongLabels:
        """Labels that a job of kind ``wrong_labels`` found to be probably wrong, up to 200 at once."""
        return self._transport.get(WrongLabels, f"/jobs/{self.id}/wrong-labels", offset=offset, limit=limit)

    def steps(self, after: int = -1, limit: int = 1000) -> JobSteps:
        """The convergence curve so far, from after step number ``after`` on."""
        return self._transport.get(JobSteps, f"/jobs/{self.id}/steps", after=after, limit=limit)

    def log(self, after: str | None = None, limit: int = 200) -> JobLog:
        """What workers have noted of the job, oldest first, from after the line with id ``after`` on."""
        return self._transport.get(JobLog, f"/jobs/{self.id}/log", after=after, limit=limit)

    def trials(self, page_size: int = 100, page_token: str | None = None) -> Page[Trial]:
        """One page of a tuning's leaderboard, the best trials first."""
        return self._transport.get(Page[Trial], f"/jobs/{self.id}/trials", page_size=page_size, page_token=page_token)

    def change(self, *, priority: Priority | None = None, tags: Mapping[str, str | None] | None = None) -> Self:
        """Change the priority, while the job is queued, or some of its tags: a None takes one away."""
        body = given(priority=priority, tags=None if tags is None else dict(tags))
        self._take(self._transport.ask("PATCH", JobBody, f"/jobs/{self.id}", body))
        return self

    def cancel(self) -> Self:
        """Ask the job to stop; it does at its next step."""
        self._take(self._transport.post(JobBody, f"/jobs/{self.id}/cancel"))
        return self

    def retry(self) -> Self:
        """Queue a failed or cancelled job again; it goes on from its last checkpoint."""
        self._take(self._transport.post(JobBody, f"/jobs/{self.id}/retry"))
        return self

    def _take(self, body: JobBody) -> None:
        for name in JobBody.model_fields:
            setattr(self, name, getattr(body, name))


class Jobs(Resource):
    """The service's jobs: imports, training and evaluations."""

    def submit(self, request: JobRequest | Mapping[str, Any]) -> Job:
        return self._job(self._transport.post(JobBody, "/jobs", request))

    def get(self, job: str) -> Job:
        return self._job(self._transport.get(JobBody, f"/jobs/{job}"))

    def list(
        self,
        page_size: int = 50,
        page_token: str | None = None,
        state: JobState | None = None,
        tag: str | None = None,
        kind: JobKind | None = None,
    ) -> Page[JobBody]:
        """One page, newest first; with a ``tag`` only jobs that have it: its name, or NAME=VALUE."""
        asked = {"page_size": page_size, "page_token": page_token, "state": state, "tag": tag, "kind": kind}
        return self._transport.get(Page[JobBody], "/jobs", **asked)

    def train(self, dataset: str, model: str, solver: str, params: dict[str, Any], **options: Any) -> Job:
        request = {"kind": "train", "dataset": dataset, "model": model, "solver": solver, "params": params, **options}
        return self.submit(request)

    def plan(self, request: TrainRequest | Mapping[str, Any]) -> JobPlan:
        """What a training job in class shards would take; nothing is queued."""
        return self._transport.post(JobPlan, "/jobs/plan", request)

    def plan_predictions(self, request: BatchPredictRequest | Mapping[str, Any]) -> PredictionPlan:
        """How many rows of a prediction job will have a sure label, as held-out rows promise; nothing is queued."""
        return self._transport.post(PredictionPlan, "/jobs/plan", request)

    def _job(self, body: JobBody) -> Job:
        return job_of(body, self._transport)


def job_of(body: JobBody, transport: Transport) -> Job:
    """A job that can be asked for again."""
    job = Job.model_validate(body.model_dump())
    job._transport = transport
    return job


def _is_last(event: Event) -> bool:
    return event.kind == "state" and event.data["state"] in FINAL_STATES
