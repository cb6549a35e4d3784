"""Commands: models, versions, aliases and deletions."""

import sys
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from app.command_line.connection import connect
from app.command_line.output import Json, console, number, option, print_json, print_result, table
from app.command_line.request_fields import build_request, fields_of
from app.datasets.recipe_schemas import TextRecipe
from app.jobs.request_schemas import CopyOf, EditionOf
from app.models.schemas import (
    HeldVersion,
    LeftOut,
    Member,
    ModelAbout,
    ModelVersion,
    PathOverC,
    RetentionRule,
    SelectionTrial,
    Storage,
    VersionPatch,
)
from app.plurals import gap_text
from app.remote.errors import ClientError, PreconditionFailedError

_MOST_LETTERS = 200


def copy_facts(copy: CopyOf) -> list[tuple[str, object]]:
    """Names and values, in words."""
    return [
        ("copy of version", copy.version),
        ("its bytes", f"{copy.size_bytes:,}"),
        ("half precision", "yes" if copy.float16 else "no"),
        ("weights set to zero", f"{copy.pruned:,} of {copy.weights:,}"),
        ("memory", f"{copy.memory_bytes:,} bytes instead of {copy.memory_bytes_source:,}"),
        ("measured on", f"{copy.n_rows:,} rows, part {copy.part}"),
        ("same first label", f"{copy.agreement:.2%} of them"),
        ("error", f"{number(copy.error)} instead of {number(copy.error_source)}"),
        ("95% interval of the accuracy loss", f"{copy.loss_low:.3g} to {copy.loss_high:.3g}"),
        ("McNemar, exact p", number(copy.mcnemar.exact)),
        (
            "certificate",
            "none of its own" + ("" if copy.gap is None else f"; the source's gap is {gap_text(copy.gap)}"),
        ),
    ]


def edition_facts(edition: EditionOf) -> list[tuple[str, object]]:
    """Names and values, in words."""
    return [
        ("adopted by version", edition.version),
        ("new concepts", f"{edition.appeared:,}, found by name"),
        ("concepts gone", f"{edition.gone:,} that nothing replaces"),
        ("concepts merged", f"{edition.merged:,} that share a successor"),
        ("measured on", f"{edition.n_rows:,} rows, part {edition.part}"),
        ("same first concept", f"{edition.agreement:.2%} of them"),
        ("nDCG@10", f"{number(edition.ndcg)} instead of {number(edition.ndcg_source)}"),
        ("95% interval of the gain", f"{edition.gain_low:.3g} to {edition.gain_high:.3g}"),
        ("certificate", "that of the source" + ("" if edition.gap is None else f", with gap {gap_text(edition.gap)}")),
    ]


models = typer.Typer(help="Manage models and versions.", no_args_is_help=True)

# of a trial's measures
_LESS_ASKED = {"epochs", "rows"}


@models.command("list")
def list_(json: Json = False) -> None:
    """List the newest models."""
    page = connect().models.list()
    rows = [
        (model.name, latest and latest.version, latest and latest.solver, _result(latest), aliases)
        for model in page.items
        for latest, aliases in [(model.latest, ", ".join(f"{alias.name}={alias.version}" for alias in model.aliases))]
    ]
    column = _column(model.latest for model in page.items if model.latest is not None)
    print_result(page, table(["name", "latest", "solver", column, "aliases"], rows), json)


def _are_sets(version: ModelVersion) -> bool:
    return "symmetric_difference" in version.metrics.get("test", {})


def _column(versions: Iterable[ModelVersion]) -> str:
    return "test error or micro F1" if any(map(_are_sets, versions)) else "test error"


def _tested(version: ModelVersion) -> str | None:
    """Return the error on test rows; of sets F1, as a set is wrong where any label is."""
    sets = _are_sets(version)
    found = version.metrics.get("test", {}).get("micro_f1" if sets else "error")
    return None if found is None else f"F1 {found:.3f}" if sets else f"{found:.1%}"


def _result(version: ModelVersion | None) -> str | None:
    tested = None if version is None else _tested(version)
    return tested if version is None or tested is None or version.unconverged is None else f"{tested}, not converged"


