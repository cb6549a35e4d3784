"""Commands that run the service on this machine: up, api, worker, migrate, corpus and demo."""

# These commands load numba, scikit-learn, SQLAlchemy and the rest of the service, which takes seconds. They import it
# when they are called, so that `polymargin --help` and every command that only talks to a service answer at once.

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from app.command_line.output import Json, console, fail, print_json, print_result, table
from app.remote.errors import ClientError

corpus = typer.Typer(help="Create example data.", no_args_is_help=True)


def up(
    host: Annotated[str, typer.Option(help="Address to bind to.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 selects a free port.", min=0, max=65535)] = 8000,
    workers: Annotated[int, typer.Option(help="Number of jobs to run at the same time.", min=1)] = 1,
    shards: Annotated[
        int, typer.Option(help="Number of worker pools for sharded jobs; one process each.", min=0, max=64)
    ] = 0,
    api: Annotated[int, typer.Option(help="Number of API processes; all listen on the port.", min=1, max=64)] = 1,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show the output of every part.")] = False,
) -> None:
    """Run the whole service on this machine: database, queue, workers and API."""
    from app.operation.embedded import up as run
    from app.operation.supervisor import SupervisorError

    out = console(False)
    try:
        run(host, port, workers, verbose, lambda line: out.print(line, markup=False), shards, api)
    except SupervisorError as error:
        raise typer.Exit(fail(str(error), False)) from None


def api(
    host: Annotated[str, typer.Option(help="Address to bind to.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8000,
    processes: Annotated[int, typer.Option(help="Number of processes that listen on the port.", min=1, max=64)] = 1,
    graceful_seconds: Annotated[int, typer.Option(help="Time limit for open requests after SIGTERM.", min=1)] = 10,
    drain_seconds: Annotated[
        int, typer.Option(help="Time after SIGTERM in which requests are answered and health checks fail.", min=0)
    ] = 0,
) -> None:
    """Run the API against POLYMARGIN_DATABASE_URL and POLYMARGIN_REDIS_URL."""
    # Replaced by the server, and not its parent: signals and process managers then see one process.
    arguments = ["-P", "-m", "app.server", "--host", host, "--port", str(port), "--processes", str(processes)]
    arguments += ["--graceful-seconds", str(graceful_seconds), "--drain-seconds", str(drain_seconds)]
    os.execv(sys.executable, [sys.executable, *arguments])


def worker(
    queue: Annotated[
        str, typer.Option(help="general, or the queue of one shard's pool: shard-0, shard-1, ...")
    ] = "general",
    concurrency: Annotated[int, typer.Option(help="Number of jobs to run at the same time.", min=1)] = 1,
) -> None:
    """Run a worker process against POLYMARGIN_DATABASE_URL and POLYMARGIN_REDIS_URL."""
    # Replaced by the worker, and not its parent: signals and process managers then see one process.
    arguments = ["-P", "-m", "workers.main", "--queue", queue, "--concurrency", str(concurrency)]
    os.execv(sys.executable, [sys.executable, *arguments])


def migrate(json: Json = False) -> None:
    """Migrate the database; the first run writes an administrator's key to POLYMARGIN_HOME/admin.key."""
    from app.operation.embedded import prepare
    from app.operation.supervisor import SupervisorError

    try:
        prepare()
    except SupervisorError as error:
        raise typer.Exit(fail(str(error), json)) from None
    print_result({"migrated": True}, "The database is up to date", json)


def demo(
    folder: Annotated[Path, typer.Option(help="Data folder of the demonstration.")] = Path("var/demo"),
    json: Json = False,
) -> None:
    """Train and query a docstring classifier on this machine and compare it to scikit-learn, in about a minute."""
    from app.operation.demo import DemoError, demonstrate
    from app.operation.supervisor import SupervisorError

    out = console(json)
    try:
        document = demonstrate(folder, lambda line: out.print(line, markup=False))
    except (ClientError, SupervisorError, DemoError) as error:
        out.print(f"The demonstration failed: {error}", markup=False)
        raise typer.Exit(1) from None
    if json:
        print_json(document)


@corpus.command()
def docstrings(
    output: Annotated[Path, typer.Option(help="JSON lines file to write.")] = Path("docstrings.jsonl"),
    json: Json = False,
) -> None:
    """Write labelled texts from the docstrings of the installed Python packages."""
    from app.operation.corpus import write_docstrings

    summary = write_docstrings(output)
    print_result({"path": str(output), **summary}, table(["corpus", str(output)], summary.items()), json)
