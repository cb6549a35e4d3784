"""What was trained becomes a version of a model: measured, saved, and added in one transaction."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import structlog
from sqlalchemy.orm import Session

from app.hierarchies.version_labels import KEPT
from app.jobs.schemas import TrainRequest
from app.models import convergence, versions
from app.models.schemas import RefitReport
from app.predictions import answer_reference
from app.schemas import OPTIONS
from app.store.disk_space import writing_to
from app.store.files import Files
from app.version import VERSION
from solvers.core.base import Solver, State
from solvers.core.certain_answers import certain
from solvers.core.model import Model
from workers.phases import warm_starts
from workers.phases.driving import Outcome, Reached
from workers.phases.preparation import Prepared, hierarchy_id
from workers.phases.refitting import NotRefit, Refit
from workers.phases.scoring import measures, require_finite
from workers.running.job_context import JobContext

_log = structlog.get_logger("polymargin.worker")
Save = Callable[[Path, Mapping[str, Any]], str]


@dataclass(frozen=True)
class Tuned:
    """The trial whose settings a version has, as in the job's result and in the version's manifest."""

    result: Mapping[str, Any]
    lineage: Mapping[str, Any]


class Measured(NamedTuple):
    """What was measured of a model.

    Attributes
    ----------
    solver : Solver
        Which has trained it.
    metrics : mapping
        Part, measure, value.
    expected : AnswerReference or None
        How it answers to rows held out.
    kept : Written or None
        Where it is kept beside a model that is trained on all rows.
    """

    solver: Solver[Any]
    metrics: Mapping[str, Mapping[str, float]]
    expected: answer_reference.AnswerReference | None
    kept: "Written | None" = None


class Written(NamedTuple):
    """The files of a model: their path, the SHA-256 of their manifest, and the lineage in it."""

    path: str
    sha256: str
    lineage: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class NewVersion:
    """A version whose files are written, and which is added in the transaction that publishes it.

    Attributes
    ----------
    facts : Facts
    metrics : mapping
        Part, measure, value.
    result : mapping
        What else the job's result says of it.
    """

    model: str
    facts: versions.Facts
    metrics: Mapping[str, Mapping[str, float]]
    result: Mapping[str, Any]

    def add(self, session: Session) -> dict[str, Any]:
        """Add it, and return the job's result."""
        number = versions.add(session, self.model, self.facts, self.metrics)
        every = versions.of_job(session, self.facts.job_id).values()
        reason = convergence.unconverged_of_job(session, self.facts.job_id)
        doubt = {} if reason is None else {"unconverged": reason}
        unlearnt = convergence.unlearnt(self.metrics)
        if unlearnt is not None:
            doubt["warning"] = unlearnt
            _log.warning("nothing_learnt", job_id=self.facts.job_id, reason=unlearnt)
        return {"model": self.model, "version": number, "versions": list(every), **doubt, **self.result}


