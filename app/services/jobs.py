"""Jobs: asked for, looked at, cancelled and tried again."""

from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.errors import Conflict, InvalidInput
from app.schemas.batch_predictions import BatchPredictRequest
from app.schemas.evaluations import EvaluateRequest
from app.schemas.job_options import MAX_JOB_TAGS, OPTIONS
from app.schemas.jobs import (
    FINAL_STATES,
    Job,
    JobPatch,
    JobRequest,
    JobResult,
    JobState,
    Progress,
    QueuePlace,
    TrainRequest,
)
from app.schemas.pages import Page
from app.schemas.problems import ProblemDocument
from app.schemas.texts import default_recipe
from app.services import append_sources, audit, job_logs, job_queue, queue_order, quotas, slots
from app.services.batch_predictions import resolve_batch
from app.services.evaluation_requests import resolve_evaluation
from app.services.job_ends import fail_import
from app.services.lookup import by_id, moment, moment_or_none, newest
from app.services.training_requests import resolve
from app.store import tables
from app.store.db import db_now, reading, writing
from app.store.files import files
from app.store.scope import scope_of


def submit(session: Session, request: JobRequest) -> Job:
    """Queue a job after checking all that can be checked before it runs.

    Raises
    ------
    NotFound
        No such dataset or hierarchy; for an evaluation, model, version or alias.
    Conflict
        The dataset is not ready, or there are fewer pools than shards.
    TooMany, StorageFull
        The workspace has as many jobs, or bytes, as it may have.
    InvalidInput
        Unknown solver or parameters, or a dataset that the request cannot be trained or evaluated on.
    """
    with writing(session):
        quotas.require_jobs(session)
        if not isinstance(request, EvaluateRequest):
            quotas.require_room(session, 1)
        # Locked, so that neither can be deleted between this check and the job's row.
        row = _queued(session, request)
        session.flush()
        session.refresh(row)
        job = show(row, queue_order.places(session, [row]).get(row.id))
    job_queue.notify(session, job.id, row.queue)
    return job


def _queued(session: Session, request: JobRequest) -> tables.Job:
    if isinstance(request, EvaluateRequest):
        return _evaluate(session, request)
    if isinstance(request, BatchPredictRequest):
        dataset, meant = resolve_batch(session, request)
        return job_queue.enqueue(session, "predict", dataset.id, _stored(meant), request)
    return _train(session, request)


def _stored(request: JobRequest) -> dict[str, Any]:
    """What the job does; the options of the job itself have columns of their own."""
    return request.model_dump(mode="json", exclude=set(OPTIONS))


def _train(session: Session, request: TrainRequest) -> tables.Job:
    resolved = resolve(session, request, lock=True)
    _check_pools(session, request)
    if resolved.dataset.kind == "text" and request.text is None:
        n_nodes = 0 if resolved.hierarchy is None else resolved.hierarchy.n_nodes
        recipe = default_recipe(request.solver, max(len(resolved.counts.labels), n_nodes))
        request = request.model_copy(update={"text": recipe})
    named = request.model_copy(update={"dataset_version": resolved.dataset_version, "warm_start": resolved.warm_start})
    row = job_queue.enqueue(session, "train", resolved.dataset.id, _stored(named), request)
    row.hierarchy_id = None if resolved.hierarchy is None else resolved.hierarchy.id
    return row


def _evaluate(session: Session, request: EvaluateRequest) -> tables.Job:
    resolved = resolve_evaluation(session, request)
    row = job_queue.enqueue(session, "evaluate", resolved.dataset.id, _stored(resolved.request), request)
    row.hierarchy_id = resolved.hierarchy_id
    return row


def get(session: Session, id: str) -> Job:
    """A job; raises NotFound."""
    with reading(session):
        row = by_id(session, tables.Job, id)
        return show(row, queue_order.places(session, [row]).get(id))


def page(
    session: Session,
    page_size: int = 100,
    page_token: str | None = None,
    state: JobState | None = None,
    tag: str | None = None,
) -> Page[Job]:
    """Jobs, newest first, of one state or all, and with a tag: its name, or ``NAME=VALUE``."""
    query = select(tables.Job)
    if state is not None:
        query = query.where(tables.Job.state == state)
    if tag is not None:
        name, sign, value = tag.partition("=")
        found = tables.Job.tags[name].as_string()
        query = query.where(found == value if sign else found.is_not(None))
    with reading(session):
        rows, token = newest(session, tables.Job, query, page_size, page_token)
        places = queue_order.places(session, rows)
        return Page[Job](items=[show(row, places.get(row.id)) for row in rows], next_page_token=token)


