"""Jobs that find wrong labels: models of all folds but one judge the rows of that fold, fold after fold."""

import io
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray
from sqlalchemy.orm import Session
from threadpoolctl import threadpool_limits

from app.curation.schemas import WrongLabelsRequest
from app.curation.wrong_labels import TRAINING
from app.datasets import versions as dataset_versions
from app.errors import InvalidInput
from app.formats.labels import PARTS
from app.hierarchies.version_labels import VersionLabels
from app.jobs.schemas import TrainRequest
from app.predictions import batch_predictions
from app.store.cache import cached_corpus
from app.store.corpus import Corpus
from app.store.files import Files, files
from solvers.core.base import Solver
from solvers.core.model import Model
from solvers.labels.taxonomy import Taxonomy
from solvers.registry import make
from solvers.selection import wrong_labels
from solvers.selection.splits import stratified_folds
from solvers.selection.wrong_labels import Answers
from workers.phases.driving import Run, drive
from workers.phases.featuring import Featured
from workers.phases.preparation import features_of, vocabulary
from workers.phases.splitting import Rows, node_numbers, split_rows
from workers.running.job_context import JobContext, TimeUp

# similar rows and features that are listed of a row
_NEAREST, _TERMS = 3, 5


class _Data(NamedTuple):
    """What all folds share; ``names`` are the labels by the numbers ``y`` of the rows ``train``."""

    corpus: Corpus
    tree: Taxonomy | None
    labels: VersionLabels
    names: list[str]
    train: NDArray[np.int64]
    y: NDArray[np.int64]
    fold: NDArray[np.int64]


def find_wrong_labels(context: JobContext) -> None:
    """Judge all rows, and end the job with the file of the most suspect labels.

    Folds that an earlier attempt has judged are not trained again.
    """
    store, lease = files(), context.lease
    given = dict(lease.request)
    training = TrainRequest.model_validate(given.pop(TRAINING))
    request = WrongLabelsRequest.model_validate(given)
    # linear algebra would otherwise take all processors
    with threadpool_limits(training.threads):
        data = _load(context, store, training, request)
        solver = make(training.solver, training.params, seed=training.seed, threads=training.threads)
        run = Run(context, store, request.folds)
        resumed = run.resume()
        folds = [at for at in range(request.folds) if (data.fold == at).any()]
        for at in folds:
            if not store.exists(_path(lease.job_id, at)):
                start = resumed.state if resumed is not None and resumed.reached.point == at else None
                _judge(context, store, run, solver, training, request, data, at, start)
    context.phase("saving", at_once=False)
    found = [(np.flatnonzero(data.fold == at), _read(store.read_bytes(_path(lease.job_id, at)))) for at in folds]
    whole = wrong_labels.joined(len(data.train), [(places, part) for places, (part, _) in found])
    evidence = {row: each for _, (_, some) in found for row, each in some.items()}
    judged = data.fold >= 0
    confident = wrong_labels.confidently_wrong(whole, data.y, len(data.names)) & judged
    lines = _lines(data, whole, confident, judged, evidence, request.limit)
    store.save_bytes(batch_predictions.path_of(lease.job_id, "jsonl"), b"".join(lines))

    def finish(_session: Session) -> dict[str, Any]:
        return {
            "dataset": lease.dataset_id,
            "dataset_version": request.dataset_version,
            "n_rows": len(lines),
            "n_judged": int(judged.sum()),
            "n_confident": int(confident.sum()),
        }

    context.succeed(finish)
    for at in folds:
        store.delete(_path(lease.job_id, at))
    store.delete(f"jobs/{lease.job_id}")


def _load(context: JobContext, store: Files, training: TrainRequest, request: WrongLabelsRequest) -> _Data:
    context.phase("loading")
    lease = context.lease
    dataset = context.read(lambda session: dataset_versions.stored(session, lease.dataset_id, request.dataset_version))
    corpus = cached_corpus(store, dataset.path)
    tree, labels = vocabulary(context, lease.job_id, training)
    corpus, _ = labels.mapped(corpus)
    split = np.zeros(corpus.n_rows, np.int8)
    if tree is not None and training.unknown_labels == "refuse":
        split[node_numbers(tree, corpus.labels)[np.asarray(corpus.y)] < 0] = PARTS.index("validation")
    rows = split_rows(corpus, training, tree, labels, split)
    names = rows.classes if tree is None else list(tree.names)
    number = {name: at for at, name in enumerate(names)}
    y = np.array([number[name] for name in rows.classes], np.int64)[rows.y_train]
    fold = stratified_folds(y, request.folds, request.seed)
    if not (fold >= 0).any():
        raise InvalidInput("no row can be judged: every label has only one row")
    return _Data(corpus, tree, labels, names, rows.train, y, fold)


