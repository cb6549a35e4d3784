"""The API's description: what FastAPI finds, and the bodies that routes read by themselves."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from app.schemas.access.keys import KeyRequest
from app.schemas.common.problems import ProblemDocument
from app.schemas.datasets.datasets import CorrectionsRequest
from app.schemas.datasets.uploads import NewUpload
from app.schemas.evaluations import EvaluateRequest
from app.schemas.jobs.compression import CompressRequest
from app.schemas.jobs.jobs import JobPatch, TrainRequest
from app.schemas.jobs.previews import PreviewRequest
from app.schemas.jobs.tuning import TuneRequest
from app.schemas.models.deletions import RetentionRule, VersionPatch
from app.schemas.models.models import AliasTarget
from app.schemas.predictions.batch_predictions import BatchPredictRequest
from app.schemas.predictions.nearest import NearestRequest
from app.schemas.predictions.predictions import PredictRequest
from app.schemas.rules.feedback import FeedbackRequest, FeedbackRowsRequest
from app.schemas.rules.rules import RulePatch, RuleRequest

_BODIES: tuple[type[BaseModel], ...] = (
    TrainRequest,
    TuneRequest,
    EvaluateRequest,
    CompressRequest,
    BatchPredictRequest,
    KeyRequest,
    AliasTarget,
    VersionPatch,
    JobPatch,
    RetentionRule,
    RuleRequest,
    RulePatch,
    PredictRequest,
    FeedbackRequest,
    NearestRequest,
    PreviewRequest,
    FeedbackRowsRequest,
    CorrectionsRequest,
    NewUpload,
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
        for schema in schemas.values():
            _close(schema)
        for route in (route for path in document["paths"].values() for route in path.values()):
            for answer in route["responses"].values():
                # made of the route's path: it says nothing that the route's name does not
                answer.get("content", {}).get("application/json", {}).get("schema", {}).pop("title", None)
        app.openapi_schema = document
    return app.openapi_schema


def _close(schema: Any) -> None:
    # Names that don't fit their pattern are refused, which the pattern alone does not say.
    if isinstance(schema, dict) and "patternProperties" in schema:
        schema.setdefault("additionalProperties", False)
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _close(inner)
