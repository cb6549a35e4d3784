"""Routes of rules and feedback."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.access.authentication import CLERK, EDITOR, VIEWER
from app.http.bodies import Body
from app.http.parameters import V1, Db, Id, Once, PageSize, PageToken, Ref, point_to
from app.http.problems import responses
from app.jobs import service as jobs
from app.jobs.schemas import Job
from app.predictions.model_cache import ModelCache
from app.rules import feedback
from app.rules import runs as rule_runs
from app.rules import service as rules
from app.rules.feedback import append_feedback
from app.rules.schemas import Feedback, FeedbackRequest, FeedbackRowsRequest, Rule, RulePatch, RuleRequest, RuleRun
from app.schemas import Page
from app.store import tables
from app.store.idempotency import fingerprint, idempotent

router = APIRouter(prefix=f"{V1}/rules", tags=["rules"])


@router.get("", dependencies=[VIEWER])
def list_rules(session: Db, page_size: PageSize = 100, page_token: PageToken = None) -> Page[Rule]:
    """List rules, newest first, each with its newest run."""
    return rules.page(session, page_size, page_token)


@router.post("", status_code=201, dependencies=[EDITOR], responses=responses(404, 409))
def create_rule(response: Response, session: Db, token: Once, body: Body[RuleRequest]) -> Rule:
    """Create a rule that retrains a model on a schedule or after feedback, and may promote the new version."""
    with idempotent(session, token, fingerprint("rule", body.model_dump_json()), tables.Rule) as before:
        rule = rules.get(session, before) if before else rules.create(session, body)
    point_to(response, f"{V1}/rules/{rule.name}", before)
    return rule


@router.get("/{ref}", dependencies=[VIEWER])
def get_rule(session: Db, ref: Ref) -> Rule:
    """Get a rule by id or name, with its newest run."""
    return rules.get(session, ref)


@router.patch("/{ref}", dependencies=[EDITOR])
def change_rule(session: Db, ref: Ref, body: Body[RulePatch]) -> Rule:
    """Enable or disable a rule; an unfinished run continues."""
    return rules.set_enabled(session, ref, body.enabled)


@router.delete("/{ref}", status_code=204, dependencies=[EDITOR])
def delete_rule(session: Db, ref: Ref) -> None:
    """Delete a rule and the list of its runs; its jobs and their results remain."""
    rules.delete(session, ref)


@router.get("/{ref}/runs", dependencies=[VIEWER])
def list_rule_runs(session: Db, ref: Ref, page_size: PageSize = 100, page_token: PageToken = None) -> Page[RuleRun]:
    """List the runs of a rule, newest first, with jobs, outcome and promotion decision."""
    return rule_runs.page(session, ref, page_size, page_token)


@router.post("/{ref}/runs", status_code=202, dependencies=[EDITOR], responses=responses(409))
def start_rule(response: Response, session: Db, token: Once, ref: Ref) -> RuleRun:
    """Start a rule now, independently of its schedule; refused while a run is unfinished."""
    with idempotent(session, token, fingerprint("rule run", ref), tables.RuleRun) as before:
        run = rule_runs.get(session, before) if before else rule_runs.start(session, ref)
    point_to(response, f"{V1}/rules/{run.rule}/runs", before)
    return run


feedback_router = APIRouter(prefix=f"{V1}/models/{{ref}}/feedback", tags=["predictions"])


@feedback_router.post("", status_code=201, dependencies=[CLERK], responses=responses(409))
def report_feedback(
    request: Request,
    response: Response,
    session: Db,
    token: Once,
    ref: Ref,
    body: Body[FeedbackRequest],
) -> Feedback:
    """Record the correct labels of an instance, for new training rows."""
    cache: ModelCache = request.app.state.models
    loaded = cache.get((request.state.key.workspace, ref, body.version, None))
    print_ = fingerprint("feedback", ref, body.model_dump_json(warnings=False))
    with idempotent(session, token, print_, tables.Feedback) as before:
        reported = feedback.get(session, ref, before) if before else feedback.report(session, loaded, body)
    point_to(response, f"{V1}/models/{ref}/feedback/{reported.id}", before)
    return reported


@feedback_router.post("/rows", status_code=202, dependencies=[EDITOR], responses=responses(409))
def append_feedback_rows(
    response: Response, session: Db, token: Once, ref: Ref, body: Body[FeedbackRowsRequest]
) -> Job:
    """Append pending feedback to a dataset; the job creates a new dataset version."""
    print_ = fingerprint("feedback rows", ref, body.model_dump_json())
    with idempotent(session, token, print_, tables.Job) as before:
        job = jobs.get(session, before) if before else append_feedback(session, ref, body)
    point_to(response, f"{V1}/jobs/{job.id}", before)
    return job


@feedback_router.get("", dependencies=[VIEWER])
def list_feedback(
    session: Db,
    ref: Ref,
    page_size: PageSize = 100,
    page_token: PageToken = None,
    waiting: Annotated[bool | None, Query(description="Only pending feedback, or only feedback already used.")] = None,
) -> Page[Feedback]:
    """List the feedback to a model, newest first."""
    return feedback.page(session, ref, page_size, page_token, waiting)


@feedback_router.get("/{id}", dependencies=[VIEWER])
def get_feedback(session: Db, ref: Ref, id: Id) -> Feedback:
    """Get one report."""
    return feedback.get(session, ref, id)


@feedback_router.delete("/{id}", status_code=204, dependencies=[EDITOR], responses=responses(409))
def delete_feedback(session: Db, ref: Ref, id: Id) -> None:
    """Delete a report; a dataset row made from it remains."""
    feedback.remove(session, ref, id)
