"""Routes for rules that train models again."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from app.api.access.auth import EDITOR, VIEWER
from app.api.common.bodies import JsonBody
from app.api.common.parameters import Db, Once, PageSize, PageToken, Ref, point_to
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.schemas.common.pages import Page
from app.schemas.rules.rules import Rule, RulePatch, RuleRequest, RuleRun
from app.services.common.idempotency import fingerprint, once
from app.services.rules import rule_runs, rules
from app.store import tables

router = APIRouter(prefix=f"{V1}/rules", tags=["rules"])

_request, _patch = JsonBody(RuleRequest), JsonBody(RulePatch)


@router.get("", dependencies=[VIEWER], responses=responses(401, 422))
def list_rules(session: Db, page_size: PageSize = 100, page_token: PageToken = None) -> Page[Rule]:
    """Rules, newest first, each with its newest run."""
    return rules.page(session, page_size, page_token)


@router.post(
    "",
    status_code=201,
    dependencies=[EDITOR],
    openapi_extra=_request.schema,
    responses=responses(400, 401, 403, 404, 409, 413, 415, 422, 507),
)
def create_rule(response: Response, session: Db, token: Once, body: Annotated[RuleRequest, Depends(_request)]) -> Rule:
    """Make a rule that trains a model again by schedule or feedback, and may move an alias to the new version."""
    made, replayed = once(
        session,
        token,
        fingerprint("rule", body.model_dump_json()),
        tables.Rule,
        lambda: rules.create(session, body),
        rules.get,
    )
    point_to(response, f"{V1}/rules/{made.name}", replayed)
    return made


@router.get("/{ref}", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_rule(session: Db, ref: Ref) -> Rule:
    """One rule by id or name, with its newest run."""
    return rules.get(session, ref)


@router.patch(
    "/{ref}",
    dependencies=[EDITOR],
    openapi_extra=_patch.schema,
    responses=responses(400, 401, 403, 404, 413, 415, 422, 507),
)
def change_rule(session: Db, ref: Ref, body: Annotated[RulePatch, Depends(_patch)]) -> Rule:
    """Switch a rule on or off; its run that is not over goes on."""
    return rules.set_enabled(session, ref, body.enabled)


@router.delete("/{ref}", status_code=204, dependencies=[EDITOR], responses=responses(401, 403, 404, 422, 507))
def delete_rule(session: Db, ref: Ref) -> None:
    """Delete a rule and the list of its runs; jobs that it has begun, and what they make, stay."""
    rules.delete(session, ref)


@router.get("/{ref}/runs", dependencies=[VIEWER], responses=responses(401, 404, 422))
def list_rule_runs(session: Db, ref: Ref, page_size: PageSize = 100, page_token: PageToken = None) -> Page[RuleRun]:
    """Runs of a rule, newest first: their jobs, what came of them, and why an alias has moved or not."""
    return rule_runs.page(session, ref, page_size, page_token)


@router.post("/{ref}/runs", status_code=202, dependencies=[EDITOR], responses=responses(401, 403, 404, 409, 422, 507))
def start_rule(response: Response, session: Db, token: Once, ref: Ref) -> RuleRun:
    """Start a rule now, whatever its schedule says; refused while a run of it is not over."""
    run, replayed = once(
        session,
        token,
        fingerprint("rule run", ref),
        tables.RuleRun,
        lambda: rule_runs.start(session, ref),
        rule_runs.get,
    )
    point_to(response, f"{V1}/rules/{run.rule}/runs", replayed)
    return run
