"""``polymargin feedback``: tell a model what is right, and make rows of what was told."""

from typing import Annotated, Any, cast

import orjson
import typer

from app.client import Polymargin
from app.commands.common.instances import Instance, one_instance
from app.commands.common.output import Json, console, option, print_json, table
from app.commands.common.watching import watch as watch_job
from app.schemas.rules.feedback import Feedback, FeedbackRequest, FeedbackRowsRequest

feedback = typer.Typer(help="Tell models what is right, and make rows of it.", no_args_is_help=True)

Model = Annotated[str, typer.Argument(help="Name or id.")]
Report = Annotated[str, typer.Argument(metavar="FEEDBACK", help="Id.")]
_LONGEST = 60


@feedback.command()
def report(
    model: Model,
    labels: Annotated[list[str], option(FeedbackRequest, "labels", argument=True)],
    text: Annotated[str | None, typer.Option(help="The text that was classified.")] = None,
    instance: Instance = None,
    version: Annotated[int | None, option(FeedbackRequest, "version")] = None,
    answer: Annotated[str | None, option(FeedbackRequest, "answer")] = None,
    note: Annotated[str | None, option(FeedbackRequest, "note")] = None,
    json: Json = False,
) -> None:
    """Tell the right labels of one instance."""
    told = one_instance(text, instance)
    with Polymargin() as client:
        reported = client.feedback.report(model, told, labels, version, answer, note)
    _show(reported, json)


@feedback.command("list")
def list_(
    model: Model,
    waiting: Annotated[
        bool | None, typer.Option("--waiting/--taken", help="Only what no rows were made of, or only the rest.")
    ] = None,
    json: Json = False,
) -> None:
    """The newest feedback to a model."""
    with Polymargin() as client:
        page = client.feedback.list(model, waiting=waiting)
    if json:
        print_json(page)
        return
    rows = [
        (each.id, each.version, ", ".join(each.labels), _shown(each), each.key, each.job, f"{each.created_at:%F %T}")
        for each in page.items
    ]
    console(json).print(table(["id", "version", "labels", "instance", "key", "job", "told (UTC)"], rows))


@feedback.command()
def show(model: Model, id: Report, json: Json = False) -> None:
    """One report."""
    with Polymargin() as client:
        _show(client.feedback.get(model, id), json)


@feedback.command()
def delete(model: Model, id: Report) -> None:
    """Delete a report; a row that was made of it stays in its dataset."""
    with Polymargin() as client:
        client.feedback.delete(model, id)


@feedback.command("append")
def append_rows(
    model: Model,
    dataset: Annotated[str | None, option(FeedbackRowsRequest, "dataset")] = None,
    part: Annotated[str | None, option(FeedbackRowsRequest, "part", metavar="train|test|validation")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Wait for the job.")] = False,
    json: Json = False,
) -> None:
    """Append what waits of the feedback to a dataset, as its next version."""
    with Polymargin() as client:
        job = client.feedback.append_rows(model, dataset, cast(Any, part))
        if watch:
            job = watch_job(job, console(json))
    if json:
        print_json(job)
        return
    console(json).print(table(["job", job.id], [("kind", job.kind), ("state", job.state)]))


def _shown(reported: Feedback) -> str:
    shown = reported.instance.get(
        "text", reported.instance.get("record") or reported.instance.get("features", reported.instance.get("indices"))
    )
    words = shown if isinstance(shown, str) else orjson.dumps(shown).decode()
    return words if len(words) <= _LONGEST else words[: _LONGEST - 3] + "..."


def _show(reported: Feedback, json: bool) -> None:
    if json:
        print_json(reported)
        return
    facts = reported.model_dump(mode="json", exclude={"labels", "instance"}, exclude_none=True)
    facts |= {"labels": ", ".join(reported.labels), "instance": _shown(reported)}
    console(json).print(table(["feedback", reported.id], facts.items()))
