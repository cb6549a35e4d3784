"""Commands: jobs, train and preview."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, cast

import typer
from rich.console import Console

from app.command_line.connection import connect
from app.command_line.output import Json, console, number, print_json, print_result, table
from app.command_line.request_fields import build_request, fields_of, param_of, tags_of
from app.command_line.watching import watch as watch_job
from app.jobs.cost_options import CostsOption, OtherCost, costs_request, naming_lines
from app.jobs.plan_schemas import CleaningPreview, JobPlan, PreviewRequest, Span
from app.jobs.schemas import Job, JobKind, JobResult, JobState, TrainRequest
from app.models.schemas import ModelVersion
from app.plurals import counted, gap_text, time_left
from app.schemas import Priority

jobs = typer.Typer(help="Manage jobs.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="JOB", help="Id.")]


@fields_of(TrainRequest, arguments=["dataset"], leave=["kind", "params", "model"])
def train(
    model: Annotated[
        str | None, typer.Option(help="Name of the model, which gets a new version. Default: the dataset's name.")
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", "-p", metavar="NAME=VALUE", help="Parameter of the solver.")
    ] = None,
    costs: CostsOption = None,
    other_cost: OtherCost = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show the progress until the job ends.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Estimate memory and time without submitting the job.")] = False,
    json: Json = False,
    **given: Any,
) -> None:
    """Train a model on a dataset."""
    request = build_request(TrainRequest, given) | {
        "kind": "train",
        "params": dict(param_of(text) for text in param or ()),
    }
    priced, table = costs_request(costs, other_cost)
    request["params"] |= priced
    client = connect()
    with naming_lines(table):
        request["model"] = model or client.datasets.get(str(given["dataset"])).name
        if plan:
            _show_plan(client.jobs.plan(request), json)
            return
        job = client.jobs.submit(request)
        if watch:
            job = watch_job(job, console(json))
            result = cast(JobResult, job.result)
            numbers = result.versions or [cast(int, result.version)]
            versions = [client.models.version(str(request["model"]), number) for number in numbers]
            _show_versions(versions, json)
    show_job(job, json)


@jobs.command("list")
def list_(
    state: Annotated[str | None, typer.Option(help="Only jobs in this state.")] = None,
    tag: Annotated[str | None, typer.Option(metavar="NAME[=VALUE]", help="Only jobs with this tag.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only jobs of this kind, for example tune.")] = None,
    json: Json = False,
) -> None:
    """List the newest jobs."""
    page = connect().jobs.list(state=cast(JobState | None, state), tag=tag, kind=cast(JobKind | None, kind))
    rows = [
        (job.id, job.kind, _state(job), _place(job), job.priority, job.request.get("model"), f"{job.created_at:%F %T}")
        for job in page.items
    ]
    print_result(page, table(["id", "kind", "state", "in the queue", "priority", "model", "created (UTC)"], rows), json)


def _state(job: Job) -> str:
    return f"{job.state}, not converged" if job.result is not None and job.result.unconverged else job.state


@jobs.command()
def show(job: Id, json: Json = False) -> None:
    """Show one job."""
    show_job(connect().jobs.get(job), json)


@jobs.command()
def watch(job: Id, json: Json = False) -> None:
    """Show a job's progress until it ends."""
    show_job(watch_job(connect().jobs.get(job), console(json)), json)


@jobs.command()
def cancel(job: Id, json: Json = False) -> None:
    """Cancel a job; a running job stops at its next step."""
    show_job(connect().jobs.get(job).cancel(), json)


@jobs.command()
def retry(job: Id, json: Json = False) -> None:
    """Queue a failed or cancelled job again."""
    show_job(connect().jobs.get(job).retry(), json)


@jobs.command()
def change(
    job: Id,
    priority: Annotated[
        str | None, typer.Option(metavar="low|normal|high", help="New priority of a queued job.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Tag to set.")] = None,
    untag: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Tag to remove.")] = None,
    json: Json = False,
) -> None:
    """Change a job's tags, or its priority while it is queued."""
    tags = tags_of(tag or []) | dict.fromkeys(untag or []) if tag or untag else None
    show_job(connect().jobs.get(job).change(priority=cast(Priority | None, priority), tags=tags), json)


