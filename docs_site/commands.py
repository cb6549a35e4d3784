"""The reference of the command line, from the commands themselves."""

from collections.abc import Iterator
from typing import Any

import typer

from app.cli import cli
from docs_site.markdown import table

PROGRAM = "polymargin"


def commands() -> str:
    """Markdown: a section for each command, with its arguments and options."""
    return "\n".join(_section(name, command) for name, command in walk())


def walk() -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its full name."""
    yield from _walk(PROGRAM, typer.main.get_command(cli))


def parameters(command: Any) -> list[Any]:
    """A command's arguments and options, those that every command has left out."""
    return [parameter for parameter in command.params if parameter.name not in ("help", "json")]


def usage(name: str, command: Any) -> str:
    """One line: the command, its arguments, and whether it has options."""
    chosen = parameters(command)
    arguments = [_argument(one) for one in chosen if one.param_type_name == "argument"]
    options = ["[OPTIONS]"] if any(one.param_type_name == "option" for one in chosen) else []
    return " ".join([name, *options, *arguments])


def _walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for part, child in inner.items():
        yield from _walk(f"{name} {part}", child)


def _section(name: str, command: Any) -> str:
    rows = [(_names(one), one.help or "", _default(one)) for one in parameters(command)]
    drawn = table(("argument or option", "meaning", "default"), rows) if rows else ""
    title = name.removeprefix(f"{PROGRAM} ")
    return f"### {title}\n\n{(command.help or '').strip()}\n\n```text\n{usage(name, command)}\n```\n\n{drawn}"


def _argument(argument: Any) -> str:
    shown = str(argument.metavar or argument.name.upper())
    return shown if argument.required else f"[{shown}]"


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{_argument(parameter)}`"
    names = ", ".join(f"`{name}`" for name in sorted(parameter.opts, key=len))
    if parameter.secondary_opts:
        return names + ", " + ", ".join(f"`{name}`" for name in parameter.secondary_opts)
    return names if parameter.is_flag else f"{names} `{parameter.metavar or parameter.name.upper()}`"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    default = parameter.default
    if default is None or isinstance(default, bool) or default == ():
        return ""
    return f"`{default}`"
