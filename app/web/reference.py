"""The description of the API as a page, made of what the API says of itself; it needs no key and no other server."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fastapi import FastAPI, Request
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.access.authentication import authorize
from app.errors import PolymarginError
from app.web.rendering import part, render
from app.web.routing import pages

router = pages()


@dataclass(frozen=True)
class Operation:
    """One method of one path, as the page shows it."""

    id: str
    method: str
    path: str
    text: str
    parameters: list[Mapping[str, Any]]
    body: str
    answers: list[tuple[str, str, str]]


@router.get("/docs")
async def show_reference(request: Request) -> Response:
    """Every route and every schema, for anybody."""
    with suppress(PolymarginError):
        await authorize(request, "viewer")  # who has signed in stays so
    parts = await run_in_threadpool(_parts, request.app)
    return render(request, "reference.html", parts=parts, description=request.app.openapi()["info"]["description"])


@lru_cache(maxsize=1)
def _parts(app: FastAPI) -> Markup:
    # Written once: it is long, nobody needs a key to ask for it, and it changes only with the release.
    document = app.openapi()
    tags = {tag["name"]: tag["description"] for tag in document["tags"]}
    operations: dict[str, list[Operation]] = {tag: [] for tag in tags}
    for tag, operation in _operations(document):
        operations[tag].append(operation)
    schemas = document["components"]["schemas"]
    return part("reference_parts.html", tags=tags, operations=operations, schemas=schemas, kind=kind)


def kind(schema: Mapping[str, Any]) -> str:
    """A schema in a few words: the name of the one that it refers to, its type, or its alternatives."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[1]
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " or ".join(dict.fromkeys(kind(each) for each in schema[word]))
    if "const" in schema:
        return repr(schema["const"])
    if "enum" in schema:
        return ", ".join(str(value) for value in schema["enum"])
    if schema.get("type") == "array" and "items" in schema:
        return f"array of {kind(schema['items'])}"
    more = schema.get("additionalProperties")
    if schema.get("type") == "object" and isinstance(more, Mapping):
        return f"object of {kind(more)}"
    return str(schema.get("type", "any"))


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, Operation]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield (
                operation["tags"][0],
                Operation(
                    operation["operationId"],
                    method.upper(),
                    path,
                    operation.get("description", ""),
                    operation.get("parameters", []),
                    _content(operation.get("requestBody", {})),
                    [
                        (status, answer["description"], _content(answer))
                        for status, answer in sorted(operation["responses"].items())
                    ],
                ),
            )


def _content(part: Mapping[str, Any]) -> str:
    return "; ".join(
        media_type if not schema.get("schema") else f"{kind(schema['schema'])} ({media_type})"
        for media_type, schema in part.get("content", {}).items()
    )