@jobs.command()
def log(
    job: Id,
    after: Annotated[str | None, typer.Option(metavar="LINE", help="Only lines after this id.")] = None,
    limit: Annotated[int, typer.Option(help="Number of entries to show.")] = 200,
    json: Json = False,
) -> None:
    """Show the log of a job, oldest first."""
    found = connect().jobs.get(job).log(after, limit)
    rows = [
        (f"{line.at:%F %T}", line.attempt, line.level, line.event,
         ", ".join(f"{name}={value}" for name, value in line.fields.items()))
        for line in found.lines
    ]  # fmt: skip
    print_result(found, table(["at (UTC)", "attempt", "level", "event", ""], rows), json)


@jobs.command()
def steps(
    job: Id,
    after: Annotated[int, typer.Option(help="Only steps with a larger number.")] = -1,
    limit: Annotated[int, typer.Option(help="Number of entries to show.")] = 1000,
    json: Json = False,
) -> None:
    """Show the convergence curve of a job."""
    found = connect().jobs.get(job).steps(after, limit)
    rows = [
        (each.number, each.epoch, number(each.primal), number(each.dual), gap_text(each.gap), number(each.seconds))
        for each in found.steps
    ]
    print_result(found, table(["step", "epoch", "primal", "dual", "gap", "seconds"], rows), json)


def _show_versions(versions: Sequence[ModelVersion], json: bool) -> None:
    columns = [_summary(version) for version in versions]
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = [(name, *(column.get(name) for column in columns)) for name in names]
    console(json).print(table(["model", *(version.model for version in versions)], rows))


def _summary(version: ModelVersion) -> dict[str, object]:
    row: dict[str, object] = {"version": version.version}
    if "C" in version.params:
        row["C"] = version.params["C"]
    row |= {"epochs": version.epochs, "gap": gap_text(version.gap)}
    return row | {
        f"{part} {name}": number(value) for part, all_ in version.metrics.items() for name, value in all_.items()
    }


def _show_plan(plan: JobPlan, json: bool) -> None:
    if json:
        print_json(plan)
        return
    out = console(json)
    whole = {"memory": _megabytes(plan.memory_bytes) or "known after feature extraction"}
    if plan.earlier is None:
        whole["time"] = "no estimate: no earlier job to go by"
    else:
        took = _span(plan.earlier.seconds, lambda seconds: f"{seconds:,.1f} s")
        whole["time"] = f"{took} ({counted(plan.earlier.n_jobs, 'earlier job')})"
    out.print(table(["job", ""], whole.items()))
    if plan.scaling is not None:
        out.print(plan.scaling)
    if plan.text_columns is not None:
        out.print(plan.text_columns, markup=False)
    if not plan.shards:
        return
    rows = [
        (share.shard, share.pool, f"{share.classes:,}", f"{share.examples:,}", _megabytes(share.memory_bytes))
        for share in plan.shards
    ]
    out.print(table(["shard", "pool", "classes", "examples", "memory"], rows))
    missing = len(plan.shards) - plan.pools
    totals = {
        "pools running": plan.pools,
        "rounds per epoch": plan.rounds_per_epoch and _span(plan.rounds_per_epoch, "{:,}".format),
        "sent per epoch": plan.bytes_per_epoch and _span(plan.bytes_per_epoch, _megabytes),
        "seconds per epoch": plan.seconds_per_epoch and _span(plan.seconds_per_epoch, number),
    }
    if plan.seconds_without_shards is not None:
        totals["seconds in one worker"] = number(plan.seconds_without_shards)
    out.print(table(["epoch", ""], totals.items()))
    if plan.advice is not None:
        out.print(plan.advice)
    if missing > 0:
        out.print(
            f"The job cannot start: {counted(len(plan.shards), 'shard')} need as many pools of workers, "
            f"and {plan.pools} are running."
        )


