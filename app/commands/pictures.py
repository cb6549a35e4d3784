"""``polymargin picture``: what the dashboard draws, as a file."""

from pathlib import Path
from typing import Annotated

import typer

from app.client import Polymargin
from app.commands.common.output import console


def picture(
    figure: Annotated[
        str, typer.Argument(help="job, tuning, reliability, confusions, thresholds, classes, spread, code or drift.")
    ],
    output: Annotated[Path, typer.Argument(dir_okay=False, help="A file to write: .svg or .png.")],
    job: Annotated[str | None, typer.Option(help="Of job and tuning: its id.")] = None,
    evaluation: Annotated[str | None, typer.Option(help="Of reliability and confusions: its id.")] = None,
    level: Annotated[int | None, typer.Option(help="Of confusions: the level of the label tree.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Of classes and spread: name or id.")] = None,
    of: Annotated[
        str | None,
        typer.Option(
            help="Of spread: lengths, labels, features or overlap; of tuning: time or settings; of job: convergence "
            "or trials."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Of thresholds, code and drift: name or id.")] = None,
    version: Annotated[int | None, typer.Option(help="Of the model.")] = None,
) -> None:
    """Draw a picture of the dashboard into a file."""
    named = {"job": job, "evaluation": evaluation, "level": level, "dataset": dataset, "model": model}
    named |= {"version": version, "of": of}
    with Polymargin() as client:
        format_ = "png" if output.suffix == ".png" else "svg"
        output.write_bytes(
            client.picture(figure, format_, **{name: at for name, at in named.items() if at is not None})
        )
    console(False).print(f"Wrote {output}", markup=False)
