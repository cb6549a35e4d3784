"""What was trained becomes a version of a model: measured, saved, and added in one transaction."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sqlalchemy.orm import Session

from app.schemas.common.job_options import OPTIONS
from app.schemas.jobs.jobs import TrainRequest
from app.services.hierarchies.version_labels import KEPT
from app.services.models import versions
from app.services.predictions import answer_reference
from app.store.files import Files
from app.version import VERSION
from solvers.core.base import Params, State
from solvers.core.model import Model
from solvers.core.problem import ProblemError
from solvers.numerics.array_types import Bools
from solvers.registry import make
from workers.phases import warm_starts
from workers.phases.driving import Reached
from workers.phases.preparation import Prepared, hierarchy_id
from workers.phases.scoring import measures
from workers.running.job_context import JobContext, TimeUp

Save = Callable[[Path, Mapping[str, Any]], str]


@dataclass(frozen=True)
class Tuned:
    """The trial whose settings a version has: what the job's result and the version's manifest tell of it."""

    result: Mapping[str, Any]
    lineage: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Publisher:
    """Measures and saves what was trained, and makes versions of it.

    Attributes
    ----------
    context : JobContext
    store : Files
    request : TrainRequest
    prepared : Prepared
    tuned : Tuned or None
        Where a tuning has chosen the settings.
    """

    context: JobContext
    store: Files
    request: TrainRequest
    prepared: Prepared
    tuned: Tuned | None = None

    def folder(self, reached: Reached) -> str:
        """Where the version of that point of the job's path is kept."""
        path = f"models/{self.context.lease.job_id}.{self.context.lease.attempt}"
        return path if self.request.path is None else f"{path}.{reached.point}"

    def finish(
        self,
        params: Params,
        reached: Reached,
        made: Callable[[], Model],
        save: Save | None = None,
        lineage: Mapping[str, Any] | None = None,
        stopped: bool = False,
        state: State | None = None,
        right: Bools | None = None,
    ) -> Callable[[Session], dict[str, Any]]:
        """Make, measure and save a model; the transaction that adds its version to the job's result is left to do.

        Parameters
        ----------
        params : Params
        reached : Reached
        made : callable
            Returns the model.
        save : callable, optional
            Takes the new folder of the model and its lineage, and returns the SHA-256; by default, ``model.save``.
        lineage : mapping, optional
            What else the manifest shall tell.
        stopped : bool
            The time limit has ended the training.
        state : mapping of str to array, optional
            What the model is made of, where its dual variables may have to be kept.
        right : bool array, shape (n_train,), optional
            Training rows that the model is known to answer rightly: they are not scored again.

        Raises
        ------
        TimeUp
            It was stopped before there was a model.
        """
        problem, rows = self.prepared.problem, self.prepared.rows
        end = {"stopped": "time_limit"} if stopped else {}
        done = (reached.point + 1) / len(self.request.path or [params])
        self.context.phase("testing", at_once=False, fraction=done, eta_seconds=None)
        try:
            model = made()
        except ValueError:
            if stopped:
                raise TimeUp from None
            raise
        _require_finite(model)
        metrics = measures(model, rows, problem.X, self.prepared.data.X_test, right)
        self.context.phase("saving", at_once=False)
        tuned = {} if self.tuned is None else {"tuning": dict(self.tuned.lineage)}
        facts = self._save(params, reached, model, save or model.save, {**(lineage or {}), **tuned, **end}, state)

        def add(session: Session) -> dict[str, Any]:
            number = versions.add(session, self.request.model, facts, metrics)
            every = versions.of_job(session, facts.job_id).values()
            found = {} if self.tuned is None else dict(self.tuned.result)
            return {"model": self.request.model, "version": number, "versions": list(every), **end, **found}

        return add

    def _save(
        self, params: Params, reached: Reached, model: Model, save: Save, more: Mapping[str, Any], state: State | None
    ) -> versions.Facts:
        lease, dataset, data = self.context.lease, self.prepared.dataset, self.prepared.data
        problem, tree, path = self.prepared.problem, self.prepared.rows.tree, self.folder(reached)
        expected = answer_reference.answer_reference(model, data.X_test)
        self.store.delete(f"{path}/features")
        manifest = {"kind": data.features.kind, "params": data.features.params_json()}
        features_sha256 = self.store.save_arrays(f"{path}/features", data.features.arrays(), manifest)
        lineage: dict[str, Any] = {
            **self._duals(path, state),
            "job": lease.job_id,
            "dataset_sha256": dataset.sha256,
            "hierarchy_sha256": None if tree is None else tree.sha256,
            "solver": self.request.solver,
            "params": params.model_dump(mode="json"),
            "seed": self.request.seed,
            "request": self._asked(),
            "point": reached.point,
            "code_version": VERSION,
            "epochs": reached.epoch,
            "converged": reached.converged,
            "primal": reached.primal,
            "dual": reached.dual,
            "gap": reached.gap,
            "features_sha256": features_sha256,
            KEPT: self._labels(model),
            answer_reference.KEPT: None if expected is None else expected.kept(),
            **more,
        }
        sha256 = save(self.store.path(f"{path}/model"), lineage)
        return versions.Facts(
            job_id=lease.job_id,
            dataset_id=lease.dataset_id,
            dataset_sha256=dataset.sha256,
            solver=self.request.solver,
            params=lineage["params"],
            seed=self.request.seed,
            request=lineage["request"],
            code_version=VERSION,
            n_classes=len(model.classes),
            n_features=data.features.n_given,
            n_train=problem.n_samples,
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
            else self.context.read(lambda session: hierarchy_id(session, lease.job_id)),
            hierarchy_sha256=lineage["hierarchy_sha256"],
            report={**model.report, **self.prepared.rows.report},
            sha256=sha256,
            size_bytes=sum(file.stat().st_size for file in self.store.path(path).rglob("*") if file.is_file()),
        )

    def _asked(self) -> dict[str, Any]:
        """The request that leads to this version; of a tuning the training of what it has chosen."""
        if self.tuned is None:
            return self.context.lease.request
        return self.request.model_dump(mode="json", exclude=set(OPTIONS))

    def _duals(self, path: str, state: State | None) -> Mapping[str, Any]:
        """Keep what later trainings can begin from; what the lineage tells of that and of where this one began."""
        prepared, request = self.prepared, self.request
        if prepared.split is not None:
            warm_starts.save_split(self.store, path, prepared.split)
        if not request.keep_duals or state is None:
            return warm_starts.reported(request, None)
        solver = make(request.solver, request.params, seed=request.seed)
        rows = prepared.rows.train
        sha256 = warm_starts.save(self.store, path, solver, prepared.problem, state, rows, prepared.n_rows)
        return warm_starts.reported(request, sha256)

    def _labels(self, model: Model) -> dict[str, Any]:
        """What the version keeps of the hierarchy's labels: those of all nodes, if its answers may name any."""
        tree = self.prepared.rows.tree
        every = tree is not None and not (model.tree is None and model.back_off is None)
        return self.prepared.labels.kept(tree.names if tree is not None and every else model.classes)


def _require_finite(model: Model) -> None:
    """Raise ProblemError where weights have left the range of floats."""
    weights = model.linear_weights()
    if weights is None:
        return
    W = weights.W.data if isinstance(weights.W, sp.csr_matrix) else weights.W
    if not (_finite(W) and (weights.intercept is None or _finite(weights.intercept))):
        raise ProblemError("weights have left the range of floats: divide the features by a constant, or lower C")


def _finite(array: Any) -> bool:
    rows = max(1, (1 << 22) // max(1, array[:1].size))
    return all(bool(np.isfinite(array[at : at + rows]).all()) for at in range(0, len(array), rows))
