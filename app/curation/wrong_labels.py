"""Jobs that find wrong labels: requests resolved, and their results."""

from itertools import islice
from typing import Any

import orjson
from sqlalchemy.orm import Session

from app.curation.schemas import WrongLabel, WrongLabels, WrongLabelsRequest
from app.curation.service import finished
from app.datasets import rows as dataset_rows
from app.datasets import versions as dataset_versions
from app.errors import Conflict, InvalidInput, Item
from app.jobs.schemas import TrainRequest, stored_request
from app.jobs.training_requests import Resolved, resolve
from app.models import service as models
from app.schemas import OPTIONS
from app.store import tables
from app.store.corpus import Corpus, open_corpus
from app.store.files import files

# where the stored request has the training of each fold
TRAINING = "training"


def resolve_wrong_labels(session: Session, request: WrongLabelsRequest) -> tuple[Resolved, dict[str, Any]]:
    """What a request names, held to the end of the transaction, and the request to store, with its training.

    Raises
    ------
    NotFound
        No such model, version, alias, dataset or hierarchy.
    Conflict
        The dataset is not ready, or the model's dataset or hierarchy was deleted.
    InvalidInput
        The dataset cannot be judged, or not by this method.
    """
    if request.model is None:
        given: dict[str, Any] = {
            "dataset": request.dataset,
            "hierarchy": request.hierarchy,
            "params": request.params or {},
        }
        training = TrainRequest(model="wrong-labels", solver=request.solver or "auto", **given)
        version = None
    else:
        row = models.version_row(session, request.model, request.version, request.alias, lock=True)
        training, version = _training_of(row), row.number
    of_folds = {
        "dataset_version": request.dataset_version,
        "seed": request.seed,
        "threads": request.threads,
        "unseen_labels": "count",
        "test_fraction": 0.0,
    }
    training = training.model_copy(update=of_folds)
    resolved = resolve(session, training, lock=True)
    _check(resolved)
    if resolved.text is not None:
        training = training.model_copy(update={"text": resolved.text})
    elif resolved.holds_texts:
        training = training.model_copy(update={"text": resolved.default_text})
    training = resolved.scaled(training).model_copy(update={"dataset_version": resolved.dataset_version})
    named = {"version": version, "alias": None, "dataset_version": resolved.dataset_version}
    stored = request.model_copy(update=named).model_dump(mode="json", exclude=set(OPTIONS))
    return resolved, {**stored, TRAINING: training.model_dump(mode="json")}


def wrong_labels(session: Session, job_id: str, offset: int = 0, limit: int = 20) -> WrongLabels:
    """Probably wrong labels that a job has found, the most suspect first.

    Raises
    ------
    NotFound
        No such job, it finds no wrong labels, or its file was removed.
    Conflict
        The job has not succeeded, or its dataset was deleted.
    """
    job, file, dataset, rows = finished(session, job_id, "wrong_labels", "the job finds no wrong labels")
    newest = dataset_versions.find(session, dataset.id, dataset.version)
    if newest is None:
        raise Conflict("the dataset of the job was deleted; its rows cannot be shown")
    before, now = (open_corpus(files(), version.path) for version in (rows, newest))
    with file.path.open("rb") as lines:
        found = [orjson.loads(line) for line in islice(lines, offset, offset + limit)]
    result, places = job.result or {}, before.places_in(now)
    return WrongLabels(
        rows=[_shown(each, before, now, int(places[each["row"]])) for each in found],
        n_rows=result["n_rows"],
        n_judged=result["n_judged"],
        n_confident=result["n_confident"],
        dataset=dataset.name,
        dataset_version=rows.number,
    )


def _training_of(row: tables.ModelVersion) -> TrainRequest:
    """The training of a version, as one for all rows of its dataset in one worker."""
    if row.dataset_id is None:
        raise Conflict("the dataset of the version was deleted; give a dataset instead of the model")
    training = stored_request(row.request)
    if training.hierarchy is not None and row.hierarchy_id is None:
        raise Conflict("the hierarchy of the version was deleted; give a dataset instead of the model")
    own: dict[str, Any] = {"dataset": row.dataset_id, "hierarchy": row.hierarchy_id, "warm_start": None, "path": None}
    own |= {"until_certain": None, "certain_rows": None}
    if training.path is not None:
        own["params"] = {**training.params, "C": row.params["C"]}
    return training.model_copy(update={**own, "shards": None, "keep_duals": False, "refit": False})


def _check(resolved: Resolved) -> None:
    why = None
    if resolved.statistics.labels_per_row is not None:
        why = "rows have sets of labels; wrong labels are found for one label per row"
    elif resolved.statistics.n_classes < 2:
        why = "fewer than two labels"
    elif resolved.solver.takes_kernel_values:
        why = "rows of precomputed kernel values cannot be divided into folds"
    elif resolved.solver.handles.multilabel and not (resolved.solver.handles.flat or resolved.solver.handles.tree):
        why = f"{resolved.solver.name} predicts sets of labels"
    if why is not None:
        raise InvalidInput("the labels cannot be judged", [Item(why, "/dataset")])


def _shown(found: dict[str, Any], before: Corpus, now: Corpus, place: int) -> WrongLabel:
    row, given = found["row"], before.names(found["row"])
    labels = given if place < 0 else now.names(place)
    corrected = None if labels == given else ", ".join(labels)
    return WrongLabel(**found, corrected=corrected, deleted=place < 0, **dataset_rows.content(before, row))
