"""The API's description: what FastAPI finds, and the bodies that routes read by themselves."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from app.schemas.batch_predictions import BatchPredictRequest
from app.schemas.deletions import RetentionRule, VersionPatch
from app.schemas.evaluations import EvaluateRequest
from app.schemas.feedback import FeedbackRequest, FeedbackRowsRequest
from app.schemas.jobs import JobPatch, TrainRequest
from app.schemas.keys import KeyRequest
from app.schemas.models import AliasTarget
from app.schemas.predictions import PredictRequest
from app.schemas.problems import ProblemDocument

_BODIES: tuple[type[BaseModel], ...] = (
    TrainRequest,
    EvaluateRequest,
    BatchPredictRequest,
    KeyRequest,
    AliasTarget,
    VersionPatch,
    JobPatch,
    RetentionRule,
    PredictRequest,
    FeedbackRequest,
    FeedbackRowsRequest,
)


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes, tags=app.openapi_tags
        )
        models = [(model, "validation") for model in _BODIES] + [(ProblemDocument, "serialization")]
        _, found = models_json_schema(models, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
        schemas = document["components"]["schemas"]
        for name, schema in found["$defs"].items():
            schemas.setdefault(name, schema)
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        app.openapi_schema = document
    return app.openapi_schema
