"""The API's description: what FastAPI finds, and the bodies that routes read by themselves."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from app.access.schemas import KeyRequest, TokenRequest
from app.curation.schemas import SuggestRowsRequest, WrongLabelsRequest
from app.datasets.schemas import CorrectionsRequest, NewUpload
from app.evaluations.schemas import ComparisonRequest, EvaluateRequest
from app.jobs.request_schemas import AdoptRequest, CompressRequest, TuneRequest
from app.jobs.schemas import JobPatch, PreviewRequest, TrainRequest
from app.models.schemas import AliasTarget, ModelAbout, RetentionRule, VersionPatch
from app.predictions.inspection_schemas import NearestRequest
from app.predictions.schemas import BatchPredictRequest, PredictRequest
from app.reviews.schemas import ClaimRequest, DecidedRowsRequest, DecisionRequest, ReleaseRequest, ReviewRequest
from app.rules.schemas import FeedbackRequest, FeedbackRowsRequest, RulePatch, RuleRequest
from app.schemas import ProblemDocument
from app.webhooks.schemas import WebhookRequest

_BODIES: tuple[type[BaseModel], ...] = (
    TrainRequest,
    TuneRequest,
    EvaluateRequest,
    ComparisonRequest,
    CompressRequest,
    AdoptRequest,
    BatchPredictRequest,
    SuggestRowsRequest,
    WrongLabelsRequest,
    KeyRequest,
    TokenRequest,
    AliasTarget,
    VersionPatch,
    ModelAbout,
    JobPatch,
    RetentionRule,
    ReviewRequest,
    ClaimRequest,
    DecisionRequest,
    DecidedRowsRequest,
    ReleaseRequest,
    RuleRequest,
    RulePatch,
    PredictRequest,
    FeedbackRequest,
    NearestRequest,
    PreviewRequest,
    FeedbackRowsRequest,
    CorrectionsRequest,
    NewUpload,
    WebhookRequest,
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
