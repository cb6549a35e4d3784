"""Jobs: asked for, looked at, cancelled and tried again."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.access import audit, quotas
from app.curation.schemas import SuggestRowsRequest, WrongLabelsRequest
from app.curation.wrong_labels import resolve_wrong_labels
from app.datasets import append_sources
from app.errors import Conflict, Forbidden, InvalidInput
from app.evaluations.schemas import EvaluateRequest
from app.jobs import job_requests as job_tags
from app.jobs import logs as job_logs
from app.jobs import queue as queue_order
from app.jobs import shown as shown_jobs
from app.jobs import slots
from app.jobs import trials as trial_jobs
from app.jobs import wakeups as job_queue
from app.jobs.ends import fail_import
from app.jobs.request_schemas import AdoptRequest, CompressRequest, TuneRequest
from app.jobs.schemas import Job, JobKind, JobPatch, JobRequest, JobState, TrainRequest
from app.jobs.training_requests import resolve
from app.jobs.tuning_requests import resolve_tuning
from app.jobs.version_requests import resolve_adoption, resolve_compression, resolve_evaluation
from app.predictions.batch_predictions import resolve_batch
from app.predictions.schemas import BatchPredictRequest
from app.schemas import MAX_JOB_TAGS, OPTIONS, Page
from app.store import tables
from app.store.db import db_now, reading, writing
from app.store.lookup import by_id, newest
from app.store.scope import scope_of


def submit(session: Session, request: JobRequest) -> Job:
    """Queue a job after checking all that can be checked before it runs.

    Raises
    ------
    NotFound
        No such dataset or hierarchy; for an evaluation, model, version or alias.
    Forbidden
        A clerk's key asks for another job than a prediction.
    Conflict
        The dataset is not ready, or there are fewer pools than shards.
    TooMany, StorageFull
        The workspace has as many jobs, or bytes, as it may have.
    InvalidInput
        Unknown solver or parameters, or a dataset that the request cannot be trained or evaluated on.
    """
    scope = scope_of(session)
    if scope is not None and not scope.edits and request.kind != "predict":
        raise Forbidden(f"A job of kind {request.kind} requires the editor role; clerks submit jobs of kind predict.")
    with writing(session):
        row = enqueue(session, request)
        job = shown_jobs.one(session, row)
    job_queue.notify(session, job.id, row.queue)
    return job


def enqueue(session: Session, request: JobRequest) -> tables.Job:
    """As :func:`submit`, in the caller's transaction; ``job_queue.notify`` once that is committed."""
    quotas.require_jobs(session)
    if not isinstance(request, EvaluateRequest):
        quotas.require_room(session, 1)
    # Locked, so that neither can be deleted between this check and the job's row.
    row = _queued(session, request)
    session.flush()
    session.refresh(row)
    return row


def _queued(session: Session, request: JobRequest) -> tables.Job:
    dataset, stored, hierarchy_id = _resolved(session, request)
    row = job_queue.enqueue(session, request.kind, dataset.id, stored, request)
    row.hierarchy_id = hierarchy_id
    return row


def _resolved(session: Session, request: JobRequest) -> tuple[tables.Dataset, dict[str, Any], str | None]:
    """The dataset of a job, what is stored of its request, and the id of its hierarchy."""
    if isinstance(request, EvaluateRequest):
        evaluation = resolve_evaluation(session, request)
        return evaluation.dataset, _stored(evaluation.request), evaluation.hierarchy_id
    if isinstance(request, BatchPredictRequest):
        dataset, predicted = resolve_batch(session, request)
        return dataset, _stored(predicted), None
    if isinstance(request, SuggestRowsRequest):
        dataset, suggestion = resolve_batch(session, request)
        return dataset, _stored(suggestion), None
    if isinstance(request, WrongLabelsRequest):
        judged, stored = resolve_wrong_labels(session, request)
        return judged.dataset, stored, _id(judged.hierarchy)
    if isinstance(request, CompressRequest):
        target, compression = resolve_compression(session, request)
        return target.dataset, _stored(compression), target.hierarchy_id
    if isinstance(request, AdoptRequest):
        target, hierarchy_id, adoption = resolve_adoption(session, request)
        return target.dataset, _stored(adoption), hierarchy_id
    if isinstance(request, TuneRequest):
        tuning = resolve_tuning(session, request)
        return tuning.dataset, _stored(tuning.request), _id(tuning.hierarchy)
    resolved = resolve(session, request, lock=True)
    _check_pools(session, request)
    if resolved.text is not None:
        request = request.model_copy(update={"text": resolved.text})
    elif resolved.holds_texts:
        request = request.model_copy(update={"text": resolved.default_text})
    request = resolved.scaled(request)
    found = {name: getattr(resolved, name) for name in ("dataset_version", "warm_start", "certain_rows")}
    named = request.model_copy(update=found)
    return resolved.dataset, _stored(named), _id(resolved.hierarchy)


