"""Rewrites the service's field names in messages as command line options: `--label-column` for `label_column`."""

import re
from collections.abc import Collection, Sequence
from typing import Any

from app.hierarchies.schemas import HierarchyOptions

# what is in quotes is the user's data; then NAME=value, names that are no words, and words beside such names
_NAMED = re.compile(
    r"'[^']*'|\b(?P<set>[a-z][a-z_]*)=(?P<value>\w+)\b"
    r"|\b(?P<bare>[a-z]+(?:_[a-z]+)+|[a-z]+[0-9]+|[a-z]+(?= (?:and|or) [a-z]+_[a-z]))\b"
)
# of a tuning's space, which options make where no file has it
_SPACE = re.compile(r"/space/\d+/(?P<part>grid|ranges|params)/(?P<name>[^/]+)")
# of corrections, which are the lines of a file, or one row with its labels
_CORRECTION = re.compile(r"/corrections(?:/(?P<at>\d+)/(?P<name>row|id|text|labels))?")
# models within requests, whose fields are named without them
_RECIPES = ("text", "columns")
_COSTS = ("costs", "other_cost")
_PARTS = {"grid": "--grid", "ranges": "--range", "params": "--param"}


class OptionNames:
    """The options of a command.

    Parameters
    ----------
    fields : collection of str
        Of the service, for which the command has an option of the same name.
    arguments : collection of str
        Those for which it has an argument.
    others : collection of str
        Those that ``--option NAME=VALUE`` sets.
    spaces : bool
        Options make the space of a tuning.
    lines : bool
        Lines of ``--file`` are what is corrected.
    """

    def __init__(
        self,
        fields: Collection[str],
        arguments: Collection[str] = (),
        others: Collection[str] = (),
        *,
        spaces: bool = False,
        lines: bool = False,
    ) -> None:
        self._fields, self._arguments, self._spaces = frozenset(fields), frozenset(arguments), spaces
        self._lines = lines
        self._others = frozenset(others) - self._fields

    def said(self, text: str) -> str:
        """A message with options in the places of fields; parameters of methods keep their names."""
        return _NAMED.sub(self._replaced, text)

    def place(self, pointer: str) -> str:
        """What a pointer into the request is of: an option or an argument; itself where it is of neither."""
        if pointer.startswith("/space/"):
            varied = _SPACE.match(pointer) if self._spaces else None
            return pointer if varied is None else f"{_PARTS[varied['part']]} {varied['name']}"
        if (correction := _CORRECTION.match(pointer)) is not None:
            return self._correction(correction)
        parts = pointer.removeprefix("/query").strip("/").split("/")
        if parts[0] == "params" and len(parts) > 1 and "param" in self._fields:
            # costs have options of their own
            own = parts[1] in _COSTS and parts[1] in self._fields
            return _option(parts[1]) if own else f"--param {parts[1]}"
        for end in range(len(parts), 0, -1):
            field = "_".join(parts[:end])
            if field in self._arguments:
                return field.upper()
            if field in self._fields:
                # where an option is JSON, the place within it
                within = ".".join(part for part in parts[end:] if not part.isdecimal())
                return f"{_option(field)}, {within}" if within else _option(field)
            if field in self._others:
                return f"--option {field}"
        return pointer

    def _correction(self, match: re.Match[str]) -> str:
        name = match["name"]
        if name is None:
            return "--file"
        if self._lines:
            return f"--file, line {int(match['at']) + 1}: {name}"
        return "LABELS" if name == "labels" else "ROW"

    def _replaced(self, match: re.Match[str]) -> str:
        name = match["set"] or match["bare"]
        if name in self._others:
            return f"--option {match[0]}"
        field = None if name is None else self._field(name)
        if field is None:
            return match[0]
        if match["value"] == "false":
            return f"--no-{field.replace('_', '-')}"
        # a switch has no value
        return _option(field) if match["value"] in (None, "true") else f"{_option(field)} {match['value']}"

    def _field(self, name: str) -> str | None:
        if name in self._fields:
            return name
        inner = [f"{recipe}_{name}" for recipe in _RECIPES if f"{recipe}_{name}" in self._fields]
        return inner[0] if len(inner) == 1 else None


def names_of(command: Any, arguments: Sequence[str]) -> OptionNames:
    """The options of the command that a command line runs.

    Parameters
    ----------
    command : typer's group
        All commands.
    arguments : sequence of str
        As in ``sys.argv``, without the program.
    """
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
    kinds = {each.name: each.param_type_name for each in command.params}
    options = [name for name, kind in kinds.items() if kind == "option"]
    # candidates of a file are pointed at by their numbers there
    spaces = "grid" in options and not _has("--space", arguments)
    sets = any("--option" in each.opts for each in command.params)
    others = HierarchyOptions.model_fields if sets else ()
    return OptionNames(options, kinds.keys() - set(options), others, spaces=spaces, lines=_has("--file", arguments))


def _has(option: str, arguments: Sequence[str]) -> bool:
    return any(word == option or word.startswith(f"{option}=") for word in arguments)


def _option(field: str) -> str:
    return f"--{field.replace('_', '-')}"
