"""Commands: tune, trials, compress and adopt."""

from pathlib import Path
from typing import Annotated, Any, cast

import orjson
import typer

from app.command_line.connection import connect
from app.command_line.output import Json, console, number, print_json, print_result, table
from app.command_line.request_fields import build_request, fields_of
from app.command_line.watching import watch as watch_job
from app.jobs.client import Job
from app.jobs.commands import Id, show_job
from app.jobs.cost_options import CostsOption, OtherCost, costs_request, naming_lines
from app.jobs.request_schemas import AdoptRequest, CompressRequest, Trial, TuneRequest
from app.jobs.schemas import JobResult
from app.models.commands import copy_facts, edition_facts
from app.models.schemas import ModelVersion
from app.plurals import gap_text

_SHOWN = 20


@fields_of(TuneRequest, arguments=["dataset"], leave=["kind", "space", "texts", "costs", "other_cost"])
def tune(
    solver: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Method to try; may be repeated. All options apply to each method."),
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", "-p", metavar="NAME=VALUE", help="Fixed parameter of every trial.")
    ] = None,
    grid: Annotated[
        list[str] | None, typer.Option("--grid", "-g", metavar="NAME=A,B,...", help="Values to try for a parameter.")
    ] = None,
    range_: Annotated[
        list[str] | None,
        typer.Option(
            "--range", metavar="NAME=LOW..HIGH[:log][:whole]", help="Range to draw a parameter from, with --draws."
        ),
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option(metavar="JSON", help='Text recipe to try, for example {"ngram_max": 2}.')
    ] = None,
    space: Annotated[
        Path | None,
        typer.Option(
            help="JSON file with a list of candidates; each has solver, and optionally params, grid and ranges."
        ),
    ] = None,
    costs: CostsOption = None,
    other_cost: OtherCost = None,
    watch: Annotated[bool, typer.Option("--watch", help="Follow the trials until the job ends.")] = False,
    json: Json = False,
    **given: Any,
) -> None:
    """Try settings on held-out rows, and train the best on all rows."""
    candidates = [] if space is None else _file(space)
    varied = {
        "params": dict(_pair(each, "--param", _value) for each in param or ()),
        "grid": dict(_pair(each, "--grid", _values) for each in grid or ()),
        "ranges": dict(_pair(each, "--range", _range) for each in range_ or ()),
    }
    candidates += [{"solver": name, **{part: of for part, of in varied.items() if of}} for name in solver or ()]
    if not candidates:
        raise typer.BadParameter(
            "give a method with --solver, or a file of candidates with --space", param_hint="--solver / --space"
        )
    request = build_request(TuneRequest, given) | {"kind": "tune", "space": candidates}
    if text:
        request["texts"] = [_json(each, "--text") for each in text]
    priced, costs_file = costs_request(costs, other_cost)
    request |= priced
    client = connect()
    with naming_lines(costs_file):
        job = client.jobs.submit(request)
        if watch:
            job = watch_job(job, console(json))
            _show_trials(job, json)
            result = cast(JobResult, job.result)
            version = client.models.version(str(result.model), cast(int, result.version))
            test = {f"test {name}": number(value) for name, value in version.metrics.get("test", {}).items()}
            rows = {"version": version.version, "trial": result.trial, "gap": gap_text(version.gap), **test}
            console(json).print(table(["model", version.model], rows.items()))
    show_job(job, json)


def trials(
    job: Id,
    page_size: Annotated[int, typer.Option(help="Number of trials to show.")] = _SHOWN,
    page_token: Annotated[str | None, typer.Option(help="Token of the previous page.")] = None,
    json: Json = False,
) -> None:
    """Show the leaderboard of a tuning, best first."""
    found = connect().jobs.get(job)
    if json:
        print_json(found.trials(page_size, page_token))
    else:
        _show_trials(found, json, page_size, page_token)


