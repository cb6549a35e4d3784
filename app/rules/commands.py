"""Commands: rules and feedback."""

from pathlib import Path
from typing import Annotated, Any, cast

import orjson
import typer
from rich.table import Table

from app.command_line.connection import connect
from app.command_line.instances import Instance, one_instance
from app.command_line.output import Json, console, number, option, print_result, table
from app.command_line.request_fields import build_request, fields_of
from app.command_line.watching import watch as watch_job
from app.jobs.schemas import TrainRequest
from app.rules.schemas import Feedback, FeedbackRequest, FeedbackRowsRequest, Rule, RuleRequest, RuleRun

rules = typer.Typer(help="Retrain models on a schedule or after feedback.", no_args_is_help=True)

Ref = Annotated[str, typer.Argument(metavar="RULE", help="Name or id.")]


@rules.command()
@fields_of(RuleRequest, arguments=["name"], leave=[f"training_{field}" for field in TrainRequest.model_fields])
def create(
    training: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="Training request as JSON file. Default: the request of the model's latest version.",
        ),
    ] = None,
    json: Json = False,
    **given: Any,
) -> None:
    """Create a rule."""
    request = build_request(RuleRequest, given)
    if training is not None:
        try:
            request["training"] = orjson.loads(training.read_bytes())
        except (OSError, orjson.JSONDecodeError) as error:
            raise typer.BadParameter(f"{training} is not a JSON file: {error}", param_hint="--training") from None
    _show(connect().rules.create(**request), json)


@rules.command("list")
def list_(json: Json = False) -> None:
    """List the newest rules."""
    page = connect().rules.list()
    rows = [
        (rule.name, rule.model, _starts(rule), _alias(rule), _last(rule), "on" if rule.enabled else "off")
        for rule in page.items
    ]
    print_result(page, table(["name", "model", "starts", "alias", "last run", ""], rows), json)


@rules.command()
def show(rule: Ref, json: Json = False) -> None:
    """Show one rule."""
    _show(connect().rules.get(rule), json)


@rules.command()
def enable(rule: Ref, json: Json = False) -> None:
    """Enable a rule."""
    _show(connect().rules.enable(rule), json)


@rules.command()
def disable(rule: Ref, json: Json = False) -> None:
    """Disable a rule."""
    _show(connect().rules.enable(rule, False), json)


@rules.command()
def delete(rule: Ref) -> None:
    """Delete a rule and the list of its runs."""
    connect().rules.delete(rule)


@rules.command()
def start(rule: Ref, json: Json = False) -> None:
    """Start a rule now."""
    run = connect().rules.start(rule)
    print_result(run, _listed([run]), json)


@rules.command()
def runs(rule: Ref, json: Json = False) -> None:
    """List the runs of a rule, newest first, with the reason for each promotion decision."""
    page = connect().rules.runs(rule)
    print_result(page, _listed(page.items), json)


def _show(rule: Rule, json: bool) -> None:
    rows = [
        ("id", rule.id),
        ("model", rule.model),
        ("dataset", rule.dataset),
        ("starts", _starts(rule)),
        ("next time (UTC)", f"{rule.due_at:%F %T}" if rule.enabled and rule.due_at else None),
        ("appends feedback", "yes" if rule.feedback else "no"),
        ("warm start", "yes" if rule.warm else "no"),
        ("promoted alias", _alias(rule)),
        ("on", "yes" if rule.enabled else "no"),
        ("last run", _last(rule)),
    ]
    print_result(rule, table(["rule", rule.name], rows), json)


def _listed(runs: list[RuleRun]) -> Table:
    rows = [
        (f"{run.created_at:%F %T}", run.cause, run.outcome or run.stage, run.version, run.train_job, _why(run))
        for run in runs
    ]
    return table(["started (UTC)", "by", "outcome", "version", "training", "why"], rows)


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


feedback = typer.Typer(help="Record correct labels and turn them into training rows.", no_args_is_help=True)

Model = Annotated[str, typer.Argument(help="Name or id.")]
Report = Annotated[str, typer.Argument(metavar="FEEDBACK", help="Id.")]
_LONGEST = 60


@feedback.command()
def report(
    model: Model,
    labels: Annotated[list[str], option(FeedbackRequest, "labels", argument=True)],
    text: Annotated[str | None, typer.Option(help="Text of the instance.")] = None,
    instance: Instance = None,
    version: Annotated[int | None, option(FeedbackRequest, "version")] = None,
    answer: Annotated[str | None, option(FeedbackRequest, "answer")] = None,
    note: Annotated[str | None, option(FeedbackRequest, "note")] = None,
    json: Json = False,
) -> None:
    """Submit the correct labels of one instance; `""` alone is the empty set."""
    given = one_instance(text, instance)
    reported = connect().feedback.report(model, given, [] if labels == [""] else labels, version, answer, note)
    _feedback_show(reported, json)


@feedback.command("list")
def feedback_list_(
    model: Model,
    waiting: Annotated[
        bool | None,
        typer.Option("--waiting/--taken", help="Only feedback that is pending, or only feedback already used."),
    ] = None,
    json: Json = False,
) -> None:
    """List the newest feedback to a model."""
    page = connect().feedback.list(model, waiting=waiting)
    rows = [
        (each.id, each.version, ", ".join(each.labels), _shown(each), each.key, each.job, f"{each.created_at:%F %T}")
        for each in page.items
    ]
    print_result(page, table(["id", "version", "labels", "instance", "key", "job", "reported (UTC)"], rows), json)


@feedback.command("show")
def feedback_show(model: Model, id: Report, json: Json = False) -> None:
    """Show one report."""
    _feedback_show(connect().feedback.get(model, id), json)


@feedback.command("delete")
def feedback_delete(model: Model, id: Report) -> None:
    """Delete a report; a dataset row made from it remains."""
    connect().feedback.delete(model, id)


@feedback.command("append")
def append_rows(
    model: Model,
    dataset: Annotated[str | None, option(FeedbackRowsRequest, "dataset")] = None,
    part: Annotated[str | None, option(FeedbackRowsRequest, "part", metavar="train|test|validation")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Wait for the job.")] = False,
    json: Json = False,
) -> None:
    """Append pending feedback to a dataset, as a new version."""
    job = connect().feedback.append_rows(model, dataset, cast(Any, part))
    if watch:
        job = watch_job(job, console(json))
    print_result(job, table(["job", job.id], [("kind", job.kind), ("state", job.state)]), json)


def _shown(reported: Feedback) -> str:
    shown = reported.instance.get(
        "text", reported.instance.get("record") or reported.instance.get("features", reported.instance.get("indices"))
    )
    words = shown if isinstance(shown, str) else orjson.dumps(shown).decode()
    return words if len(words) <= _LONGEST else words[: _LONGEST - 3] + "..."


def _feedback_show(reported: Feedback, json: bool) -> None:
    facts = reported.model_dump(mode="json", exclude={"labels", "instance"}, exclude_none=True)
    facts |= {"labels": ", ".join(reported.labels), "instance": _shown(reported)}
    print_result(reported, table(["feedback", reported.id], facts.items()), json)
