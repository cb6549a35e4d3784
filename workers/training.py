"""Training jobs: a dataset and a solver become a model version with its measures, or one for each C of a path."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.errors import Conflict
from app.schemas.jobs import TrainRequest
from app.services import versions
from app.store import tables
from app.store.corpus import open_corpus
from app.store.files import Files, files
from solvers.base import Params, Solver, State
from solvers.model import Model
from solvers.path import ascending, follow
from solvers.problem import Problem
from solvers.registry import find, parse_params
from solvers.version import VERSION
from workers.driving import Outcome, Reached, Run, drive
from workers.featuring import Featured, featured
from workers.journal import Journal
from workers.rows import Rows, split_rows
from workers.scoring import measures
from workers.trees import hierarchy_id, label_tree


def train(journal: Journal) -> None:
    """Train, measure, save, and end the job together with the model's new version, the last one of a path."""
    lease, store = journal.lease, files()
    request = TrainRequest.model_validate(lease.request)
    journal.phase("loading")
    dataset = journal.read(lambda session: session.get(tables.Dataset, lease.dataset_id))
    if dataset is None or dataset.path is None:
        raise Conflict("the dataset is not ready, or was deleted")
    corpus = open_corpus(store, dataset.path)
    tree = label_tree(journal, request)
    rows = split_rows(corpus, request, tree)
    journal.phase("features")
    data = featured(corpus, rows, request.text)
    problem = rows.problem(data.X_train)
    solver: Solver[Any] = find(request.solver)(
        parse_params(request.solver, request.params), seed=request.seed, threads=request.threads
    )
    machines = [solver] if request.path is None else ascending(solver, request.path)
    _follow(machines, _Publisher(journal, store, request, dataset, problem, data, rows))
    store.delete(f"jobs/{lease.job_id}")


def _follow(machines: Sequence[Any], publisher: "_Publisher") -> None:
    """Train for one C after the other, and publish a version for each; the last one ends the job.

    A version is published once: one that an earlier attempt has published, later than its last checkpoint, is trained
    again, as the next C begins from there, and passed over.
    """
    journal = publisher.journal
    published = journal.read(lambda session: versions.of_job(session, journal.lease.job_id))
    run = Run(journal, publisher.store, len(machines))
    resumed = run.resume()

    def train(point: int, machine: Solver[Any], start: State | None) -> State:
        journal.phase("training", at_once=False, point=point)
        outcome = drive(run, machine, publisher.problem, point, start)
        if point == len(machines) - 1:
            journal.succeed(publisher.finish(machine, outcome))
        elif point not in published:
            journal.publish(publisher.finish(machine, outcome))
        return outcome.state

    if resumed is None:
        follow(machines, publisher.problem, train)
    else:
        follow(machines, publisher.problem, train, first=resumed.reached.point, start=resumed.state)


@dataclass(frozen=True, eq=False)
class _Publisher:
    """Measures and saves what was trained, and makes versions of it."""

    journal: Journal
    store: Files
    request: TrainRequest
    dataset: tables.Dataset
    problem: Problem
    data: Featured
    rows: Rows

    def finish(self, solver: Solver[Any], outcome: Outcome) -> Callable[[Session], dict[str, Any]]:
        """Measure and save a model; what is left to do is the transaction that adds its version to the job's result."""
        done = (outcome.reached.point + 1) / len(self.request.path or [solver])
        self.journal.phase("testing", at_once=False, fraction=done, eta_seconds=None)
        model = solver.model(self.problem, outcome.state)
        metrics = measures(model, self.rows, self.problem.X, self.data.X_test)
        self.journal.phase("saving", at_once=False)
        facts = self._save(solver.params, outcome.reached, model)

        def add(session: Session) -> dict[str, Any]:
            number = versions.add(session, self.request.model, facts, metrics)
            every = versions.of_job(session, facts.job_id).values()
            return {"model": self.request.model, "version": number, "versions": list(every)}

        return add

    def _save(self, params: Params, reached: Reached, model: Model) -> versions.Facts:
        lease, dataset, data, tree = self.journal.lease, self.dataset, self.data, self.rows.tree
        path = f"models/{lease.job_id}.{lease.attempt}"
        if self.request.path is not None:
            path += f".{reached.point}"
        self.store.delete(path)
        manifest = {"kind": data.features.kind, "params": data.features.params_json()}
        features_sha256 = self.store.save_arrays(f"{path}/features", data.features.arrays(), manifest)
        lineage: dict[str, Any] = {
            "job": lease.job_id,
            "dataset_sha256": dataset.sha256,
            "hierarchy_sha256": None if tree is None else tree.sha256,
            "solver": self.request.solver,
            "params": params.model_dump(mode="json"),
            "seed": self.request.seed,
            "request": lease.request,
            "point": reached.point,
            "code_version": VERSION,
            "epochs": reached.epoch,
            "converged": reached.converged,
            "primal": reached.primal,
            "dual": reached.dual,
            "gap": reached.gap,
            "features_sha256": features_sha256,
        }
        sha256 = model.save(self.store.path(f"{path}/model"), lineage)
        return versions.Facts(
            job_id=lease.job_id,
            dataset_id=lease.dataset_id,
            dataset_sha256=dataset.sha256,
            solver=self.request.solver,
            params=lineage["params"],
            seed=self.request.seed,
            request=lease.request,
            code_version=VERSION,
            n_classes=len(model.classes),
            n_features=self.problem.n_features,
            n_train=self.problem.n_samples,
            epochs=reached.epoch,
            converged=reached.converged,
            primal=reached.primal,
            dual=reached.dual,
            gap=reached.gap,
            violation=reached.violation,
            seconds=reached.seconds - reached.began,
            path=path,
            point=reached.point,
            hierarchy_id=None
            if tree is None
            else self.journal.read(lambda session: hierarchy_id(session, lease.job_id)),
            hierarchy_sha256=lineage["hierarchy_sha256"],
            report={**model.report, **self.rows.report},
            sha256=sha256,
            size_bytes=sum(file.stat().st_size for file in self.store.path(path).rglob("*") if file.is_file()),
        )
