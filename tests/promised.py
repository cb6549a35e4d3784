"""What programs of others rely on, as lines of text that may only become more: API, command line, settings, client.

``python -m tests.promised`` writes those of this version into ``tests/artefacts/promised``, which is done once for a
major version. A line that begins with ``needs`` says what a caller must give; of what was there, no such line may come.
"""

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

import polymargin
from app.cli import cli
from app.config import Settings

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).parent / "artefacts" / "promised"
_METHODS = ("get", "put", "post", "patch", "delete")
_REF = "#/components/schemas/"


def api() -> Iterator[str]:
    """Operations, parameters, statuses, and the fields, types and values of every schema."""
    document = json.loads((ROOT / "docs" / "openapi.json").read_text())
    schemas = document["components"]["schemas"]
    bodies: set[str] = set()
    answers: set[str] = set()
    for path, operations in document["paths"].items():
        for method in _METHODS:
            if (operation := operations.get(method)) is None:
                continue
            name = f"{method.upper()} {path}"
            yield name
            for parameter in operation.get("parameters", ()):
                place = f"{name} {parameter['in']} {parameter['name']}"
                yield place
                if parameter.get("required"):
                    yield f"needs {place}"
                yield from (f"{place}: {fact}" for fact in _facts(parameter["schema"]))
            for kind, content in operation.get("requestBody", {}).get("content", {}).items():
                yield f"{name} takes {kind}"
                yield from (f"{name} takes {fact}" for fact in _facts(content.get("schema", {})))
                bodies |= _reached(content, schemas)
            for status, answer in operation["responses"].items():
                yield f"{name} {status}"
                for kind, content in answer.get("content", {}).items() if status < "300" else ():
                    yield f"{name} {status} {kind}"
                    yield from (f"{name} {status} {fact}" for fact in _facts(content.get("schema", {})))
                    answers |= _reached(content, schemas)
    for name in sorted(bodies | answers):
        schema = schemas[name]
        yield from (f"{name}: {fact}" for fact in _facts(schema) if "properties" not in schema)
        for field, described in schema.get("properties", {}).items():
            yield f"{name}.{field}"
            yield from (f"{name}.{field}: {fact}" for fact in _facts(described))
            required = field in schema.get("required", ())
            if required and name in bodies:
                yield f"needs {name}.{field}"
            if required and name in answers:
                yield f"{name}.{field} is always there"


def _facts(schema: Any) -> Iterator[str]:
    """Types, formats of values, references and single values that a schema allows, at any depth."""
    if isinstance(schema, list):
        for each in schema:
            yield from _facts(each)
    elif isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].removeprefix(_REF)
        if isinstance(schema.get("type"), str):
            yield schema["type"]
        for value in (*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())):
            yield f"= {json.dumps(value)}"
        for key in ("anyOf", "oneOf", "allOf", "items", "prefixItems", "additionalProperties"):
            yield from _facts(schema.get(key))


def _reached(content: Any, schemas: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    front = _names(content)
    while front:
        found |= front
        front = set().union(*(_names(schemas[name]) for name in front)) - found
    return found


def _names(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"].removeprefix(_REF)} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(_names(each) for each in node.values()))
    return set().union(*(_names(each) for each in node)) if isinstance(node, list) else set()


def commands() -> Iterator[str]:
    """Commands, their options and arguments."""
    yield from _commands("polymargin", get_command(cli))


def _commands(name: str, command: Any) -> Iterator[str]:
    yield name
    for parameter in command.params:
        for option in (*parameter.opts, *parameter.secondary_opts):
            yield f"{name} {option}"
        if parameter.required:
            yield f"needs {name} {parameter.opts[0]}"
    for inner, described in getattr(command, "commands", {}).items():
        yield from _commands(f"{name} {inner}", described)


def settings() -> Iterator[str]:
    """Names of settings."""
    yield from (f"POLYMARGIN_{name.upper()}" for name in Settings.model_fields)


def client() -> Iterator[str]:
    """Names of the package, methods of the clients, and their parameters."""
    yield from polymargin.__all__
    for name in ("Client", "AsyncClient"):
        made = getattr(polymargin, name)("http://127.0.0.1", "key")
        parts = {name: made} | {
            f"{name}.{part}": value for part, value in vars(made).items() if not part.startswith("_")
        }
        for owner, part in parts.items():
            yield owner
            yield from _methods(owner, type(part))


def _methods(owner: str, kind: type) -> Iterator[str]:
    if not kind.__module__.startswith(("app.", "polymargin.")):
        return
    for name, method in inspect.getmembers(kind, callable):
        if name.startswith("_"):
            continue
        yield f"{owner}.{name}"
        for parameter in list(inspect.signature(method).parameters.values())[1:]:
            yield f"{owner}.{name}({parameter.name})"
            if parameter.default is parameter.empty and parameter.kind not in (
                parameter.VAR_POSITIONAL,
                parameter.VAR_KEYWORD,
            ):
                yield f"needs {owner}.{name}({parameter.name})"


SURFACES = {"api": api, "commands": commands, "settings": settings, "client": client}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, surface in SURFACES.items():
        (FOLDER / f"{name}.txt").write_text("".join(f"{line}\n" for line in sorted(set(surface()))))