def _show_trials(job: Job, json: bool, page_size: int = _SHOWN, page_token: str | None = None) -> None:
    page, measure, out = job.trials(page_size, page_token), str(job.request["measure"]), console(json)
    items = page.items
    by_solver = {each.solver: [other for other in items if other.solver == each.solver] for each in items}
    same = {solver: _common(trials) for solver, trials in by_solver.items()}
    for solver, params in same.items():
        if params:
            out.print(f"All by {solver} with {_settings(params)}")
    # columns in which trials differ; a terminal has room for few
    columns: dict[str, list[Any]] = {
        "": [each.rank for each in items],
        "trial": [each.number for each in items],
        "round": [each.rung for each in items],
        "solver": [each.solver for each in items],
        "settings": [_settings(_without(each.params, same[each.solver])) for each in items],
        "text": [each.text and each.text.summary() for each in items],
        measure: [_rounded(each.value) for each in items],
        "seconds": [None if each.seconds is None else f"{each.seconds:.1f}" for each in items],
        "epochs": [each.epochs for each in items],
        "gap": [gap_text(each.gap) for each in items],
        "state": [_state(each) for each in items],
    }
    for name in ("round", "text", "state"):
        if len(set(columns[name])) == 1:
            del columns[name]
    out.print(table(list(columns), zip(*columns.values(), strict=True)))
    if page.next_page_token:
        out.print(f"More trials: polymargin jobs trials {job.id} --page-token {page.next_page_token}")


def _common(items: list[Trial]) -> dict[str, Any]:
    """Return the parameters that several trials share."""
    first = items[0].params if len(items) > 1 else {}
    return {name: value for name, value in first.items() if all(each.params.get(name) == value for each in items)}


def _without(params: dict[str, Any], same: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name not in same}


def _rounded(value: float | None) -> str | None:
    return None if value is None else f"{value:.4f}"


def _state(trial: Trial) -> str:
    if trial.error is not None:
        faults = "; ".join(fault.detail for fault in trial.error.errors)
        return f"{trial.state}: {trial.error.detail}" + (f" ({faults})" if faults else "")
    if trial.stopped:
        return "stopped by the budget"
    return "" if trial.state == "succeeded" else trial.state


def _settings(params: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items()) or "-"


def _file(path: Path) -> list[dict[str, Any]]:
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise typer.BadParameter(f"cannot read the file: {error}", param_hint="--space") from None
    return found if isinstance(found, list) else [found]


def _pair(text: str, option: str, read: Any) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign:
        raise typer.BadParameter(f"expected NAME=..., got {text[:80]!r}", param_hint=option)
    return name, read(value)


def _value(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _values(text: str) -> list[Any]:
    try:
        return list(orjson.loads(f"[{text}]"))
    except orjson.JSONDecodeError:
        return [_value(part) for part in text.split(",")]


def _range(text: str) -> dict[str, Any]:
    ends, *flags = text.split(":")
    low, _, high = ends.partition("..")
    try:
        found: dict[str, Any] = {"low": float(low), "high": float(high)}
    except ValueError:
        raise typer.BadParameter(f"expected LOW..HIGH, got {ends[:80]!r}", param_hint="--range") from None
    return found | dict.fromkeys(flags, True)


def _json(text: str, option: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise typer.BadParameter(f"expected JSON, got {text[:80]!r}", param_hint=option) from None


@fields_of(CompressRequest, arguments=["model"], leave=["kind"])
def compress(
    watch: Annotated[bool, typer.Option("--watch", help="Wait for the job and show the accuracy loss.")] = False,
    json: Json = False,
    **given: Any,
) -> None:
    """Create a smaller copy of a version: half precision, pruned weights, or both; its accuracy loss is measured."""
    _derive(build_request(CompressRequest, given) | {"kind": "compress"}, watch, json)


@fields_of(AdoptRequest, arguments=["model", "hierarchy"], leave=["kind"])
def adopt(
    watch: Annotated[bool, typer.Option("--watch", help="Wait for the job and show what changed.")] = False,
    json: Json = False,
    **given: Any,
) -> None:
    """Adopt an edition of a vocabulary without training: a new version also finds the new concepts by their names."""
    _derive(build_request(AdoptRequest, given) | {"kind": "adopt"}, watch, json)


def _derive(request: dict[str, Any], watch: bool, json: bool) -> None:
    """Submit a job that makes a version of another one, and show the new version or the job."""
    client = connect()
    job = client.jobs.submit(request)
    if watch:
        job = watch_job(job, console(json))
        assert job.result is not None
        assert job.result.model is not None
        assert job.result.version is not None
        found = client.models.version(job.result.model, job.result.version)
        print_result(found, table([f"{found.model} {found.version}", ""], _facts(found)), json)
        return
    print_result(job, table(["job", job.id], [("kind", job.kind), ("state", job.state)]), json)


def _facts(version: ModelVersion) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = [("bytes", f"{version.size_bytes:,}")]
    facts += copy_facts(version.copy_of) if version.copy_of else []
    return facts + (edition_facts(version.edition_of) if version.edition_of else [])
