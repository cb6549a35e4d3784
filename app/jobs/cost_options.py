"""The options of commands whose requests have costs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from app.jobs.cost_files import CostFile, read_costs
from app.remote.errors import ClientError

CostsOption = Annotated[
    str | None,
    typer.Option(
        "--costs",
        metavar="FILE|tree",
        help="What wrong answers cost: a CSV file with the columns label, answer and cost, or tree for distances in "
        "the label tree.",
    ),
]
OtherCost = Annotated[
    float | None, typer.Option("--other-cost", help="Cost of a wrong answer that the file leaves out. Default: 1.")
]


def costs_request(costs: str | None, other_cost: float | None) -> tuple[dict[str, Any], CostFile | None]:
    """What the options add to a request, and the file of costs, if there is one.

    Raises typer.BadParameter, with the line, where the file is faulty.
    """
    table = None
    if costs not in (None, "tree"):
        try:
            table = read_costs(Path(str(costs)))
        except (OSError, ValueError) as error:
            raise typer.BadParameter(f"{costs}: {error}", param_hint="--costs") from None
    given = {"costs": costs if table is None else table.table, "other_cost": other_cost}
    return {name: value for name, value in given.items() if value is not None}, table


@contextmanager
def naming_lines(table: CostFile | None) -> Iterator[None]:
    """Give faults of a table of costs their lines in the file."""
    try:
        yield
    except ClientError as error:
        for fault in error.errors:
            if table is not None and (fault.pointer or "").removeprefix("/params").startswith("/costs"):
                fault.detail = f"--costs, {table.place(fault.detail)}"
        raise
