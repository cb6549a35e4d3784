"""``polymargin usage``: what the workspace has, and may have."""

from app.client import Polymargin
from app.commands.common.output import Json, console, print_json, table


def usage(json: Json = False) -> None:
    """Jobs and bytes of your workspace, and how many it may have."""
    with Polymargin() as client:
        found = client.usage()
    if json:
        print_json(found)
        return
    rows = [
        ("jobs that are not over", f"{found.jobs:,}", _most(found.max_jobs)),
        ("stored bytes", f"{found.stored_bytes:,}", _most(found.max_stored_bytes)),
        ("requests a second of a key", None, _most(found.requests_per_second)),
    ]
    console(json).print(table(["workspace " + found.workspace, "now", "at most"], rows))


def _most(number: float | None) -> str:
    return "any number" if number is None else f"{number:,.15g}"