@models.command()
def show(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    version: Annotated[int | None, typer.Option(help="Default: the latest.")] = None,
    json: Json = False,
) -> None:
    """Show one version of a model: origin, certificate and measures."""
    client = connect()
    found = client.models.version(model, version) if version else client.models.get(model).latest
    if found is None:
        raise ClientError(f"The model {model[:80]!r} has no version")
    values = found.model_dump(
        mode="json",
        exclude={"request", "metrics", "levels", "params", "report", "copy_of", "edition_of"},
        exclude_none=True,
    )
    if recipe := found.request.get("text"):
        values["text features"] = TextRecipe.model_validate(recipe).summary()
    values |= {f"params: {name}": _cut(value) for name, value in found.params.items()}
    values |= {} if found.copy_of is None else dict(copy_facts(found.copy_of))
    values |= {} if found.edition_of is None else dict(edition_facts(found.edition_of))
    values |= {f"report: {name}": number(value) for name, value in found.report.items()}
    values |= {f"{part}: {name}": number(value) for part, all_ in found.metrics.items() for name, value in all_.items()}
    shown = [table(["model", found.model], values.items())]
    for part, levels in found.levels.items():
        names = list(dict.fromkeys(name for level in levels for name in level))
        rows = [(number_, *(number(level.get(name)) for name in names)) for number_, level in enumerate(levels, 1)]
        shown.append(table([f"{part}: level", *names], rows))
    print_result(found, shown, json)


def _cut(value: Any) -> Any:
    """A parameter's value, or the beginning of its text if that is long, as that of a table of costs."""
    text = str(value)
    return (
        value if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}... ({len(text):,} characters; --json has all)"
    )


@models.command()
def trials(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    version: Annotated[int | None, typer.Option(help="Default: the latest.")] = None,
    json: Json = False,
) -> None:
    """List the trials of the model selection, best first, and the members of the chosen model."""
    client = connect()
    latest = client.models.get(model).latest if version is None else None
    number_ = version if latest is None else latest.version
    if number_ is None:
        raise ClientError(f"The model {model[:80]!r} has no version")
    found = client.models.selection(model, number_)
    if json:
        print_json(found)
        return
    out = console(json)
    if found.unknown_labels:
        out.print(table(["label missing from the hierarchy", "rows"], list(found.unknown_labels.items())))
    if found.path is not None:
        _print_path(out, found.path)
        return
    if not found.trials:
        out.print(f"Version {number_} has no trials: its solver and parameters were given.")
        return
    # a terminal has room for few; --json has them all
    names = [name for name in found.trials[0].measures if name not in _LESS_ASKED]
    rows = [(_setting(trial), *(f"{trial.measures[name]:.4g}" for name in names)) for trial in found.trials]
    out.print(table(["tried", *names], rows, whole=names))
    members = [(_setting(each), number(each.coefficient), gap_text(each.gap)) for each in found.members]
    out.print(table(["member", "coefficient", "gap"], members, whole=["coefficient", "gap"]))
    if found.left_out:
        left = [(_setting(each), each.reason) for each in found.left_out]
        out.print(table(["left out", "reason"], left))


def _print_path(out: Console, path: PathOverC) -> None:
    """Print the solutions of a path over all C, and what is certain at every C."""
    edges = path.edges
    errors = dict(zip(edges, path.errors, strict=True))
    rows = [
        (f"{each.C:.4g}", f"{each.primal:.6g}", f"{each.loss:.4g}", each.epochs, errors.get(each.C, ""))
        for each in path.models
    ]
    names = ["C", "objective", "training loss", "epochs", "errors"]
    out.print(table(names, rows, whole=names))
    n, chosen = path.n_held_out, path.chosen
    out.print(f"C = {chosen.C:.4g} has {chosen.errors} errors on {n} held-out rows, the fewest of the path.")
    out.print(f"Every C from {edges[0]:.4g} to {edges[-1]:.4g} has a model within a gap of {path.largest_gap:.2%}.")
    if path.bound:
        out.print(f"No C of this range has an optimum with fewer than {path.bound} errors on these rows.")
    if path.excluded:
        share = f"{100 * path.excluded:.3g}%"
        out.print(f"For {share} of the range, by log C, no optimum has fewer errors than the chosen model.")
    if not path.bound and not path.excluded:
        out.print(
            "With these gaps, the optimum of any C may have fewer errors on these rows. An --every-c-eps below "
            f"{path.eps:.3g} decides more rows."
        )


