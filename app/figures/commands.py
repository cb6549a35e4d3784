"""Command picture: write a chart of the dashboard to a file."""

from pathlib import Path
from typing import Annotated

import typer

from app.command_line.connection import connect
from app.command_line.output import console


def picture(
    figure: Annotated[
        str,
        typer.Argument(help="job, tuning, reliability, confusions, thresholds, classes, spread, code, drift or path."),
    ],
    output: Annotated[Path, typer.Argument(dir_okay=False, help="File to write, .svg or .png.")],
    job: Annotated[str | None, typer.Option(help="Job id, for job and tuning.")] = None,
    evaluation: Annotated[str | None, typer.Option(help="Evaluation id, for reliability and confusions.")] = None,
    level: Annotated[int | None, typer.Option(help="Level of the label tree, for confusions.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Dataset name or id, for classes and spread.")] = None,
    of: Annotated[
        str | None,
        typer.Option(
            help="For spread: lengths, labels, features or overlap. For tuning: time or settings. For job: "
            "convergence or trials."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model name or id, for thresholds, code, drift and path.")] = None,
    version: Annotated[int | None, typer.Option(help="Version of the model.")] = None,
) -> None:
    """Write a chart of the dashboard to a file."""
    named = {"job": job, "evaluation": evaluation, "level": level, "dataset": dataset, "model": model}
    named |= {"version": version, "of": of}
    format_ = "png" if output.suffix == ".png" else "svg"
    output.write_bytes(connect().picture(figure, format_, **{name: at for name, at in named.items() if at is not None}))
    console(False).print(f"Wrote {output}", markup=False)
