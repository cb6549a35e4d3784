"""Instances on the command line: a text or JSON."""

from typing import Annotated, Any

import orjson
import typer

Text = Annotated[str | None, typer.Option(help="Text.")]
Instance = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        help='Instance as JSON, instead of a text, such as \'{"record": {"price": 3.5, "colour": "red"}}\'.',
    ),
]


def one_instance(text: str | None, instance: str | None) -> Any:
    """Return the instance of ``--text`` or ``--instance``; BadParameter unless exactly one is given."""
    if (text is None) == (instance is None):
        raise typer.BadParameter("give exactly one of --text and --instance", param_hint="--text / --instance")
    return text if instance is None else parsed(instance)


def parsed(instance: str) -> Any:
    """Parse the JSON of ``--instance``."""
    try:
        return orjson.loads(instance)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"invalid JSON: {error.msg}", param_hint="--instance") from None
