"""A rule's run, stage by stage: feedback is appended, the model trained and measured, and the alias moved or not.

Any worker's sweep takes a run to its next stage once the job that it waits for is over. Each stage is one transaction
that begins by changing the stage from what it was, so that of two sweeps at the same moment one does nothing.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import structlog
from sqlalchemy import select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.access import audit
from app.access.audit import Act
from app.datasets.appending import require_quiet
from app.errors import Conflict, InvalidInput, NotFound, PolymarginError, StorageFull, TooMany, Unavailable
from app.evaluations import comparisons
from app.evaluations.schemas import EvaluateRequest
from app.jobs import service as jobs
from app.jobs import training_requests
from app.jobs import wakeups as job_queue
from app.jobs.schemas import FINAL_STATES, TrainRequest
from app.models import aliases
from app.models import service as models
from app.rules import runs as rule_runs
from app.rules.feedback import NoFeedback, append_feedback
from app.rules.schemas import Decision, FeedbackRowsRequest, Outcome, Promotion
from app.store import tables
from app.store.db import db_now, reading, writing
from app.store.failures import is_passing, isolated
from app.store.lookup import by_id
from app.store.scope import Scope, confine
from solvers.metrics.comparison import mcnemar

R, U, J = tables.Rule, tables.RuleRun, tables.Job
# what passes by itself: the stage is tried again by the next sweep
_PASSING = (TooMany, StorageFull, Unavailable)


log = structlog.get_logger("polymargin.rules")


class _Taken(Exception):
    """Another sweep has taken the run on."""


def turn(session: Session) -> list[str]:
    """Start what is due and take every run as far as it goes; ids of the runs that were started."""
    started = rule_runs.start_due(session)
    with reading(session):
        open_runs = session.scalars(select(U.id).where(U.stage != "ended").order_by(U.id)).all()
    for id in open_runs:
        with isolated(session, "rule_not_advanced", run=id):
            _advance(session, id)
    return started


def _advance(session: Session, id: str) -> None:
    with reading(session):
        run = session.get(U, id, populate_existing=True)
        rule = None if run is None else session.get(R, run.rule_id, populate_existing=True)
        if run is None or rule is None:
            return
        due = _is_due(session, run)
    if not due:
        return
    with Session(session.get_bind(), expire_on_commit=False) as own:
        # the maker of the rule was allowed to when it was made
        confine(own, Scope(rule.workspace, rule.owner, administers=True))
        audit.note_for(own, _act(rule))
        try:
            _STAGES[run.stage](own, rule, run)
        except _Taken:
            return
        except _PASSING:
            return
        except PolymarginError as error:
            _end(own, rule, run, "failed", error=error.document())
        except Exception as error:  # of this run alone: those after it, and other workspaces', go on
            if is_passing(error):
                if isinstance(error, SQLAlchemyError):
                    raise  # the database is away for all runs
                return
            log.exception("rule_failed", run=run.id, stage=run.stage)
            _end(own, rule, run, "failed", error=PolymarginError(f"see the worker's log for run {run.id}").document())


def _is_due(session: Session, run: tables.RuleRun) -> bool:
    """Whether the jobs that the stage waits for are over."""
    waited = {"appending": [run.append_job], "training": [run.train_job], "evaluating": run.evaluations or []}
    ids = waited.get(run.stage, [])
    return session.scalars(select(J.id).where(J.id.in_(ids), J.state.not_in(sorted(FINAL_STATES)))).first() is None


def _begin(session: Session, rule: tables.Rule, run: tables.RuleRun) -> None:
    if not rule.feedback:
        _train(session, rule, run)
        return
    dataset = _dataset(session, rule)
    try:
        with reading(session):
            require_quiet(session, by_id(session, tables.Dataset, dataset))
    except Conflict:
        return  # other rows are being appended: the next sweep asks again

    def claim(job: tables.Job) -> None:
        _set(session, run, stage="appending", append_job=job.id)

    try:
        append_feedback(session, rule.model_id, FeedbackRowsRequest(dataset=dataset), claim)
    except NoFeedback:
        _train(session, rule, run)


def _train(session: Session, rule: tables.Rule, run: tables.RuleRun) -> None:
    if run.append_job is not None:
        _require_success(session, run.append_job)
    dataset = _dataset(session, rule)
    with reading(session):
        number = by_id(session, tables.Dataset, dataset).version
        before = select(U.dataset_version).where(
            U.rule_id == rule.id, U.outcome.in_(("trained", "promoted", "kept", "nothing_new"))
        )
        last = session.scalars(before.order_by(U.id.desc()).limit(1)).first()
        request = _warm(session, rule, TrainRequest.model_validate(rule.training))
    if last == number and run.cause != "asked":
        _end(session, rule, run, "nothing_new", dataset_version=number)
        return
    with writing(session):
        _set(session, run, stage="training", dataset_version=number)
        job = jobs.enqueue(session, request.model_copy(update={"dataset_version": number}))
        _set(session, run, "training", train_job=job.id)
    job_queue.notify(session, job.id, job.queue)


def _evaluate(session: Session, rule: tables.Rule, run: tables.RuleRun) -> None:
    assert run.train_job is not None
    result = _require_success(session, run.train_job)
    version: int = result["version"]
    if rule.promote is None:
        _end(session, rule, run, "trained", version=version)
        return
    promote = Promotion.model_validate(rule.promote)
    former = _pointed_to(session, rule, promote.alias)
    if former is None or former[0] == version:
        _decide(session, rule, run, Decision(
            alias=promote.alias, promoted=True, reason="first", former=None, version=version, alpha=promote.alpha,
        ), 0)  # fmt: skip
        return
    queued = []
    with writing(session):
        _set(session, run, stage="evaluating", version=version, revision=former[1])
        for number in (version, former[0]):
            assert promote.dataset is not None
            request = EvaluateRequest(
                kind="evaluate", model=rule.model_id, version=number, dataset=promote.dataset, part=promote.part
            )
            queued.append(jobs.enqueue(session, request))
        _set(session, run, "evaluating", evaluations=[job.id for job in queued])
    for job in queued:
        job_queue.notify(session, job.id, job.queue)


def _compare(session: Session, rule: tables.Rule, run: tables.RuleRun) -> None:
    assert rule.promote is not None
    assert run.evaluations is not None
    assert run.version is not None
    for job in run.evaluations:
        _require_success(session, job)
    promote = Promotion.model_validate(rule.promote)
    measured, of_former = run.evaluations
    new, old = comparisons.right_answers(session, measured, of_former)
    with reading(session):
        evaluation = by_id(session, tables.Evaluation, of_former)
        former = by_id(session, tables.ModelVersion, evaluation.version_id).number
    found = mcnemar(old, new)
    worse = found.only_a > found.only_b and found.mid_p < promote.alpha
    few = len(new) < promote.min_rows
    reason: Any = "too_few_rows" if few else "worse" if worse else "not_worse"
    decision = Decision(
        alias=promote.alias,
        promoted=reason == "not_worse",
        reason=reason,
        former=former,
        version=run.version,
        n_rows=len(new),
        accuracy_former=float(np.mean(old)),
        accuracy=float(np.mean(new)),
        only_former=found.only_a,
        only_new=found.only_b,
        p_value=found.mid_p,
        alpha=promote.alpha,
    )
    _decide(session, rule, run, decision, run.revision or 0)


def _decide(session: Session, rule: tables.Rule, run: tables.RuleRun, decision: Decision, revision: int) -> None:
    """Move the alias or leave it, and end the run, in one transaction; the alias must be as it was measured."""
    now = _pointed_to(session, rule, decision.alias)
    if decision.promoted and (0 if now is None else now[1]) != revision:
        decision = decision.model_copy(update={"promoted": False, "reason": "alias_moved"})
    with writing(session):
        outcome: Outcome = "promoted" if decision.promoted else "kept"
        _ended(session, rule, run, outcome, version=decision.version, decision=decision.model_dump(mode="json"))
        if decision.promoted:
            model = session.scalars(
                select(tables.Model).where(tables.Model.id == rule.model_id).with_for_update()
            ).one()
            aliases.point_alias(session, model, decision.alias, decision.version, revision)


def _end(session: Session, rule: tables.Rule, run: tables.RuleRun, outcome: Outcome, **values: Any) -> None:
    session.rollback()
    try:
        with writing(session):
            _ended(session, rule, run, outcome, **values)
    except _Taken:
        return


def _ended(session: Session, rule: tables.Rule, run: tables.RuleRun, outcome: Outcome, **values: Any) -> None:
    _set(session, run, stage="ended", outcome=outcome, finished_at=db_now(), **values)
    session.execute(
        update(R).where(R.id == rule.id, R.run_id == run.id).values(run_id=None).execution_options(**_UNSEEN)
    )
    entry = {"run": run.id, "outcome": outcome, **(values.get("decision") or {})}
    if values.get("error"):
        entry["error"] = values["error"]["detail"]
    audit.changed(session, rule, None, entry, "rule_run")


def _set(session: Session, run: tables.RuleRun, at: str | None = None, **values: Any) -> None:
    """Change a run whose stage is still what it was; raises _Taken where it is not."""
    unchanged = update(U).where(U.id == run.id, U.stage == (at or run.stage)).values(**values).returning(U.id)
    if session.scalars(unchanged.execution_options(**_UNSEEN)).one_or_none() is None:
        raise _Taken


def _dataset(session: Session, rule: tables.Rule) -> str:
    if rule.dataset_id is None:
        raise NotFound("the dataset of the rule was deleted")
    return rule.dataset_id


def _warm(session: Session, rule: tables.Rule, request: TrainRequest) -> TrainRequest:
    """The request, from the latest version on where the rule wants it and that is possible."""
    if not rule.warm:
        return request
    number = models.version_row(session, rule.model_id).number
    warm = request.model_copy(update={"warm_start": f"{request.model}@{number}"})
    try:
        training_requests.resolve(session, warm)
    except InvalidInput:
        return request
    return warm


def _pointed_to(session: Session, rule: tables.Rule, alias: str) -> tuple[int, int] | None:
    """The number of the version that the model's alias names, and the alias's revision."""
    A, V = tables.Alias, tables.ModelVersion
    query = (
        select(V.number, A.revision).join(V, V.id == A.version_id).where(A.model_id == rule.model_id, A.name == alias)
    )
    with reading(session):
        found = session.execute(query).one_or_none()
    return None if found is None else (found.number, found.revision)


def _require_success(session: Session, job_id: str) -> dict[str, Any]:
    """The job's result; raises Conflict where it has none."""
    with reading(session):
        job = session.get(J, job_id, populate_existing=True)
    if job is None or job.state != "succeeded":
        state = (
            "is not there any more" if job is None else f"has {job.state}" if job.state == "failed" else "was cancelled"
        )
        detail = f": {job.error['detail']}" if job is not None and job.error else ""
        raise Conflict(f"the job {job_id} {state}{detail}")
    return job.result or {}


def _act(rule: tables.Rule) -> Act:
    path = f"/api/v1/rules/{rule.name}"
    return Act(rule.id, rule.owner or "", rule.workspace, "RULE", "/api/v1/rules/{ref}", path, None, None)


_UNSEEN = {"synchronize_session": False}
_STAGES: dict[str, Callable[[Session, tables.Rule, tables.RuleRun], None]] = {
    "starting": _begin,
    "appending": _train,
    "training": _evaluate,
    "evaluating": _compare,
}