def _judge(
    context: JobContext,
    store: Files,
    run: Run,
    solver: Solver[Any],
    training: TrainRequest,
    request: WrongLabelsRequest,
    data: _Data,
    at: int,
    start: Any,
) -> None:
    """Train on all other folds, and write the answers to one fold with the evidence for its most suspect rows."""
    context.phase("features", point=at)
    out = data.fold == at
    split = np.full(data.corpus.n_rows, PARTS.index("validation"), np.int8)
    split[data.train[~out]], split[data.train[out]] = 0, 1
    rows = split_rows(data.corpus, training, data.tree, data.labels, split)
    featured = features_of(data.corpus, rows, training, solver, data.labels)
    problem = rows.problem(featured.X_train, featured.names)
    context.phase("training", at_once=False, point=at)
    outcome = drive(run, solver, problem, at, start)
    if run.stopped:
        raise TimeUp
    context.phase("scoring", at_once=False, fraction=(at + 1) / request.folds, eta_seconds=None)
    model = solver.bare_model(problem, outcome.state)
    if model.names_sets:
        raise InvalidInput(f"{solver.name} predicts sets of labels; wrong labels need a method of one label per row")
    # classes of the model by the numbers of the labels, and back
    number = {name: label for label, name in enumerate(data.names)}
    of_labels = np.array([number[name] for name in model.classes], np.int32)
    of_model = np.full(len(data.names), -1, np.int64)
    of_model[of_labels] = np.arange(len(of_labels))
    y = of_model[data.y[out]]
    scale = wrong_labels.temperature(model, featured.X_test, y)
    found = wrong_labels.answers(model, featured.X_test, y, scale)
    evidence = _evidence(
        data, model, featured, rows, found, y, min(request.limit, 2 * request.limit // request.folds + 50)
    )
    found = found._replace(labels=of_labels[found.labels])
    file = io.BytesIO()
    np.savez(file, **found._asdict(), evidence=np.frombuffer(orjson.dumps(evidence), np.uint8))
    store.save_bytes(_path(context.lease.job_id, at), file.getvalue())


def _evidence(
    data: _Data, model: Model, featured: Featured, rows: Rows, found: Answers, y: NDArray[np.int64], most: int
) -> dict[str, Any]:
    """By row, the most similar rows and the features that speak for the suggested label, of the most suspect rows."""
    suspect = np.flatnonzero(found.above > 0)
    suspect = suspect[np.argsort(wrong_labels.quality(found)[suspect], kind="stable")][:most]
    places, likeness = wrong_labels.nearest(featured.X_train, featured.X_test[suspect], _NEAREST)
    label, _ = wrong_labels.suggested(found, y)
    evidence: dict[str, Any] = {}
    for place, at in enumerate(suspect.tolist()):
        near = zip(rows.train[places[place]].tolist(), likeness[place].tolist(), strict=True)
        evidence[str(int(rows.test[at]))] = {
            "nearest": [
                {"row": row, "label": data.corpus.names(row)[0], "similarity": cosine}
                for row, cosine in near
                if cosine > 0
            ],
            "terms": _terms(model, featured, at, int(label[at]), int(y[at])),
        }
    return evidence


def _terms(model: Model, featured: Featured, at: int, label: int, own: int) -> list[dict[str, Any]]:
    """The features of a row that speak most for a label against its own; none of models that explain nothing."""
    if model.unexplained:
        return []
    X = featured.X_test
    indices, values = X.indices[X.indptr[at] : X.indptr[at + 1]], X.data[X.indptr[at] : X.indptr[at + 1]]
    contributions = model.contributions(indices, values, label, own)
    if contributions is None:
        return []
    parts = contributions.parts
    order = [k for k in np.argsort(-parts, kind="stable")[:_TERMS].tolist() if parts[k] > 0]
    return [{"feature": featured.features.named(int(indices[k])), "part": float(parts[k])} for k in order]


def _lines(
    data: _Data,
    whole: Answers,
    confident: NDArray[np.bool_],
    judged: NDArray[np.bool_],
    evidence: dict[str, Any],
    limit: int,
) -> list[bytes]:
    value = wrong_labels.quality(whole)
    label, probability = wrong_labels.suggested(whole, data.y)
    suspect = np.flatnonzero(judged & (whole.above > 0))
    suspect = suspect[np.argsort(value[suspect], kind="stable")][:limit]
    lines = []
    for at in suspect.tolist():
        row = int(data.train[at])
        each = {
            "row": row,
            "id": None if data.corpus.ids is None else data.corpus.ids[row],
            "label": data.names[data.y[at]],
            "suggested": data.names[label[at]],
            "probability": float(probability[at]),
            "probability_of_label": float(np.exp(whole.own[at])),
            "quality": float(value[at]),
            "confident": bool(confident[at]),
            **evidence.get(str(row), {"nearest": [], "terms": []}),
        }
        lines.append(orjson.dumps(each) + b"\n")
    return lines


def _path(job_id: str, at: int) -> str:
    # beside the job's result: its own folder has nothing but checkpoints
    return f"{batch_predictions.FOLDER}/{job_id}.fold-{at}.npz"


def _read(content: bytes) -> tuple[Answers, dict[str, Any]]:
    with np.load(io.BytesIO(content)) as arrays:
        found = Answers(*(arrays[name] for name in Answers._fields))
        return found, orjson.loads(arrays["evidence"].tobytes())
