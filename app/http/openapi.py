"""The API's description: what FastAPI finds, and the bodies and errors that follow from what routes depend on."""

from collections.abc import Callable, Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from app.access.authentication import ADMIN, CLERK, EDITOR, VIEWER
from app.http.bodies import JsonBody, KindBody, request_schema
from app.http.problems import responses
from app.predictions.schemas import PredictRequest
from app.schemas import ProblemDocument

_READS, _WRITES = {VIEWER.dependency}, {each.dependency for each in (CLERK, EDITOR, ADMIN)}


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes, tags=app.openapi_tags
        )
        # the predict route reads its body by itself
        models: set[type[BaseModel]] = {PredictRequest}
        for route in app.routes:
            # a protocol's routes have the protocol's bodies and errors
            if type(route) is APIRoute and route.include_in_schema:
                for method in route.methods or ():
                    models.update(_complete(document["paths"][route.path_format][method.lower()], route))
        described = sorted(models, key=lambda model: model.__name__)
        kinds = [(model, "validation") for model in described] + [(ProblemDocument, "serialization")]
        _, found = models_json_schema(kinds, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
        schemas = document["components"]["schemas"]
        for name, schema in found["$defs"].items():
            schemas.setdefault(name, schema)
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        for schema in schemas.values():
            _close(schema)
        for operation in (operation for path in document["paths"].values() for operation in path.values()):
            for answer in operation["responses"].values():
                # made of the route's path: it says nothing that the route's name does not
                answer.get("content", {}).get("application/json", {}).get("schema", {}).pop("title", None)
        app.openapi_schema = document
    return app.openapi_schema


def _complete(operation: dict[str, Any], route: APIRoute) -> tuple[type[BaseModel], ...]:
    """Add a route's body, and the errors of its role, body and path; those of its own it names. Returns the models."""
    calls = set(_calls(route.dependant))
    body = next((call for call in calls if isinstance(call, JsonBody | KindBody)), None)
    errors = {404} if "{" in route.path else set()
    if calls & (_READS | _WRITES):
        errors |= {401, 422}
    if calls & _WRITES:
        errors |= {403} if route.methods == {"GET"} else {403, 507}
    if body is not None:
        operation |= request_schema(*body.models)
        errors |= {413, 415, 422}
    operation["responses"] |= {str(status): answer for status, answer in responses(*errors).items()}
    return () if body is None else body.models


def _calls(dependant: Dependant) -> Iterator[Callable[..., Any] | None]:
    """What a route depends on, directly or not."""
    for inner in dependant.dependencies:
        yield inner.call
        yield from _calls(inner)


def _close(schema: Any) -> None:
    # Names that don't fit their pattern are refused, which the pattern alone does not say.
    if isinstance(schema, dict) and "patternProperties" in schema:
        schema.setdefault("additionalProperties", False)
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _close(inner)
