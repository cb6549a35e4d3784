"""``polymargin datasets preview``: what a recipe makes of one row."""

from typing import Annotated, Any

import typer

from app.client import Polymargin
from app.commands.common.output import Json, console, number, print_json, table
from app.commands.common.request_fields import fields_of, request_of
from app.schemas.jobs.previews import PreviewRequest


@fields_of(PreviewRequest, leave=["row"])
def preview(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="Name or id.")],
    row: Annotated[int, typer.Argument(help="Its number, from 0.")] = 0,
    json: Json = False,
    **given: Any,
) -> None:
    """The features that a job's recipe makes of one row, fitted on a sample of the training rows."""
    with Polymargin() as client:
        found = client.datasets.preview(dataset, row, **request_of(PreviewRequest, {"row": None, **given}))
        if json:
            print_json(found)
            return
        (shown,) = client.datasets.rows(dataset, row, 1).rows
    out = console(json)
    labels = shown.labels if shown.label is None else [shown.label]
    out.print(f"row {row}, {', '.join(labels or ['no label'])}", markup=False)
    if shown.text is not None:
        out.print(shown.text, markup=False, highlight=False)
    out.print(f"{found.n_values} of {found.n_features} features, fitted on {found.n_fitted} rows", markup=False)
    out.print(table(["feature", "value"], [(each.feature, number(each.value)) for each in found.features]))
