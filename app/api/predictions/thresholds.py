"""The route for the thresholds of model versions."""

from fastapi import APIRouter, Request

from app.api.access.auth import VIEWER
from app.api.common.parameters import Number, Ref
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.schemas.predictions.thresholds import ThresholdCurve
from app.services.predictions import thresholds

router = APIRouter(prefix=f"{V1}/models", tags=["models"])


@router.get("/{ref}/versions/{number}/thresholds", dependencies=[VIEWER], responses=responses(401, 404, 409, 422, 503))
def get_thresholds(request: Request, ref: Ref, number: Number) -> ThresholdCurve:
    """Precision against coverage on rows held out, threshold by threshold, of a version that tells probabilities.

    Those that `auto` trains do; others get 404. Of sets of labels an answer is a label of a set, and `recall` tells how
    many of the true ones are among them.
    """
    return thresholds.of_version(request.app.state.models, request.state.key.workspace, ref, number)
