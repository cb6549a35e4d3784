"""``polymargin rules``: train models again by schedule or feedback, and let an alias follow."""

from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from app.client import Polymargin
from app.commands.common.output import Json, console, number, print_json, table
from app.commands.common.request_fields import fields_of, request_of
from app.schemas.jobs.jobs import TrainRequest
from app.schemas.rules.rules import Rule, RuleRequest, RuleRun

rules = typer.Typer(help="Train models again by schedule or by feedback.", no_args_is_help=True)

Ref = Annotated[str, typer.Argument(metavar="RULE", help="Name or id.")]


@rules.command()
@fields_of(RuleRequest, arguments=["name"], leave=[f"training_{field}" for field in TrainRequest.model_fields])
def create(
    training: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json", help="A training request; by default as the model's latest version was trained."
        ),
    ] = None,
    json: Json = False,
    **given: Any,
) -> None:
    """Make a rule."""
    request = request_of(RuleRequest, given)
    if training is not None:
        try:
            request["training"] = orjson.loads(training.read_bytes())
        except (OSError, orjson.JSONDecodeError) as error:
            raise typer.BadParameter(f"{training} is no JSON file: {error}", param_hint="--training") from None
    with Polymargin() as client:
        _show(client.rules.create(**request), json)


@rules.command("list")
def list_(json: Json = False) -> None:
    """The newest rules."""
    with Polymargin() as client:
        page = client.rules.list()
    if json:
        print_json(page)
        return
    rows = [
        (rule.name, rule.model, _starts(rule), _alias(rule), _last(rule), "on" if rule.enabled else "off")
        for rule in page.items
    ]
    console(json).print(table(["name", "model", "starts", "alias", "last run", ""], rows))


@rules.command()
def show(rule: Ref, json: Json = False) -> None:
    """One rule."""
    with Polymargin() as client:
        _show(client.rules.get(rule), json)


@rules.command()
def enable(rule: Ref, json: Json = False) -> None:
    """Let a rule start by itself again."""
    with Polymargin() as client:
        _show(client.rules.enable(rule), json)


@rules.command()
def disable(rule: Ref, json: Json = False) -> None:
    """Let a rule start no more by itself."""
    with Polymargin() as client:
        _show(client.rules.enable(rule, False), json)


@rules.command()
def delete(rule: Ref) -> None:
    """Delete a rule and the list of its runs."""
    with Polymargin() as client:
        client.rules.delete(rule)


@rules.command()
def start(rule: Ref, json: Json = False) -> None:
    """Start a rule now."""
    with Polymargin() as client:
        run = client.rules.start(rule)
    if json:
        print_json(run)
    else:
        _show_runs([run])


@rules.command()
def runs(rule: Ref, json: Json = False) -> None:
    """What a rule has done, the newest first, and why an alias has moved or not."""
    with Polymargin() as client:
        page = client.rules.runs(rule)
    if json:
        print_json(page)
    else:
        _show_runs(page.items)


def _show(rule: Rule, json: bool) -> None:
    if json:
        print_json(rule)
        return
    rows = [
        ("id", rule.id),
        ("model", rule.model),
        ("dataset", rule.dataset),
        ("starts", _starts(rule)),
        ("next time (UTC)", f"{rule.due_at:%F %T}" if rule.enabled and rule.due_at else None),
        ("appends feedback", "yes" if rule.feedback else "no"),
        ("begins warm", "yes" if rule.warm else "no"),
        ("alias that follows", _alias(rule)),
        ("on", "yes" if rule.enabled else "no"),
        ("last run", _last(rule)),
    ]
    console(json).print(table(["rule", rule.name], rows))


def _show_runs(runs: list[RuleRun]) -> None:
    rows = [
        (f"{run.created_at:%F %T}", run.cause, run.outcome or run.stage, run.version, run.train_job, _why(run))
        for run in runs
    ]
    console(False).print(table(["started (UTC)", "by", "outcome", "version", "training", "why"], rows))


def _why(run: RuleRun) -> str | None:
    if run.error is not None:
        return run.error.detail
    found = run.decision
    if found is None:
        return None
    reason = found.reason.replace("_", " ")
    if found.p_value is None:
        return f"{found.alias}: {reason}"
    return (
        f"{found.alias}: {reason}; accuracy {number(found.accuracy_former)} -> {number(found.accuracy)} on "
        f"{found.n_rows} rows, {found.only_former} only former, {found.only_new} only new, p {number(found.p_value)}"
    )


def _starts(rule: Rule) -> str:
    time = [] if rule.cron is None else [f"{rule.cron} ({rule.time_zone})"]
    rows = [] if rule.feedback_rows is None else [f"every {rule.feedback_rows} reports"]
    return ", ".join(time + rows)


def _alias(rule: Rule) -> str | None:
    return None if rule.promote is None else rule.promote.alias


def _last(rule: Rule) -> str | None:
    run = rule.latest_run
    return None if run is None else run.outcome or run.stage