def _id(row: tables.Hierarchy | None) -> str | None:
    return None if row is None else row.id


def _stored(request: JobRequest) -> dict[str, Any]:
    """What the job does; the options of the job itself have columns of their own."""
    return request.model_dump(mode="json", exclude=set(OPTIONS))


def get(session: Session, id: str) -> Job:
    """A job; raises NotFound."""
    with reading(session):
        return shown_jobs.one(session, by_id(session, tables.Job, id))


def several(session: Session, ids: Collection[str]) -> dict[str, Job]:
    """Those of the jobs with some ids that are there, by id."""
    with reading(session):
        rows = session.scalars(select(tables.Job).where(tables.Job.id.in_(ids))).all()
        return {job.id: job for job in shown_jobs.every(session, rows)}


def page(
    session: Session,
    page_size: int = 100,
    page_token: str | None = None,
    state: JobState | None = None,
    tag: str | None = None,
    kind: JobKind | None = None,
) -> Page[Job]:
    """Jobs but trials, newest first, of one state and kind or all, and with a tag: its name, or ``NAME=VALUE``."""
    query = select(tables.Job).where(tables.Job.parent_id.is_(None))
    if state is not None:
        query = query.where(trial_jobs.in_state(state))
    if kind is not None:
        query = query.where(tables.Job.kind == kind)
    by = None if tag is None else tables.JobTag.job_id
    if tag is not None:
        query = job_tags.having_tag(query, tag)
    with reading(session):
        rows, token = newest(session, tables.Job, query, page_size, page_token, by)
        return Page[Job](items=shown_jobs.every(session, rows), next_page_token=token)


def change(session: Session, id: str, patch: JobPatch) -> Job:
    """Change tags, and the priority of a queued job.

    Raises
    ------
    NotFound
        No such job.
    Forbidden
        It is not a clerk's own prediction or import.
    Conflict
        The priority of a job that a worker has, or that is over.
    InvalidInput
        The job would have too many tags.
    """
    with writing(session):
        row = _changeable(session, id)
        before = {"priority": row.priority, "tags": row.tags or {}}
        tags = {name: value for name, value in {**(row.tags or {}), **(patch.tags or {})}.items() if value is not None}
        if len(tags) > MAX_JOB_TAGS:
            raise InvalidInput(f"the job would have {len(tags)} tags; at most {MAX_JOB_TAGS} are allowed")
        after = {**before, "tags": tags}
        if patch.priority is not None:
            if row.state != "queued":
                raise Conflict(f"the job is {row.state}; only the priority of a queued job can be changed")
            after["priority"] = queue_order.level_of(patch.priority)
            trial_jobs.set_priority(session, id, queue_order.level_of(patch.priority))
        _set(session, id, **after)
        if patch.tags:
            job_tags.write_tags(session, row, tags)
        row = _locked(session, id)
        audit.changed(session, row, before, after)
        return shown_jobs.one(session, row)


def cancel(session: Session, id: str) -> Job:
    """Cancel: a queued job at once, a running one at its next step, and with a tuning its trials.

    Raises
    ------
    NotFound
        No such job.
    Forbidden
        It is not a clerk's own prediction or import.
    Conflict
        It has succeeded or failed.
    """
    with writing(session):
        job = _changeable(session, id)
        if job.state in {"succeeded", "failed"}:
            raise Conflict(f"the job has {job.state} and cannot be cancelled")
        before = job.state
        if job.state == "queued":
            _set(session, id, state="cancelled", finished_at=db_now())
            fail_import(session, [id], "The import was cancelled.")
        elif job.state == "running":
            _set(session, id, state="cancelling")
        if job.kind == "tune":
            trial_jobs.cancel(session, id)
        return shown_jobs.one(session, _note_state(session, id, before))


