"""The command ``polymargin``."""

import sys
from typing import Annotated

import typer
from pydantic import BaseModel
from typer.main import get_command

from app.client import Polymargin
from app.commands.access.audit import audit
from app.commands.access.keys import keys
from app.commands.access.usage import usage
from app.commands.common.option_names import names_of
from app.commands.common.output import Json, console, fail, print_json, table
from app.commands.datasets.datasets import datasets
from app.commands.datasets.uploads import uploads
from app.commands.evaluations import compare, evaluate, evaluations
from app.commands.exports import export, import_, reproduce
from app.commands.hierarchies import hierarchies
from app.commands.jobs.compression import compress
from app.commands.jobs.jobs import jobs, train
from app.commands.jobs.previews import preview
from app.commands.jobs.tuning import trials, tune
from app.commands.models.deletions import delete, restore, retention, storage, tag
from app.commands.models.models import models
from app.commands.operation import operation, service
from app.commands.operation.status import status
from app.commands.pictures import picture
from app.commands.predictions.batch_predictions import predict_dataset
from app.commands.predictions.codes import code
from app.commands.predictions.drift import drift
from app.commands.predictions.nearest import nearest
from app.commands.predictions.predictions import predict
from app.commands.predictions.terms import terms
from app.commands.predictions.thresholds import thresholds
from app.commands.rules.feedback import feedback
from app.commands.rules.rules import rules
from app.errors import SettingsError
from app.remote.errors import ClientError
from app.version import VERSION

EPILOG = (
    "Environment: POLYMARGIN_URL and POLYMARGIN_API_KEY say which service to talk to (default: the one on this "
    "machine, with the key in POLYMARGIN_HOME/admin.key). POLYMARGIN_HOME, POLYMARGIN_DATABASE_URL and "
    "POLYMARGIN_REDIS_URL say where up, worker and migrate keep their data."
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
models.command()(code)
models.command()(compress)
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
cli.command()(evaluate)
cli.command()(compare)
cli.command()(picture)
cli.command()(reproduce)
cli.add_typer(evaluations, name="evaluations")
cli.add_typer(feedback, name="feedback")
cli.add_typer(uploads, name="uploads")
cli.add_typer(keys, name="keys")
cli.command()(audit)
cli.command()(usage)
cli.add_typer(storage, name="storage")
cli.command()(status)
cli.add_typer(service.corpus, name="corpus")
cli.command()(service.worker)
cli.command()(service.migrate)
cli.command()(operation.backup)
cli.command()(operation.restore)
cli.command()(operation.doctor)


@cli.command()
def solvers(
    name: Annotated[str | None, typer.Argument(help="Show one method's parameters.")] = None, json: Json = False
) -> None:
    """The training methods of the service."""
    with Polymargin() as client:
        found = [solver for solver in client.solvers() if name in (None, solver.name)]
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
    """Whether the service and each of its parts are there; status 1 where one is not."""
    with Polymargin() as client:
        health, found = client.health(), client.readiness()
    if json:
        print_json(found)
    else:
        rows = [("version", health.version), ("database", found.database), ("queue", found.queue)]
        console(json).print(table(["service", client.url], [*rows, ("workers", found.workers)]))


@cli.command()
def version(json: Json = False) -> None:
    """The version of this program."""
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
    """Run the command line; errors of the service and of files end it with status 1 and one line on stderr."""
    try:
        cli(prog_name="polymargin")
    except ClientError as error:
        names = names_of(get_command(cli), sys.argv[1:])
        sys.exit(fail(error.detail, "--json" in sys.argv, error, names))
    except SettingsError as error:
        sys.exit(fail(str(error), "--json" in sys.argv))
    except OSError as error:
        if error.filename is None:
            raise
        sys.exit(fail(f"{error.filename}: {error.strerror}", "--json" in sys.argv))


if __name__ == "__main__":
    main()
