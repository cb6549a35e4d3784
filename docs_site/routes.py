"""The reference of the API, from its OpenAPI document."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs_site.markdown import table

DOCUMENT = Path(__file__).parents[1] / "docs" / "openapi.json"
_METHODS = ("get", "post", "put", "patch", "delete")


def routes() -> str:
    """Markdown: the routes of each tag, then the schemas of their bodies."""
    document = json.loads(DOCUMENT.read_text())
    parts = [document["info"]["description"], ""]
    for tag in document["tags"]:
        parts += [f"## {tag['name']}\n", tag["description"], ""]
        parts += [_route(*found) for found in operations(document) if tag["name"] in found[2]["tags"]]
    parts.append("## Schemas\n")
    parts += [_schema(name, schema) for name, schema in document["components"]["schemas"].items()]
    return "\n".join(parts)


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every route: method, path, description."""
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                yield method.upper(), path, item[method]


def _route(method: str, path: str, operation: dict[str, Any]) -> str:
    parts = [f"### `{method} {path}` {{ #{operation['operationId']} }}\n", operation.get("description", ""), ""]
    found = operation.get("parameters", [])
    if found:
        rows = [
            (f"`{one['name']}`", one["in"], _type(one["schema"]), one.get("description", ""), _default(one))
            for one in found
        ]
        parts.append(table(("parameter", "in", "type", "meaning", "default"), rows))
    body = operation.get("requestBody")
    if body:
        kinds = ", ".join(f"`{kind}`: {_type(content['schema'])}" for kind, content in body["content"].items())
        parts += [f"Body: {kinds}. {body.get('description', '')}\n"]
    rows = [(status, answer["description"], _content(answer)) for status, answer in operation["responses"].items()]
    parts.append(table(("status", "meaning", "body"), rows))
    return "\n".join(parts)


def _schema(name: str, schema: dict[str, Any]) -> str:
    parts = [f"### {name} {{ #{_anchor(name)} }}\n", schema.get("description", ""), ""]
    required = schema.get("required", [])
    rows = [
        (f"`{field}`", _type(about), about.get("description", ""), _default(about | {"required": field in required}))
        for field, about in schema.get("properties", {}).items()
    ]
    if rows:
        parts.append(table(("field", "type", "meaning", "default"), rows))
    return "\n".join(parts)


def _anchor(name: str) -> str:
    return f"schema-{name.lower().strip('_').replace('_', '-')}"


def _content(answer: dict[str, Any]) -> str:
    return ", ".join(_type(content.get("schema", {})) or kind for kind, content in answer.get("content", {}).items())


def _default(about: dict[str, Any]) -> str:
    if about.get("required"):
        return "required"
    default = about.get("schema", about).get("default")
    return "" if default is None else f"`{json.dumps(default)}`"


def _type(schema: dict[str, Any]) -> str:
    """A schema in a few words, with links to the named ones."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{_anchor(name)})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[several]))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {})) or 'values'}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties']) or 'values'}"
    return " ".join([str(schema.get("format") or schema.get("type", "")), *_bounds(schema)])


def _bounds(schema: dict[str, Any]) -> Iterator[str]:
    words = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    for key, sign in words.items():
        if key in schema:
            yield f"{sign} {schema[key]:g}"