def retry(session: Session, id: str) -> Job:
    """Queue a failed or cancelled job again; it goes on from its last checkpoint where there is one.

    Its time limit starts again. Trials of a tuning that have failed or were cancelled are made again.

    Raises
    ------
    NotFound
        No such job.
    Forbidden
        It is not a clerk's own prediction or import.
    Conflict
        It has not failed and was not cancelled, or its dataset, hierarchy or file is gone.
    """
    with writing(session):
        quotas.require_jobs(session)
        job = _changeable(session, id)
        if job.kind == "trial":
            raise Conflict("a trial cannot be retried alone; retry its tuning")
        if job.state not in {"failed", "cancelled"}:
            raise Conflict(f"the job is {job.state}; only a failed or cancelled job can be tried again")
        if job.dataset_id is None:
            raise Conflict("the job's dataset was deleted")
        if job.request.get("hierarchy") is not None and job.hierarchy_id is None:
            raise Conflict("the job's hierarchy was deleted")
        if job.kind in append_sources.KINDS and not append_sources.is_kept(job.dataset_id, job.request):
            raise Conflict("the file with the rows was removed; upload it again")
        if trial_jobs.has_unfinished(session, id):
            raise Conflict("some of its trials are still being cancelled; retry when they have ended")
        before = job.state
        trials = trial_jobs.retry(session, id) if job.kind == "tune" else []
        _set(
            session, id, state="queued", losses=0, error=None, progress=None, started_at=None, finished_at=None,
            notified_at=db_now(), worker=None, lease_until=None, queued_again=_asked(session, job),
        )  # fmt: skip
        job_logs.note(session, id, job.attempt, "info", "queued_again", reason=_asked(session, job))
        if job.kind == "import":
            session.execute(
                update(tables.Dataset).where(tables.Dataset.id == job.dataset_id).values(state="importing", error=None)
            )
        if trials:
            # it goes on from them, and its time counts from now
            _set(session, id, started_at=db_now(), progress=trial_jobs.WAITING, notified_at=None)
        shown = shown_jobs.one(session, _note_state(session, id, before))
    for each in trials or [id]:
        job_queue.notify(session, each, job.queue)
    return shown


def _asked(session: Session, job: tables.Job) -> str:
    scope = scope_of(session)
    who = "asked for" if scope is None or scope.owner is None else f"asked for by {scope.owner}"
    return f"{who} after it was {job.state}" + (f": {job.error['code']}" if job.error else "")


def _note_state(session: Session, id: str, before: str) -> tables.Job:
    row = _locked(session, id)
    audit.changed(session, row, {"state": before}, {"state": row.state})
    return row


def _changeable(session: Session, id: str) -> tables.Job:
    job = _locked(session, id)
    scope = scope_of(session)
    if scope is not None and not scope.edits and not (job.kind in ("predict", "import") and job.owner == scope.owner):
        raise Forbidden("Clerks change only jobs of kind predict or import that their own key submitted.")
    return job


def _locked(session: Session, id: str) -> tables.Job:
    by_id(session, tables.Job, id)
    query = select(tables.Job).where(tables.Job.id == id).with_for_update()
    return session.scalars(query.execution_options(populate_existing=True)).one()


def _set(session: Session, id: str, **values: Any) -> None:
    statement = update(tables.Job).where(tables.Job.id == id).values(**values)
    session.execute(statement.execution_options(synchronize_session=False))


def _check_pools(session: Session, request: TrainRequest) -> None:
    if request.shards is None:
        return
    pools = slots.pools(session)
    if len(pools) < request.shards:
        named = f": {', '.join(pools)}" if pools else ""
        raise Conflict(
            f"{request.shards} shards need as many pools of workers; {len(pools)} are running{named}. "
            f"polymargin up --shards {request.shards} starts them"
        )