def _span(span: Span[Any], shown: Callable[[Any], str | None]) -> str:
    return " to ".join(dict.fromkeys(str(shown(end)) for end in (span.least, span.most)))


def _megabytes(n: int | None) -> str | None:
    return None if n is None else f"{n / 2**20:,.1f} MB"


def _place(job: Job) -> str | None:
    if job.queue is None:
        return None
    place, starts = f"place {job.queue.position}", job.queue.starts_in_seconds
    return place if starts is None else f"{place}, starts in about {starts:.0f} s"


def show_job(job: Job, json: bool) -> None:
    """Print a job, for people or for programs."""
    hidden = {"request", "progress", "error", "result", "queue", "tags"}
    values = job.model_dump(mode="json", exclude=hidden, exclude_none=True)
    if job.tags:
        values["tags"] = ", ".join(f"{name}={value}" for name, value in job.tags.items())
    if job.queue is not None:
        values["in the queue"] = _place(job)
    if job.progress is not None and job.state != "succeeded":
        values["progress"] = f"{job.progress.phase}, epoch {job.progress.epoch}, {job.progress.fraction:.0%}"
        if job.progress.setting is not None:
            values["progress"] += f", {job.progress.setting}"
        if job.progress.trials is not None:
            values["progress"] = f"{job.progress.trials_done} of {job.progress.trials} trials finished"
        if job.progress.eta_seconds is not None:
            values["progress"] += f", {time_left(job.progress.eta_seconds)}"
    if job.result is not None and job.result.model is not None:
        every = ", ".join(map(str, job.result.versions)) or job.result.version
        values["result"] = f"{job.result.model} version {every}"
        if job.result.trial is not None:
            values["result"] += f", with the settings of trial {job.result.trial}"
        if job.result.stopped is not None:
            values["result"] += ", stopped by the time limit"
        if job.result.unconverged is not None:
            values["not converged"] = job.result.unconverged
        if job.result.warning is not None:
            values["warning"] = job.result.warning
        if job.result.evaluation is not None:
            values["result"] = f"evaluation of {values['result']}: polymargin evaluations show {job.result.evaluation}"
    if job.error is not None:
        values["error"] = job.error.detail
    print_result(job, table(["job", job.id], values.items()), json)


def _print_cleaning(out: Console, found: CleaningPreview) -> None:
    counts = ", ".join(f"{kind}: {n}" for kind, n in found.changes.items())
    sizes = f"from {found.characters_before} to {found.characters_after} characters"
    out.print(f"cleaning changes {found.n_changed} of {found.n_texts} texts, {sizes}", markup=False)
    if counts:
        out.print(counts, markup=False)
    if found.before is not None and found.after is not None:
        for part, text in (("before cleaning", found.before), ("after cleaning", found.after)):
            out.print(f"{part}:\n{text}", markup=False, highlight=False)


@fields_of(PreviewRequest, leave=["row"])
def preview(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="Name or id.")],
    row: Annotated[int, typer.Argument(help="Row number, from 0.")] = 0,
    json: Json = False,
    **given: Any,
) -> None:
    """Show the features of one row, with the recipe fitted on a sample of the training rows."""
    client = connect()
    found = client.datasets.preview(dataset, row, **build_request(PreviewRequest, {"row": None, **given}))
    if json:
        print_json(found)
        return
    (shown,) = client.datasets.rows(dataset, row, 1).rows
    out = console(json)
    labels = shown.labels if shown.label is None else [shown.label]
    out.print(f"row {row}, {', '.join(labels or ['no label'])}", markup=False)
    if shown.text is not None:
        out.print(shown.text, markup=False, highlight=False)
    if found.cleaning is not None:
        _print_cleaning(out, found.cleaning)
    out.print(f"{found.n_values} of {found.n_features} features, fitted on {found.n_fitted} rows", markup=False)
    out.print(table(["feature", "value"], [(each.feature, number(each.value)) for each in found.features]))
