"""The route for the features that count most for a class."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from app.api.access.auth import VIEWER
from app.api.common.parameters import Number, Ref
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.schemas.predictions.terms import ClassTerms
from app.services.predictions import terms

router = APIRouter(prefix=f"{V1}/models", tags=["models"])


@router.get("/{ref}/versions/{number}/terms", dependencies=[VIEWER], responses=responses(401, 404, 409, 422, 503))
def get_class_terms(
    request: Request,
    ref: Ref,
    number: Number,
    label: Annotated[str, Query(min_length=1, max_length=1000, description="The class.")],
    limit: Annotated[int, Query(ge=1, le=terms.MAX_TERMS, description="How many on either side.")] = 20,
) -> ClassTerms:
    """The features that count most for a class of a linear machine, and against it."""
    return terms.of_class(request.app.state.models, request.state.key.workspace, ref, number, label, limit)