@models.command()
def versions(model: Annotated[str, typer.Argument(help="Name or id.")], json: Json = False) -> None:
    """List the newest versions of a model."""
    page = connect().models.versions(model)
    rows = [
        (each.version, each.solver, _gap(each), _tested(each),
         ", ".join(each.aliases) or None, _tags(each.tags), f"{each.created_at:%F %T}")
        for each in page.items
    ]  # fmt: skip
    columns = ["version", "solver", "gap", _column(page.items), "aliases", "tags", "made (UTC)"]
    print_result(page, table(columns, rows), json)


@models.command()
def alias(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    alias: Annotated[str, typer.Argument(help="For example production.")],
    version: Annotated[int, typer.Argument(help="Version number.")],
    revision: Annotated[
        int | None, typer.Option(help="Fail unless the alias has this revision; 0: fail if it exists.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask for confirmation if the version has not converged.")
    ] = False,
    json: Json = False,
) -> None:
    """Set an alias to a version: promote or roll back."""
    client = connect()
    asks = not yes and sys.stdin.isatty()
    if asks and (reason := client.models.version(model, version).unconverged) is not None:
        typer.confirm(f"Version {version} has not converged: {reason} Set {alias} to it?", abort=True, err=True)
    try:
        found = client.models.set_alias(model, alias, version, revision or None)
    except PreconditionFailedError:
        if revision is not None:
            raise
        known = {each.name: each.revision for each in client.models.get(model).aliases}
        found = client.models.set_alias(model, alias, version, known.get(alias))
    if found.unconverged is not None and not asks:
        typer.echo(f"Version {version} has not converged: {found.unconverged}", err=True)
    rows = [("version", found.version), ("revision", found.revision)]
    print_result(found, table(["alias", found.name], rows), json)


@models.command()
def unalias(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    alias: Annotated[str, typer.Argument(help="For example production.")],
    revision: Annotated[int | None, typer.Option(help="Fail unless it has this revision.")] = None,
    json: Json = False,
) -> None:
    """Remove an alias; the version remains."""
    connect().models.delete_alias(model, alias, revision)
    print_result({"deleted": alias}, f"Removed {alias}", json)


def _gap(version: ModelVersion) -> str | None:
    gap = gap_text(version.gap)
    return gap if version.unconverged is None else f"{gap or '-'}, not converged"


def _tags(tags: dict[str, str]) -> str | None:
    return ", ".join(f"{name}={value}" for name, value in tags.items()) or None


def _setting(tried: SelectionTrial | Member | LeftOut) -> str:
    sketch = None if isinstance(tried, Member) else tried.sketch
    kinds = (" without the tree" if tried.flat else "") + (f", on some of the {sketch}" if sketch else "")
    return f"{tried.solver} {_settings(tried.params)}{kinds}"


def _settings(params: dict[str, Any]) -> str:
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in params.items()
    )


storage = typer.Typer(help="Show and free disk space (administrators only).", no_args_is_help=True)

Model = Annotated[str, typer.Argument(help="Name or id.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted, without deleting it.")]


