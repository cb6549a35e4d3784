"""A live view of a job: epoch, duality gap, time left."""

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from app.command_line.output import number
from app.display.cards import waiting
from app.jobs.client import Job
from app.jobs.schemas import Job as JobBody
from app.plurals import gap_text, time_left
from app.remote.errors import JobFailedError

# counted from 0 in the steps, and from 1 for people
_COUNTED = ("trial", "member")


def watch(job: Job, out: Console) -> Job:
    """Draw the job's progress until it ends; where the output is no terminal, print a line for each phase or trial.

    Raises
    ------
    JobFailedError
        It failed or was cancelled.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=out, disable=not out.is_terminal) as progress:
        bar = progress.add_task(f"{job.kind} {job.state}", total=1.0, left="")
        stepped, printed = False, ""
        for event in job.events():
            if event.kind == "step":
                stepped = True
                progress.update(bar, description=_step(event.data))
            elif event.kind == "state":
                body = JobBody.model_validate(event.data)
                if not stepped:
                    progress.update(bar, description=f"{body.kind} {body.state}")
                progress.update(bar, **_state(body))
                if not out.is_terminal and (line := f"{body.kind} {_phase(body)}") != printed:
                    out.print(line, soft_wrap=True)
                    printed = line
    return finish(job.refresh())


def finish(job: Job) -> Job:
    """The job, if it has succeeded; see Job.wait."""
    if job.state in ("failed", "cancelled"):
        detail = f": {job.error.detail}" if job.error else ""
        raise JobFailedError(f"Job {job.id} {job.state}{detail}", job.error.errors if job.error else None)
    return job


def _step(step: dict[str, Any]) -> str:
    """Of a method that tries others, what is tried and what comes first of it: all would not fit into a line."""
    setting, measures = step.get("setting"), step.get("measures", {})
    shown = {name: value + 1 if name in _COUNTED else value for name, value in measures.items()}
    if setting:
        first = "".join(f", {name.replace('_', ' ')} {number(value)}" for name, value in list(shown.items())[:2])
        return f"{setting}: epoch {step['epoch']}{first}"
    gap = gap_text(step["gap"]) or "not measured"
    more = "".join(f", {name.replace('_', ' ')} {number(value)}" for name, value in shown.items())
    return f"epoch {step['epoch']}, gap {gap}{more}"


def _state(job: JobBody) -> dict[str, Any]:
    if job.state == "succeeded":
        return {"completed": 1.0, "left": "done"}
    if job.progress is None:
        return {"left": waiting(job)}
    eta, phase = job.progress.eta_seconds, _phase(job)
    left = phase if eta is None else f"{phase}, {time_left(eta)}"
    return {"completed": job.progress.fraction, "left": left}


def _phase(job: JobBody) -> str:
    """The phase of a running job, or its trials; else its state."""
    if job.progress is None or job.state != "running":
        return waiting(job)
    if job.progress.trials is not None:
        return f"{job.progress.trials_done} of {job.progress.trials} trials"
    return job.progress.phase or job.state
