"""Precision against coverage of a model version: what its answers to held-out rows were worth, by threshold."""

from app.errors import NotFound, PolymarginError
from app.predictions import sure_answers
from app.predictions.inspection_schemas import ThresholdCurve, ThresholdPoint
from app.predictions.model_cache import ModelCache


def of_version(cache: ModelCache, workspace: str, ref: str, number: int) -> ThresholdCurve:
    """The curve; raises NotFound where there is no such version, or it keeps nothing of rows held out."""
    loaded = cache.get((workspace, ref, number, None))
    held_out = sure_answers.calibration_of(loaded.model)
    if held_out is None:
        raise NotFound(f"version {number} of {loaded.version.model!r:.80} has no probabilities of held-out rows")
    return ThresholdCurve(
        model=loaded.version.model,
        version=number,
        n_rows=held_out.n_rows,
        points=[ThresholdPoint.model_validate(point._asdict()) for point in held_out.curve],
    )


def are_kept(cache: ModelCache, workspace: str, ref: str, number: int) -> bool:
    """Whether a version has a curve; False if it is unread."""
    try:
        return sure_answers.calibration_of(cache.get((workspace, ref, number, None)).model) is not None
    except PolymarginError:
        return False