def delete(
    model: Model,
    version: Annotated[int | None, typer.Option(help="Default: all versions.")] = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Delete a version, or a model with all versions; they can be restored for some time."""
    found = connect().models.delete(model, version, dry_run)
    values = {
        "versions": ", ".join(map(str, found.versions)),
        "evaluations": found.evaluations,
        "bytes": f"{found.size_bytes:,}",
        "restorable until (UTC)": f"{found.restorable_until:%F %T}",
    }
    title = "would delete" if found.dry_run else "deleted"
    print_result(found, [table([title, found.model], values.items()), _held(found.held)], json)


def restore(
    model: Model,
    version: Annotated[int | None, typer.Option(help="Default: the versions deleted last.")] = None,
    json: Json = False,
) -> None:
    """Restore deleted versions."""
    found = connect().models.restore(model, version)
    print_result(found, f"Restored {found.model} version {', '.join(map(str, found.versions))}", json)


def tag(
    model: Model,
    version: Annotated[int, typer.Argument(help="Number.")],
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Tag to set.")] = None,
    unset: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Tag to remove.")] = None,
    notes: Annotated[str | None, option(VersionPatch, "notes")] = None,
    revision: Annotated[int | None, typer.Option(help="Fail unless it has this revision.")] = None,
    json: Json = False,
) -> None:
    """Set tags and notes of a version."""
    tags: dict[str, str | None] = dict.fromkeys(unset or ())
    for text in set_ or ():
        name, sign, value = text.partition("=")
        if not sign:
            raise typer.BadParameter(f"expected NAME=VALUE, got {text[:80]!r}", param_hint="--set")
        tags[name] = value
    found = connect().models.change(model, version, tags or None, notes, revision)
    rows = [*found.tags.items(), ("notes", found.notes or None), ("revision", found.revision)]
    print_result(found, table([f"{found.model} {found.version}", ""], rows), json)


@models.command()
@fields_of(ModelAbout)
def describe(model: Model, json: Json = False, **given: Any) -> None:
    """Say what a model is for; its page and its model cards show it. What is not given stays; "" removes a field."""
    about = build_request(ModelAbout, given)
    client = connect()
    found = client.models.describe(model, **about) if about else client.models.get(model)
    rows = [(name.replace("_", " "), value) for name, value in (found.about.stored or {}).items()]
    print_result(found, table([found.name, ""], rows), json)


def retention(
    model: Model,
    keep_last: Annotated[int | None, option(RetentionRule, "keep_last", min=1)] = None,
    keep_all: Annotated[bool, typer.Option("--keep-all", help="Keep all versions.")] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Show or set the number of versions to keep."""
    if keep_all and keep_last is not None:
        raise typer.BadParameter("give one of them", param_hint="--keep-last / --keep-all")
    client = connect()
    if keep_all or keep_last is not None:
        found = client.models.set_retention(model, keep_last, dry_run)
    else:
        found = client.models.retention(model)
    kept = "all versions" if found.keep_last is None else f"the last {found.keep_last}"
    rows = [("keeps", kept), ("goes", ", ".join(map(str, found.goes)) or None)]
    print_result(found, [table(["model", found.model], rows), _held(found.held)], json)


@storage.command("show")
def deletions_show(json: Json = False) -> None:
    """Show the files that the next collection removes, and their size."""
    _show_storage(connect().storage.report(), json)


@storage.command()
def collect(
    deleted: Annotated[
        bool,
        typer.Option(
            "--deleted", help="Also remove deleted versions that can still be restored. This cannot be undone."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Remove the files that `storage show` lists now."""
    _show_storage(connect().storage.collect(deleted), json)


def _held(held: list[HeldVersion]) -> Table | None:
    return table(["held version", "why"], [(each.version, each.reason) for each in held]) if held else None


def _show_storage(found: Storage, json: bool) -> None:
    title = "removed" if found.collected else "goes"
    rows: list[tuple[object, ...]] = [
        (title, f"{each.model} version {each.version}", f"{each.size_bytes:,}", None) for each in found.versions
    ]
    rows += [(title, each.path, f"{each.size_bytes:,}", None) for each in found.orphans]
    rows += [
        ("restorable", f"{each.model} version {each.version}", f"{each.size_bytes:,}", f"{each.restorable_until:%F %T}")
        for each in found.restorable
    ]
    freed = f"{found.size_bytes:,} bytes {'were' if found.collected else 'can be'} freed; {found.free_bytes:,} are free"
    print_result(found, [table(["", "what", "bytes", "until (UTC)"], rows), freed], json)
