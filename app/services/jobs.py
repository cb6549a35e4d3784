"""Jobs: asked for, looked at, cancelled and tried again."""

from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.errors import Conflict, InvalidInput
from app.schemas.batch_predictions import BatchPredictRequest
from app.schemas.evaluations import EvaluateRequest
from app.schemas.jobs import (
    FINAL_STATES,
    Job,
    JobRequest,
    JobResult,
    JobState,
    JobStep,
    JobSteps,
    Progress,
    TrainRequest,
)
from app.schemas.pages import Page
from app.schemas.problems import ProblemDocument
from app.schemas.texts import default_recipe
from app.services import append_sources, audit, job_queue, quotas, slots
from app.services.batch_predictions import resolve_batch
from app.services.evaluation_requests import resolve_evaluation
from app.services.lookup import by_id, moment, moment_or_none, newest
from app.services.training_requests import resolve
from app.store import tables
from app.store.db import db_now, reading, writing
from app.store.files import files

MAX_STEPS = 10_000


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
        job = show(row)
    job_queue.notify(session, job.id, row.queue)
    return job


def _queued(session: Session, request: JobRequest) -> tables.Job:
    if isinstance(request, EvaluateRequest):
        return _evaluate(session, request)
    if isinstance(request, BatchPredictRequest):
        dataset, meant = resolve_batch(session, request)
        return job_queue.enqueue(session, "predict", dataset.id, meant.model_dump(mode="json"))
    return _train(session, request)


def _train(session: Session, request: TrainRequest) -> tables.Job:
    resolved = resolve(session, request, lock=True)
    _check_pools(session, request)
    if resolved.dataset.kind == "text" and request.text is None:
        n_nodes = 0 if resolved.hierarchy is None else resolved.hierarchy.n_nodes
        recipe = default_recipe(request.solver, max(len(resolved.counts.labels), n_nodes))
        request = request.model_copy(update={"text": recipe})
    named = request.model_copy(update={"dataset_version": resolved.dataset_version})
    row = job_queue.enqueue(session, "train", resolved.dataset.id, named.model_dump(mode="json"))
    row.hierarchy_id = None if resolved.hierarchy is None else resolved.hierarchy.id
    return row


def _evaluate(session: Session, request: EvaluateRequest) -> tables.Job:
    resolved = resolve_evaluation(session, request)
    row = job_queue.enqueue(session, "evaluate", resolved.dataset.id, resolved.request.model_dump(mode="json"))
    row.hierarchy_id = resolved.hierarchy_id
    return row


def get(session: Session, id: str) -> Job:
    """A job; raises NotFound."""
    with reading(session):
        return show(by_id(session, tables.Job, id))


def page(
    session: Session, page_size: int = 100, page_token: str | None = None, state: JobState | None = None
) -> Page[Job]:
    """Jobs, newest first, of one state or all."""
    query = select(tables.Job)
    if state is not None:
        query = query.where(tables.Job.state == state)
    with reading(session):
        rows, token = newest(session, tables.Job, query, page_size, page_token)
        return Page[Job](items=[show(row) for row in rows], next_page_token=token)


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
            session, id, state="queued", losses=0, error=None, progress=None, finished_at=None,
            notified_at=db_now(), worker=None, lease_until=None,
        )  # fmt: skip
        if job.kind == "import":
            session.execute(
                update(tables.Dataset).where(tables.Dataset.id == job.dataset_id).values(state="importing", error=None)
            )
        shown = show(_note_state(session, id, before))
    job_queue.notify(session, id, job.queue)
    return shown


def steps(session: Session, id: str, after: int = -1, limit: int = 1000) -> JobSteps:
    """Up to ``limit`` steps with numbers above ``after``; raises NotFound."""
    if not 1 <= limit <= MAX_STEPS:
        raise InvalidInput(f"limit is {limit}; 1 to {MAX_STEPS} was expected")
    with reading(session):
        by_id(session, tables.Job, id)
        query = select(tables.Step).where(tables.Step.job_id == id, tables.Step.number > after)
        rows = session.scalars(query.order_by(tables.Step.number).limit(limit))
        return JobSteps(
            steps=[
                JobStep(
                    number=row.number,
                    attempt=row.attempt,
                    epoch=row.epoch,
                    primal=row.primal,
                    dual=row.dual,
                    gap=row.gap,
                    violation=row.violation,
                    seconds=row.seconds,
                    point=row.point,
                    measures=row.measures or {},
                )
                for row in rows
            ]
        )


def fail_import(session: Session, job_ids: list[str], detail: str, document: dict[str, Any] | None = None) -> None:
    """Fail the datasets whose import ended without success, in the caller's transaction."""
    document = document or {
        "type": "urn:polymargin:problem:import_ended",
        "title": "The dataset was not imported",
        "status": 409,
        "code": "import_ended",
        "detail": detail,
        "errors": [],
    }
    of_jobs = select(tables.Job.dataset_id).where(tables.Job.id.in_(job_ids), tables.Job.kind == "import")
    session.execute(
        update(tables.Dataset)
        .where(tables.Dataset.id.in_(of_jobs), tables.Dataset.state == "importing")
        .values(state="failed", error=document)
        .execution_options(synchronize_session=False)
    )


def worker_lost(losses: int) -> dict[str, Any]:
    """The error of a job that has lost so many workers."""
    return {
        "type": "urn:polymargin:problem:worker_lost",
        "title": "The job lost its worker too often",
        "status": 500,
        "code": "worker_lost",
        "detail": f"{losses} workers that ran the job went silent; memory may have run out. See the workers' logs.",
        "errors": [],
    }


def show(row: tables.Job) -> Job:
    """The job as the API shows it."""
    return Job(
        id=row.id,
        kind=row.kind,
        owner=row.owner,
        state=row.state,
        dataset=row.dataset_id,
        hierarchy=row.hierarchy_id,
        request=row.request,
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
