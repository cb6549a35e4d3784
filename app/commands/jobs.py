"""``polymargin train`` and ``polymargin jobs``: submit, list, show, watch, cancel, retry."""

from collections.abc import Callable
from typing import Annotated, Any, cast

import orjson
import typer

from app.client import Polymargin
from app.commands.output import Json, console, number, option, print_json, table
from app.commands.watching import watch as watch_job
from app.schemas.jobs import Job, JobResult, JobState, TrainRequest
from app.schemas.models import ModelVersion
from app.schemas.plans import JobPlan, Span

jobs = typer.Typer(help="Look after import and training jobs.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="JOB", help="Id.")]


def train(
    dataset: Annotated[str, typer.Argument(help="Name or id.")],
    model: Annotated[str, option(TrainRequest, "model")],
    solver: Annotated[str, typer.Option(help="See `polymargin solvers`.")] = "auto",
    hierarchy: Annotated[str | None, option(TrainRequest, "hierarchy")] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", "-p", metavar="NAME=VALUE", help="A solver's parameter.")
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(metavar="C,C,...", help="A version for each of these C, each trained from the one before."),
    ] = None,
    shards: Annotated[int | None, option(TrainRequest, "shards", min=1)] = None,
    exchange: Annotated[str | None, option(TrainRequest, "exchange", metavar="WHAT")] = None,
    seed: Annotated[int, typer.Option(help="Of the split and of the solver; the same seed gives the same model.")] = 0,
    threads: Annotated[int, typer.Option(help="Threads of the solver; they change no bit of the model.")] = 1,
    test_fraction: Annotated[float, option(TrainRequest, "test_fraction")] = 0.2,
    watch: Annotated[bool, typer.Option("--watch", help="Show the progress until the job ends.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Show what the shards would take, and submit nothing.")] = False,
    json: Json = False,
) -> None:
    """Train a model on a dataset."""
    params = dict(_param(text) for text in param or ())
    options: dict[str, Any] = {"seed": seed, "threads": threads, "test_fraction": test_fraction}
    if hierarchy is not None:
        options["hierarchy"] = hierarchy
    if path is not None:
        options["path"] = _numbers(path)
    if shards is not None:
        options["shards"] = shards
    if exchange is not None:
        options["exchange"] = exchange
    with Polymargin() as client:
        if plan:
            request = {"dataset": dataset, "model": model, "solver": solver, "params": params, **options}
            _show_plan(client.jobs.plan(request), json)
            return
        job = client.train(dataset, model, solver, params, **options)
        if watch:
            job = watch_job(job, console(json))
            result = cast(JobResult, job.result)
            numbers = result.versions or [cast(int, result.version)]
            _show_versions([client.models.version(model, number) for number in numbers], json)
    _show(job, json)


@jobs.command("list")
def list_(
    state: Annotated[str | None, typer.Option(help="Only jobs in this state.")] = None, json: Json = False
) -> None:
    """The newest jobs."""
    with Polymargin() as client:
        page = client.jobs.list(state=cast(JobState | None, state))
    if json:
        print_json(page)
        return
    rows = [(job.id, job.kind, job.state, job.request.get("model"), f"{job.created_at:%F %T}") for job in page.items]
    console(json).print(table(["id", "kind", "state", "model", "created (UTC)"], rows))


@jobs.command()
def show(job: Id, json: Json = False) -> None:
    """One job."""
    with Polymargin() as client:
        _show(client.jobs.get(job), json)


@jobs.command()
def watch(job: Id, json: Json = False) -> None:
    """Show a job's progress until it ends."""
    with Polymargin() as client:
        _show(watch_job(client.jobs.get(job), console(json)), json)


@jobs.command()
def cancel(job: Id, json: Json = False) -> None:
    """Ask a job to stop; it does at its next step."""
    with Polymargin() as client:
        _show(client.jobs.get(job).cancel(), json)


@jobs.command()
def retry(job: Id, json: Json = False) -> None:
    """Queue a failed or cancelled job again."""
    with Polymargin() as client:
        _show(client.jobs.get(job).retry(), json)


def _show_versions(versions: list[ModelVersion], json: bool) -> None:
    columns = [_summary(version) for version in versions]
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = [(name, *(column.get(name) for column in columns)) for name in names]
    console(json).print(table(["model", *(version.model for version in versions)], rows))


def _summary(version: ModelVersion) -> dict[str, object]:
    row: dict[str, object] = {"version": version.version}
    if "C" in version.params:
        row["C"] = version.params["C"]
    row |= {"epochs": version.epochs, "gap": number(version.gap)}
    return row | {f"{part} {name}": value for part, all_ in version.metrics.items() for name, value in all_.items()}


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"expected numbers with commas between, got {text[:80]!r}", param_hint="--path"
        ) from None


def _param(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign:
        raise typer.BadParameter(f"expected NAME=VALUE, got {text[:80]!r}", param_hint="--param")
    try:
        return name, orjson.loads(value)
    except orjson.JSONDecodeError:
        return name, value


def _show_plan(plan: JobPlan, json: bool) -> None:
    if json:
        print_json(plan)
        return
    rows = [
        (share.shard, share.pool, f"{share.classes:,}", f"{share.examples:,}", _megabytes(share.memory_bytes))
        for share in plan.shards
    ]
    console(json).print(table(["shard", "pool", "classes", "examples", "memory"], rows))
    totals = {
        "pools running": plan.pools,
        "rounds an epoch": _span(plan.rounds_per_epoch, "{:,}".format),
        "sent an epoch": _span(plan.bytes_per_epoch, _megabytes),
        "seconds an epoch": plan.seconds_per_epoch and _span(plan.seconds_per_epoch, number),
    }
    console(json).print(table(["epoch", ""], totals.items()))


def _span(span: Span[Any], shown: Callable[[Any], str | None]) -> str:
    return " to ".join(dict.fromkeys(str(shown(end)) for end in (span.least, span.most)))


def _megabytes(n: int | None) -> str | None:
    return None if n is None else f"{n / 2**20:,.1f} MB"


def _show(job: Job, json: bool) -> None:
    if json:
        print_json(job)
        return
    values = job.model_dump(mode="json", exclude={"request", "progress", "error", "result"}, exclude_none=True)
    if job.progress is not None:
        values["progress"] = f"{job.progress.phase}, epoch {job.progress.epoch}, {job.progress.fraction:.0%}"
    if job.result is not None and job.result.model is not None:
        every = ", ".join(map(str, job.result.versions)) or job.result.version
        values["result"] = f"{job.result.model} version {every}"
        if job.result.evaluation is not None:
            values["result"] = f"evaluation of {values['result']}: polymargin evaluations show {job.result.evaluation}"
    if job.error is not None:
        values["error"] = job.error.detail
    console(json).print(table(["job", job.id], values.items()))