@dataclass(frozen=True, eq=False)
class Publisher:
    """Measures and saves what was trained, and makes versions of it.

    Attributes
    ----------
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

    def measured(self, model: Model, solver: Solver[Any], outcome: Outcome, *, keep: bool = False) -> Measured:
        """Measure a model, and note how it answers to rows held out; ``keep``: write it beside the one to be served."""
        data = self.prepared.data.read_by(model)
        require_finite(model)
        self._record(model)
        metrics = measures(model, self.prepared.rows, data.X_train, data.X_test, outcome.right)
        expected = answer_reference.answer_reference(model, data.X_test)
        found = Measured(solver, metrics, expected)
        if not keep:
            return found
        path = f"{self.folder(outcome.reached)}/{versions.MEASURED}"
        return found._replace(kept=self._write(path, self.prepared, found, outcome.reached, model, None, {}))

    def written(
        self,
        measured: Measured,
        outcome: Outcome,
        model: Model | None,
        refit: Refit | NotRefit | None = None,
        save: Save | None = None,
        lineage: Mapping[str, Any] | None = None,
        *,
        stopped: bool = False,
    ) -> NewVersion:
        """Write the model that is served.

        Parameters
        ----------
        outcome : Outcome
            The end of the measured model's training.
        model : Model or None
            The measured one; not needed where it was trained again on all rows.
        refit : Refit or NotRefit, optional
            The same trained on all rows, which is served then, or why it is not; None where nothing was held out that
            could be trained on, or the request does not want it.
        save : callable, optional
            Takes the new folder of the model and its lineage, and returns the SHA-256; by default, ``model.save``.
        lineage : mapping, optional
            Further fields of the manifest.
        stopped : bool
            The time limit has ended the training.
        """
        reached, prepared = outcome.reached, self.prepared
        path = self.folder(reached)
        if isinstance(refit, Refit):
            reached, served, prepared = refit.outcome.reached, refit.model, refit.prepared
        else:
            assert model is not None
            served = model
            self.store.delete(f"{path}/{versions.MEASURED}")
        self._record(served)
        end = {"stopped": "time_limit"} if stopped else {}
        tuned = {} if self.tuned is None else {"tuning": dict(self.tuned.lineage)}
        reported = None if refit is None else self._reported(measured, outcome.reached, prepared, refit)
        twin = {} if reported is None else {"refit": reported.model_dump(mode="json")}
        duals = self._duals(path, measured.solver, outcome.state)
        more = {**duals, **(lineage or {}), **tuned, **end, **twin}
        written = self._write(path, prepared, measured, reached, served, save, more)
        facts = self._facts(path, prepared, measured, reached, served, written, reported)
        found = {} if self.tuned is None else dict(self.tuned.result)
        if isinstance(refit, NotRefit):
            found["not_refit"] = refit.reason
        return NewVersion(self.request.model, facts, measured.metrics, {**end, **found})

    def _record(self, model: Model) -> None:
        if self.prepared.rows.unknown:
            model.record = {**model.record, "unknown_labels": dict(self.prepared.rows.unknown)}

    def _reported(self, measured: Measured, reached: Reached, served: Prepared, refit: Refit | NotRefit) -> RefitReport:
        kept = measured.kept if isinstance(refit, Refit) else None
        return RefitReport(
            n_test=len(self.prepared.rows.test),
            n_measured=len(self.prepared.rows.train),
            n_served=len(served.rows.train),
            reason=refit.reason if isinstance(refit, NotRefit) else None,
            sha256=None if kept is None else kept.sha256,
            arrays_sha256=None if kept is None else self._arrays_sha256(kept.path),
            epochs=reached.epoch,
            converged=reached.converged,
            gap=reached.gap,
            seconds=reached.seconds - reached.began,
        )

    def _arrays_sha256(self, path: str) -> str:
        """The hash of those of all arrays of a model and its features."""
        parts = {part: self.store.manifest(f"{path}/{part}")["arrays"] for part in ("model", "features")}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _write(
        self,
        path: str,
        prepared: Prepared,
        measured: Measured,
        reached: Reached,
        model: Model,
        save: Save | None,
        more: Mapping[str, Any],
    ) -> Written:
        """Write features and model of a version, or of the measured model beside it."""
        lease, tree, features = self.context.lease, prepared.rows.tree, prepared.data.features_read_by(model)
        self.store.delete(f"{path}/features")
        manifest = {"kind": features.kind, "params": features.params_json()}
        features_sha256 = self.store.save_arrays(f"{path}/features", features.arrays(), manifest)
        expected = measured.expected
        lineage: dict[str, Any] = {
            "job": lease.job_id,
            "dataset_sha256": prepared.dataset.sha256,
            "hierarchy_sha256": None if tree is None else tree.sha256,
            "solver": self.request.solver,
            "params": measured.solver.params.model_dump(mode="json"),
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
        folder = self.store.path(f"{path}/model")
        with writing_to(folder, model.nbytes):
            sha256 = (save or model.save)(folder, lineage)
        self.store.publish(f"{path}/model")
        return Written(path, sha256, lineage)

    def _facts(
        self,
        path: str,
        prepared: Prepared,
        measured: Measured,
        reached: Reached,
        model: Model,
        written: Written,
        reported: RefitReport | None,
    ) -> versions.Facts:
        lease, lineage, tree = self.context.lease, written.lineage, prepared.rows.tree
        shares = {}
        if prepared.certain is not None and model.reach is not None:
            shares["certain_rows"] = float(certain(model, prepared.rows_to_answer).mean())
        return versions.Facts(
            job_id=lease.job_id,
            dataset_id=lease.dataset_id,
            dataset_sha256=prepared.dataset.sha256,
            solver=self.request.solver,
            params=lineage["params"],
            seed=self.request.seed,
            request=lineage["request"],
            code_version=VERSION,
            n_classes=len(model.classes),
            n_features=prepared.data.features_read_by(model).n_given,
            n_train=prepared.problem.n_samples,
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
            report={**model.report, **self.prepared.rows.report, **shares},
            sha256=written.sha256,
            size_bytes=sum(self.store.sizes(path).values()),
            refit=None if reported is None else reported.model_dump(mode="json"),
        )

    def _asked(self) -> dict[str, Any]:
        """The request that leads to this version; of a tuning the training of what it has chosen."""
        if self.tuned is None:
            return self.context.lease.request
        return self.request.model_dump(mode="json", exclude=set(OPTIONS))

    def _duals(self, path: str, solver: Solver[Any], state: State | None) -> Mapping[str, Any]:
        """Save the state that later trainings can start from; return the lineage of it and of this training's start."""
        prepared, request = self.prepared, self.request
        if prepared.split is not None:
            warm_starts.save_split(self.store, path, prepared.split)
        if not request.keep_duals or not state:
            return warm_starts.reported(request, None)
        rows = prepared.rows.train
        sha256 = warm_starts.save(self.store, path, solver, prepared.problem, state, rows, prepared.n_rows)
        return warm_starts.reported(request, sha256)

    def _labels(self, model: Model) -> dict[str, Any]:
        """What the version keeps of the hierarchy's labels: those of all nodes, if its answers may name any."""
        tree = self.prepared.rows.tree
        every = tree is not None and not (model.tree is None and model.back_off is None)
        return self.prepared.labels.kept(tree.names if tree is not None and every else model.classes)
