"""Training jobs: a dataset and a solver become a model version with its measures."""

from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from app.errors import Conflict
from app.schemas.jobs import TrainRequest
from app.services import versions
from app.store import tables
from app.store.corpus import open_corpus
from app.store.files import Files, files
from solvers.base import Params, Solver
from solvers.model import Model
from solvers.problem import Problem
from solvers.registry import find, parse_params
from solvers.version import VERSION
from workers.driving import Outcome, drive
from workers.featuring import Featured, featured
from workers.journal import Journal
from workers.rows import split_rows
from workers.scoring import measure


def train(journal: Journal) -> None:
    """Train, measure, save, and end the job together with the model's new version."""
    lease, store = journal.lease, files()
    request = TrainRequest.model_validate(lease.request)
    journal.phase("loading")
    dataset = journal.read(lambda session: session.get(tables.Dataset, lease.dataset_id))
    if dataset is None or dataset.path is None:
        raise Conflict("the dataset is not ready, or was deleted")
    corpus = open_corpus(store, dataset.path)
    rows = split_rows(corpus, request)
    journal.phase("features")
    data = featured(corpus, rows, request.text)
    problem = Problem.check(data.X_train, rows.y_train, rows.classes, rows.weights)
    params = parse_params(request.solver, request.params)
    solver: Solver[Any] = find(request.solver)(params, seed=request.seed, threads=request.threads)

    journal.phase("training", at_once=False)
    outcome = drive(journal, solver, problem, store)
    journal.phase("testing", at_once=False, fraction=1.0, eta_seconds=None)
    model = solver.model(problem, outcome.state)
    majority = int(np.bincount(problem.y).argmax())
    metrics = {
        "train": measure(model, problem.X, problem.y, majority),
        "test": measure(model, data.X_test, rows.y_test, majority),
    }
    journal.phase("saving", at_once=False)
    facts = _save(journal, store, request, params, dataset, problem, outcome, model, data)

    def finish(session: Session) -> dict[str, Any]:
        return {"model": request.model, "version": versions.add(session, request.model, facts, metrics)}

    journal.succeed(finish)
    store.delete(f"jobs/{lease.job_id}")


def _save(
    journal: Journal,
    store: Files,
    request: TrainRequest,
    params: Params,
    dataset: tables.Dataset,
    problem: Problem,
    outcome: Outcome,
    model: Model,
    data: Featured,
) -> versions.Facts:
    lease, reached = journal.lease, outcome.reached
    path = f"models/{lease.job_id}.{lease.attempt}"
    store.delete(path)
    manifest = {"kind": data.features.kind, "params": data.features.params_json()}
    features_sha256 = store.save_arrays(f"{path}/features", data.features.arrays(), manifest)
    lineage: dict[str, Any] = {
        "job": lease.job_id,
        "dataset_sha256": dataset.sha256,
        "solver": request.solver,
        "params": params.model_dump(mode="json"),
        "seed": request.seed,
        "request": lease.request,
        "code_version": VERSION,
        "epochs": reached.epoch,
        "converged": reached.converged,
        "primal": reached.primal,
        "dual": reached.dual,
        "gap": reached.gap,
        "features_sha256": features_sha256,
    }
    sha256 = model.save(store.path(f"{path}/model"), lineage)
    return versions.Facts(
        job_id=lease.job_id,
        dataset_id=lease.dataset_id,
        dataset_sha256=dataset.sha256,
        solver=request.solver,
        params=lineage["params"],
        seed=request.seed,
        request=lease.request,
        code_version=VERSION,
        n_classes=problem.n_classes,
        n_features=problem.n_features,
        n_train=problem.n_samples,
        epochs=reached.epoch,
        converged=reached.converged,
        primal=reached.primal,
        dual=reached.dual,
        gap=reached.gap,
        violation=reached.violation,
        seconds=reached.seconds,
        path=path,
        sha256=sha256,
        size_bytes=sum(file.stat().st_size for file in store.path(path).rglob("*") if file.is_file()),
    )
