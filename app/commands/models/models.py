"""``polymargin models``."""

from typing import Annotated, Any

import typer

from app.client import Polymargin
from app.commands.common.output import Json, console, number, print_json, table
from app.commands.models.copies import copy_facts
from app.remote.errors import ClientError, PreconditionFailedError

models = typer.Typer(help="Look at models and their versions.", no_args_is_help=True)

# of a trial's measures
_LESS_ASKED = {"epochs", "rows"}


@models.command("list")
def list_(json: Json = False) -> None:
    """The newest models."""
    with Polymargin() as client:
        page = client.models.list()
    if json:
        print_json(page)
        return
    rows = [
        (model.name, latest and latest.version, latest and latest.solver, latest and number(latest.gap), aliases)
        for model in page.items
        for latest, aliases in [(model.latest, ", ".join(f"{alias.name}={alias.version}" for alias in model.aliases))]
    ]
    console(json).print(table(["name", "latest", "solver", "gap", "aliases"], rows))


@models.command()
def show(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    version: Annotated[int | None, typer.Option(help="Default: the latest.")] = None,
    json: Json = False,
) -> None:
    """One version of a model: where it came from, how near the optimum it is, how well it does."""
    with Polymargin() as client:
        found = client.models.version(model, version) if version else client.models.get(model).latest
    if found is None:
        raise ClientError(f"The model {model[:80]!r} has no version")
    if json:
        print_json(found)
        return
    values = found.model_dump(
        mode="json", exclude={"request", "metrics", "levels", "params", "report", "copy_of"}, exclude_none=True
    )
    values |= {f"params: {name}": value for name, value in found.params.items()}
    values |= {} if found.copy_of is None else dict(copy_facts(found.copy_of))
    values |= {f"report: {name}": number(value) for name, value in found.report.items()}
    values |= {f"{part}: {name}": number(value) for part, all_ in found.metrics.items() for name, value in all_.items()}
    out = console(json)
    out.print(table(["model", found.model], values.items()))
    for part, levels in found.levels.items():
        names = list(dict.fromkeys(name for level in levels for name in level))
        rows = [(number_, *(number(level.get(name)) for name in names)) for number_, level in enumerate(levels, 1)]
        out.print(table([f"{part}: level", *names], rows))


@models.command()
def trials(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    version: Annotated[int | None, typer.Option(help="Default: the latest.")] = None,
    json: Json = False,
) -> None:
    """What was tried before a version was chosen, the best first, and what it is made of."""
    with Polymargin() as client:
        latest = client.models.get(model).latest if version is None else None
        number_ = version if latest is None else latest.version
        if number_ is None:
            raise ClientError(f"The model {model[:80]!r} has no version")
        found = client.models.selection(model, number_)
    if json:
        print_json(found)
        return
    out = console(json)
    if not found.trials:
        out.print(f"Version {number_} was not chosen among others: its solver and parameters were given.")
        return
    # a terminal has room for few; --json has them all
    names = [name for name in found.trials[0].measures if name not in _LESS_ASKED]
    rows = [
        (f"{trial.solver} {_settings(trial.params)}", *(f"{trial.measures[name]:.4g}" for name in names))
        for trial in found.trials
    ]
    out.print(table(["tried", *names], rows, whole=names))
    members = [
        (f"{each.solver} {_settings(each.params)}", number(each.coefficient), number(each.gap))
        for each in found.members
    ]
    out.print(table(["member", "coefficient", "gap"], members, whole=["coefficient", "gap"]))


@models.command()
def versions(model: Annotated[str, typer.Argument(help="Name or id.")], json: Json = False) -> None:
    """The newest versions of a model."""
    with Polymargin() as client:
        page = client.models.versions(model)
    if json:
        print_json(page)
        return
    rows = [
        (each.version, each.solver, number(each.gap), number(each.metrics.get("test", {}).get("error")),
         ", ".join(each.aliases) or None, _tags(each.tags), f"{each.created_at:%F %T}")
        for each in page.items
    ]  # fmt: skip
    console(json).print(table(["version", "solver", "gap", "test error", "aliases", "tags", "made (UTC)"], rows))


@models.command()
def alias(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    alias: Annotated[str, typer.Argument(help="As production.")],
    version: Annotated[int, typer.Argument(help="The number of the version that it shall name.")],
    revision: Annotated[
        int | None, typer.Option(help="Refuse if the alias has another revision now; 0: if it is there.")
    ] = None,
    json: Json = False,
) -> None:
    """Let an alias name a version: promote, or roll back."""
    with Polymargin() as client:
        try:
            found = client.models.set_alias(model, alias, version, revision or None)
        except PreconditionFailedError:
            if revision is not None:
                raise
            known = {each.name: each.revision for each in client.models.get(model).aliases}
            found = client.models.set_alias(model, alias, version, known.get(alias))
    if json:
        print_json(found)
        return
    rows = [("version", found.version), ("revision", found.revision)]
    console(json).print(table(["alias", found.name], rows))


@models.command()
def unalias(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    alias: Annotated[str, typer.Argument(help="As production.")],
    revision: Annotated[int | None, typer.Option(help="Refuse if it has another revision now.")] = None,
    json: Json = False,
) -> None:
    """Remove an alias; its version stays."""
    with Polymargin() as client:
        client.models.delete_alias(model, alias, revision)
    if json:
        print_json({"deleted": alias})
    else:
        console(json).print(f"Removed {alias}", markup=False)


def _tags(tags: dict[str, str]) -> str | None:
    return ", ".join(f"{name}={value}" for name, value in tags.items()) or None


def _settings(params: dict[str, Any]) -> str:
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in params.items()
    )