def change(session: Session, id: str, patch: JobPatch) -> Job:
    """Change tags, and the priority of a queued job.

    Raises
    ------
    NotFound
        No such job.
    Conflict
        The priority of a job that a worker has, or that is over.
    InvalidInput
        The job would have too many tags, or one is too long.
    """
    with writing(session):
        row = _locked(session, id)
        before = {"priority": row.priority, "tags": row.tags or {}}
        tags = {name: value for name, value in {**(row.tags or {}), **(patch.tags or {})}.items() if value is not None}
        if len(tags) > MAX_JOB_TAGS:
            raise InvalidInput(f"the job would have {len(tags)} tags; {MAX_JOB_TAGS} are the most")
        after = {**before, "tags": tags}
        if patch.priority is not None:
            if row.state != "queued":
                raise Conflict(f"the job is {row.state}; only a queued one has a place that a priority can change")
            after["priority"] = queue_order.level_of(patch.priority)
        _set(session, id, **after)
        row = _locked(session, id)
        audit.changed(session, row, before, after)
        return show(row, queue_order.places(session, [row]).get(id))


def cancel(session: Session, id: str) -> Job:
    """Cancel: a queued job at once, a running one at its next step.

    Raises
    ------
    NotFound
        No such job.
    Conflict
        It has succeeded or failed.
    """
    with writing(session):
        job = _locked(session, id)
        if job.state in {"succeeded", "failed"}:
            raise Conflict(f"the job has {job.state} and cannot be cancelled")
        before = job.state
        if job.state == "queued":
            _set(session, id, state="cancelled", finished_at=db_now())
            fail_import(session, [id], "The import was cancelled.")
        elif job.state == "running":
            _set(session, id, state="cancelling")
        return show(_note_state(session, id, before))


def retry(session: Session, id: str) -> Job:
    """Queue a failed or cancelled job again; it goes on from its last checkpoint where there is one.

    Its time limit counts anew.

    Raises
    ------
    NotFound
        No such job.
    Conflict
        It has not failed and was not cancelled, or its dataset, hierarchy or file is gone.
    """
    with writing(session):
        quotas.require_jobs(session)
        job = _locked(session, id)
        if job.state not in {"failed", "cancelled"}:
            raise Conflict(f"the job is {job.state}; only a failed or cancelled job can be tried again")
        if job.dataset_id is None:
            raise Conflict("the job's dataset was deleted")
        if job.request.get("hierarchy") is not None and job.hierarchy_id is None:
            raise Conflict("the job's hierarchy was deleted")
        if job.kind == "append" and not files().path(append_sources.path_of(job.dataset_id, job.request)).exists():
            raise Conflict("the file with the rows is no longer kept; append it again")
        before = job.state
        _set(
            session, id, state="queued", losses=0, error=None, progress=None, started_at=None, finished_at=None,
            notified_at=db_now(), worker=None, lease_until=None, queued_again=_asked(session, job),
        )  # fmt: skip
        job_logs.note(session, id, job.attempt, "info", "queued_again", reason=_asked(session, job))
        if job.kind == "import":
            session.execute(
                update(tables.Dataset).where(tables.Dataset.id == job.dataset_id).values(state="importing", error=None)
            )
        shown = show(_note_state(session, id, before))
    job_queue.notify(session, id, job.queue)
    return shown


def show(row: tables.Job, place: QueuePlace | None = None) -> Job:
    """The job as the API shows it; ``place`` of a queued one."""
    return Job(
        id=row.id,
        kind=row.kind,
        owner=row.owner,
        state=row.state,
        dataset=row.dataset_id,
        hierarchy=row.hierarchy_id,
        request=row.request,
        priority=queue_order.priority_of(row.priority),
        tags=row.tags or {},
        time_limit_seconds=row.time_limit,
        queue=place,
        queued_again=row.queued_again,
        attempt=row.attempt,
        worker=row.worker,
        progress=None if row.progress is None else Progress.model_validate(row.progress),
        result=None if row.result is None else _result(row.result),
        error=None if row.error is None else ProblemDocument.model_validate(row.error),
        created_at=moment(row.created_at),
        started_at=moment_or_none(row.started_at),
        finished_at=moment_or_none(row.finished_at),
    )


def _result(stored: dict[str, Any]) -> JobResult:
    result = JobResult.model_validate(stored)
    # jobs of earlier versions made one version, and named that alone
    return (
        result
        if result.version is None or result.versions
        else result.model_copy(update={"versions": [result.version]})
    )


def is_final(job: Job) -> bool:
    """Whether the job's state will not change by itself any more."""
    return job.state in FINAL_STATES


def _asked(session: Session, job: tables.Job) -> str:
    """Why a job is tried again that somebody asks for."""
    scope = scope_of(session)
    who = "asked for" if scope is None or scope.owner is None else f"asked for by {scope.owner}"
    return f"{who} after it was {job.state}" + (f": {job.error['code']}" if job.error else "")


def _note_state(session: Session, id: str, before: str) -> tables.Job:
    row = _locked(session, id)
    audit.changed(session, row, {"state": before}, {"state": row.state})
    return row


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
        raise Conflict(f"{request.shards} shards need as many pools of workers; {len(pools)} are running{named}")
