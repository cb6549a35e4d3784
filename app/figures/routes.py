"""Routes for pictures; each names its figure in the path, and takes what is to be drawn as a query."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from app.access.authentication import VIEWER
from app.datasets import rows as dataset_rows
from app.datasets import service as datasets
from app.evaluations import service as evaluations
from app.figures import charts, trial_charts
from app.figures import images as figures
from app.figures.distribution_charts import Spread, spread
from app.figures.images import Draw, Format
from app.figures.trial_charts import TrialChart
from app.http.parameters import V1, Db
from app.http.problems import responses
from app.jobs import logs as job_logs
from app.jobs import service as jobs
from app.jobs import tunings
from app.models import service as models
from app.predictions import inspection
from app.predictions.drift import of_version
from app.predictions.model_cache import ModelCache
from app.predictions.routes import Days
from app.schemas import NAME_PATTERN
from app.store.lookup import MAX_PAGE

router = APIRouter(prefix=f"{V1}/figures", tags=["figures"])

_Format = Annotated[Format, Query(description="Format of the picture.")]
_Model = Annotated[str, Query(pattern=NAME_PATTERN, description="Id or name.")]
_Id = Annotated[str, Query(pattern=NAME_PATTERN)]
_Version = Annotated[int, Query(ge=1, lt=2**31)]
_PICTURE: dict[int | str, dict[str, Any]] = {
    200: {"content": {kind: {"schema": {"type": "string"}} for kind in figures.MEDIA_TYPES.values()}}
}


def _draws(path: str, *faults: int) -> Callable[[Callable[..., Response]], Callable[..., Response]]:
    """A route that answers with a picture, or with one of these faults."""
    return router.get(
        path, dependencies=[VIEWER], response_class=Response, responses={**_PICTURE, **responses(*faults)}
    )


@_draws("/code", 401, 404, 409, 422, 503)
def draw_code(request: Request, model: _Model, version: _Version, format: _Format = "svg") -> Response:
    """Draw the output code of a model version as a heat map, with the distances between its rows and its columns."""
    code = inspection.code_of(request.app.state.models, request.state.key.workspace, model, version)
    return _picture(figures.code_heat_map(code), format)


@_draws("/drift", 401, 404, 409, 422, 503)
def draw_drift(
    request: Request, session: Db, model: _Model, version: _Version, days: Days = 7, format: _Format = "svg"
) -> Response:
    """Draw scores and labels of recent predictions next to those of held-out rows."""
    cache: ModelCache = request.app.state.models
    loaded = cache.get((request.state.key.workspace, model, version, None))
    return _picture(figures.drift_bars(of_version(session, cache.counts, loaded, days)), format)


@_draws("/job", 401, 404, 422)
def draw_job(
    session: Db,
    job: _Id,
    of: Annotated[
        Literal["convergence", "trials"],
        Query(description="convergence: the gap and the bounds of the optimum. trials: the trials of `auto`."),
    ] = "convergence",
    format: _Format = "svg",
) -> Response:
    """Draw the convergence of a training job, or the trials of a model selection; the first 10,000 steps."""
    steps = job_logs.steps(session, job, limit=job_logs.MAX_STEPS).steps
    draw = charts.trials if of == "trials" else charts.convergence
    return _picture(draw(jobs.get(session, job), steps), format)


@_draws("/tuning", 401, 404, 409, 422)
def draw_tuning(
    session: Db,
    job: _Id,
    of: Annotated[
        TrialChart,
        Query(
            description="time: the measure of the trials in the order in which they ended. settings: the settings that "
            "differ among the best 150."
        ),
    ],
    format: _Format = "svg",
) -> Response:
    """Draw the trials of a tuning; the first thousand of the leaderboard."""
    trials = tunings.trials(session, job, MAX_PAGE).items
    draw = trial_charts.measure_by_time if of == "time" else trial_charts.settings_side_by_side
    return _picture(draw(jobs.get(session, job), trials), format)


@_draws("/reliability", 401, 404, 422)
def draw_reliability(session: Db, evaluation: _Id, format: _Format = "svg") -> Response:
    """Draw the share of correct predictions by predicted probability."""
    return _picture(charts.reliability(evaluations.get(session, evaluation)), format)


@_draws("/confusions", 401, 404, 422)
def draw_confusions(
    session: Db,
    evaluation: _Id,
    level: Annotated[
        int | None, Query(ge=0, le=1000, description="Level of the label tree. Default: the first.")
    ] = None,
    format: _Format = "svg",
) -> Response:
    """Draw the confusion matrix of the most confused classes."""
    found = evaluations.get(session, evaluation)
    pairs = evaluations.confusions(session, evaluation, level, 1000)
    if level is None and pairs.pairs:
        pairs.pairs = [pair for pair in pairs.pairs if pair.level == pairs.pairs[0].level]
    return _picture(charts.confusion_matrix(found, pairs), format)


@_draws("/path", 401, 404, 422)
def draw_path(session: Db, model: _Model, version: _Version, format: _Format = "svg") -> Response:
    """Draw training loss, errors on held-out rows and their certified bounds over C, of a training with `every_c`."""
    return _picture(charts.path_over_c(models.path_over_c(session, model, version)), format)


@_draws("/thresholds", 401, 404, 409, 422, 503)
def draw_thresholds(request: Request, model: _Model, version: _Version, format: _Format = "svg") -> Response:
    """Draw precision against coverage of a version with probabilities."""
    curve = inspection.threshold_curve(request.app.state.models, request.state.key.workspace, model, version)
    return _picture(charts.precision_by_coverage(curve), format)


@_draws("/classes", 401, 404, 409, 422)
def draw_classes(
    session: Db,
    dataset: Annotated[str, Query(pattern=NAME_PATTERN, description="Id or name.")],
    format: _Format = "svg",
) -> Response:
    """Draw the rows per class of a dataset; the thousand largest classes."""
    name = datasets.get(session, dataset).name
    return _picture(charts.classes(name, dataset_rows.statistics(session, dataset)), format)


@router.get("/spread", dependencies=[VIEWER], response_class=Response, responses={**_PICTURE, **responses(404, 409)})
def draw_spread(
    session: Db,
    dataset: Annotated[str, Query(pattern=NAME_PATTERN, description="Id or name.")],
    of: Annotated[
        Spread,
        Query(
            description="lengths: rows by length. labels: rows by number of labels. features: features by number of "
            "rows. overlap: rows that repeat others."
        ),
    ],
    format: _Format = "svg",
) -> Response:
    """Draw distributions of the rows of a dataset."""
    shown = datasets.get(session, dataset)
    return _picture(spread(shown.name, shown.kind, dataset_rows.statistics(session, dataset), of), format)


def _picture(draw: Draw, format: Format) -> Response:
    return Response(figures.render(draw, format), media_type=figures.MEDIA_TYPES[format])
