"""The command ``polymargin``."""

import errno
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel
from typer.main import get_command

from app.access.commands import audit, keys, login, logout, usage
from app.command_line.connection import connect, disconnect
from app.command_line.option_names import names_of
from app.command_line.output import Json, console, fail, print_json, table
from app.curation.commands import suggest_rows, wrong_labels
from app.datasets.commands import datasets, uploads
from app.errors import SettingsError
from app.evaluations.commands import compare, evaluate, evaluations
from app.exports.commands import export, import_, reproduce
from app.figures.commands import picture
from app.hierarchies.commands import hierarchies
from app.jobs.commands import jobs, preview, train
from app.jobs.tuning_commands import adopt, compress, trials, tune
from app.models.commands import delete, models, restore, retention, storage, tag
from app.operation import commands as operation
from app.operation import service_commands as service
from app.operation.commands import status
from app.predictions.commands import code_file, predict, predict_dataset
from app.predictions.inspection_commands import code, drift, nearest, terms, thresholds
from app.remote.errors import ClientError
from app.reviews.commands import reviews
from app.rules.commands import feedback, rules
from app.version import VERSION
from app.webhooks.commands import webhooks

EPILOG = (
    "Environment: POLYMARGIN_URL and POLYMARGIN_API_KEY select the service and the key (default: the service that you "
    "signed in to with login, or the service on this machine with the key in POLYMARGIN_HOME/admin.key). "
    "POLYMARGIN_HOME, POLYMARGIN_DATABASE_URL and POLYMARGIN_REDIS_URL set where up, worker and migrate store data."
)

cli = typer.Typer(
    help="Train and serve large-margin classifiers for many classes.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
cli.command()(service.up)
cli.command()(service.demo)
datasets.command()(preview)
cli.add_typer(datasets, name="datasets")
cli.add_typer(hierarchies, name="hierarchies")
cli.command()(train)
cli.command()(tune)
jobs.command()(trials)
cli.add_typer(jobs, name="jobs")
cli.add_typer(rules, name="rules")
cli.add_typer(webhooks, name="webhooks")
cli.add_typer(reviews, name="reviews")
models.command()(code)
models.command()(compress)
models.command()(adopt)
models.command()(drift)
models.command()(nearest)
models.command()(terms)
models.command()(thresholds)
models.command()(export)
models.command("import")(import_)
models.command()(delete)
models.command()(restore)
models.command()(tag)
models.command()(retention)
cli.add_typer(models, name="models")
cli.command()(predict)
cli.command()(predict_dataset)
cli.command("code")(code_file)
cli.command()(suggest_rows)
cli.command()(wrong_labels)
cli.command()(evaluate)
cli.command()(compare)
cli.command()(picture)
cli.command()(reproduce)
cli.add_typer(evaluations, name="evaluations")
cli.add_typer(feedback, name="feedback")
cli.add_typer(uploads, name="uploads")
cli.command()(login)
cli.command()(logout)
cli.add_typer(keys, name="keys")
cli.command()(audit)
cli.command()(usage)
cli.add_typer(storage, name="storage")
cli.command()(status)
cli.add_typer(service.corpus, name="corpus")
cli.command()(service.api)
cli.command()(service.worker)
cli.command()(service.migrate)
cli.command()(operation.backup)
cli.command()(operation.restore)
cli.command()(operation.move_files)
cli.command()(operation.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(VERSION)
        raise typer.Exit


@cli.callback()
def begin(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """What every command does."""
    context.call_on_close(disconnect)


@cli.command()
def solvers(
    name: Annotated[str | None, typer.Argument(help="Show one method's parameters.")] = None, json: Json = False
) -> None:
    """List the training methods of the service."""
    found = [solver for solver in connect().solvers() if name in (None, solver.name)]
    if not found:
        raise ClientError(f"The service has no solver {(name or '')[:80]!r}")
    if json:
        chosen: BaseModel | dict[str, list[BaseModel]] = found[0] if name else {"items": [*found]}
        print_json(chosen)
    elif name is None:
        console(json).print(table(["name", "title"], [(solver.name, solver.title) for solver in found]))
    else:
        properties = found[0].params_schema.get("properties", {})
        rows = [(key, value.get("default"), value.get("description")) for key, value in properties.items()]
        out = console(json)
        out.print(f"{found[0].title}\n{found[0].paper}\n\n{found[0].summary}\n", markup=False)
        out.print(table(["parameter", "default", "meaning"], rows))


@cli.command()
def ready(json: Json = False) -> None:
    """Check whether the service is ready; exit with status 1 if database, queue or workers are not.

    Object storage (files) is shown, too. The service is ready without it: models in memory answer.
    """
    client = connect()
    health, found = client.health(), client.readiness()
    if json:
        print_json(found)
    else:
        rows = [("version", health.version), ("database", found.database), ("queue", found.queue)]
        rows += [("workers", found.workers), ("files", found.storage)]
        console(json).print(table(["service", client.url], rows))


@cli.command()
def version(json: Json = False) -> None:
    """Print the version of this program."""
    if json:
        print_json({"version": VERSION})
    else:
        console(json).print(VERSION)


# Lists of commands show the whole first line, which would else be cut off where the line ends.
for group in cli.registered_groups:
    group.short_help = group.typer_instance.info.help if group.typer_instance else None
for commands in (cli, *(group.typer_instance for group in cli.registered_groups if group.typer_instance)):
    for command in commands.registered_commands:
        command.short_help = (command.callback.__doc__ or "").partition("\n\n")[0] if command.callback else None


def main() -> None:
    """Run the command line; service and file errors exit with status 1 and print one line on stderr."""
    try:
        cli(prog_name="polymargin")
    except ClientError as error:
        names = names_of(get_command(cli), sys.argv[1:])
        sys.exit(fail(error.detail, "--json" in sys.argv, error, names))
    except SettingsError as error:
        sys.exit(fail(str(error), "--json" in sys.argv))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in ("app", "polymargin", "solvers", "workers"):
            raise
        text = f"This command runs the service, which needs {error.name}: pip install 'polymargin[embedded]'"
        sys.exit(fail(text, "--json" in sys.argv))
    except OSError as error:
        name = error.filename2 or error.filename  # of copies the second is written
        if name is None and error.errno != errno.ENOSPC:
            raise
        sys.exit(fail(f"{name or 'a file'}: {error.strerror}{_room(error, name)}", "--json" in sys.argv))


def _room(error: OSError, name: str | None) -> str:
    """Of a full disk, how much is free; of an unnamed file on the disk of the working folder."""
    if error.errno != errno.ENOSPC:
        return ""
    folder = next(each for each in Path(name or "x").absolute().parents if each.is_dir())
    return f"; {shutil.disk_usage(folder).free:,} bytes are free in {folder}"


if __name__ == "__main__":
    main()
