"""Instances on the command line: a text, or JSON as the API takes it."""

from typing import Annotated, Any

import orjson
import typer

Text = Annotated[str | None, typer.Option(help="A text.")]
Instance = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        help="In place of a text: an instance as the API takes it, such as "
        '\'{"record": {"price": 3.5, "colour": "red"}}\'.',
    ),
]


def one_instance(text: str | None, instance: str | None) -> Any:
    """The instance that ``--text`` or ``--instance`` gives; BadParameter where neither or both do."""
    if (text is None) == (instance is None):
        raise typer.BadParameter("give either --text or --instance", param_hint="--text / --instance")
    return text if instance is None else parsed(instance)


def parsed(instance: str) -> Any:
    """What the JSON after ``--instance`` means."""
    try:
        return orjson.loads(instance)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"this is not JSON: {error.msg}", param_hint="--instance") from None
