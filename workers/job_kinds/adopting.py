"""Jobs that adopt an edition of a vocabulary: its concepts are answered by the machine and the ranker of a version."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from app.errors import InvalidInput
from app.features.named_text import NamedTableFeatures, NamedTextFeatures
from app.hierarchies.version_labels import KEPT, VersionLabels, of_hierarchy
from app.jobs import version_requests
from app.jobs.request_schemas import AdoptRequest, EditionOf
from app.jobs.schemas import TrainRequest, stored_request
from app.models import versions
from app.models.rows import texts_of
from app.models.warm_starts import saved_split
from app.predictions.model_cache import load_version
from app.store import tables
from app.store.files import Files, files
from solvers.labels.label_sets import own_labels
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.comparison import paired_bootstrap
from solvers.metrics.outcomes import Outcomes
from solvers.metrics.ranking import propensities
from solvers.numerics.array_types import Ints
from workers.phases import deriving
from workers.phases.evaluated_rows import EvaluatedRows, evaluated_rows, labelled, labels_of, training_counts
from workers.phases.featuring import names_of_nodes
from workers.phases.preparation import hierarchy_id, vocabulary
from workers.phases.splitting import Rows, split_rows, with_extra_labels
from workers.running.job_context import JobContext

_NDCG = "ndcg@10"


def adopt(context: JobContext) -> None:
    """Put the edition in place of the version's own, write, measure on held-out rows, and add the new version."""
    store, request = files(), AdoptRequest.model_validate(context.lease.request)
    with threadpool_limits(1):
        context.phase("loading")
        evaluation = version_requests.measuring(request)
        before = evaluated_rows(context, store, evaluation)
        loaded = before.loaded
        source = deriving.source_of(context, before)
        edition = _edition(context, request, before)
        context.phase("features", at_once=False)
        path = deriving.new_folder(context, store)
        after, rows = _adopted(store, edition, before, source)
        if loaded.measured:
            _write(context, store, edition, after, source, f"{path}/{versions.MEASURED}")
            served = context.read(lambda session: load_version(session, loaded.version))
            whole, _ = _adopted(store, edition, replace(before, loaded=served), source)
        else:
            whole = after
        sha256 = _write(context, store, edition, whole, source, path)
        if rows is not None:
            after = _with_frequencies(after, rows, evaluation.propensity_a, evaluation.propensity_b)
        outcomes = deriving.outcomes_of(context, before, after)
        context.phase("saving", at_once=False)
        summary = _summary(request, source, edition, before, outcomes)
        metrics = deriving.metrics_of(context, source, summary.dataset_sha256, summary.part, outcomes[1])
        lost = rows is not None and bool(rows.unknown) and source.request.get("unknown_labels", "refuse") == "refuse"
        changes = {
            "edition_of": summary.model_dump(mode="json"),
            "hierarchy_id": context.read(lambda session: hierarchy_id(session, context.lease.job_id)),
            "hierarchy_sha256": edition.tree.sha256,
            # labels of rows that the edition has given up are left out, as they were here
            "request": source.request | {"hierarchy": request.hierarchy} | ({"unknown_labels": "drop"} if lost else {}),
            "n_classes": edition.tree.n_nodes,
            "n_features": whole.loaded.features.n_given,
            "report": source.report,
        }
        name = loaded.version.model
        context.succeed(deriving.adding(context, store, source, name, path, sha256, metrics, changes))


@dataclass(frozen=True, eq=False)
class _Edition:
    """The edition that is adopted.

    Attributes
    ----------
    labels : VersionLabels
        Also with the names of concepts that they replace, by which texts are searched.
    new_of_old : int64 array, shape (n_old,)
        The node that takes the place of each concept of the source; -1 where none does.
    """

    tree: Taxonomy
    labels: VersionLabels
    new_of_old: Ints

    @property
    def lineage(self) -> Mapping[str, Any]:
        """Fields of the manifest."""
        return {"hierarchy_sha256": self.tree.sha256, KEPT: self.labels.kept(self.tree.names)}


def _edition(context: JobContext, request: AdoptRequest, before: EvaluatedRows) -> _Edition:
    model = before.loaded.model
    tree, labels = vocabulary(context, context.lease.job_id, request)
    assert tree is not None
    extra = set(model.record.get("unknown_labels", ())) & set(model.classes) - set(tree.names)
    tree = with_extra_labels(tree, extra) if extra else tree
    labels = replace(labels, nodes=frozenset(tree.names))
    number = {name: at for at, name in enumerate(tree.names)}
    earlier, id = before.loaded.labels, before.loaded.version.hierarchy
    if id is not None:  # it has all names, of which versions keep the preferred and the former ones
        stored = context.read(lambda session: of_hierarchy(session, id))
        earlier = replace(stored, former=earlier.former)
    labels = labels.with_names_of(model.classes, earlier)
    new_of_old = np.array([number.get(labels.node_of(name), -1) for name in model.classes], np.int64)
    return _Edition(tree, labels, new_of_old)


def _adopted(
    store: Files, edition: _Edition, before: EvaluatedRows, source: tables.ModelVersion
) -> tuple[EvaluatedRows, Rows | None]:
    """The same rows with the model over the concepts of the edition; its training rows, where they are known."""
    loaded, tree, labels = before.loaded, edition.tree, edition.labels
    features, rows, counted = loaded.features, None, None
    if not isinstance(features, (NamedTextFeatures, NamedTableFeatures)):
        number = loaded.version.version
        raise InvalidInput(f"version {number} does not find concepts by their names: train on the new edition")
    features = features.with_names(*names_of_nodes(tree, edition.labels, features.text_recipe))
    corpus, _ = labels.mapped(before.corpus)
    block = features.block()
    if before.dataset.sha256 == source.dataset_sha256:
        of_all = loaded.version.refit is not None and loaded.version.refit.reason is None and not loaded.measured
        split = np.zeros(corpus.n_rows, np.int8) if of_all else saved_split(store, source.path)
        rows = split_rows(corpus, _training(source), tree, labels, split)
        texts = texts_of(corpus, rows.train, features.text_recipe)
        assert texts is not None
        counted = _own(rows, tree), block.named(features.matches(texts))
    try:
        model = loaded.model.with_concepts(tree, block, edition.new_of_old, counted)
    except ValueError as error:
        raise InvalidInput(f"version {loaded.version.version} cannot adopt an edition: {error}") from error
    loaded = replace(loaded, model=model, features=features, labels=labels)
    known, truth, n_unknown = labelled(corpus, before.rows, labels_of(model, None), labels)
    after = replace(
        before, loaded=loaded, corpus=corpus, labels=known, truth=truth, n_unknown=n_unknown, inverse=None, n_own=None
    )
    return after, rows


def _training(source: tables.ModelVersion) -> TrainRequest:
    """The request of the training; labels of rows that are no concepts any more are dropped."""
    request = stored_request(source.request)
    rule = "drop" if request.unknown_labels == "refuse" else request.unknown_labels
    return request.model_copy(update={"unseen_labels": "count", "unknown_labels": rule})


def _own(rows: Rows, tree: Taxonomy) -> sp.csr_matrix:
    """The own labels of training rows: bool, shape (n_train, n_nodes)."""
    truth = rows.truth_train
    if isinstance(truth, sp.csr_matrix):
        return sp.csr_matrix(own_labels(truth, tree.parents))
    there = np.flatnonzero(truth >= 0)
    return sp.csr_matrix((np.ones(len(there), bool), (there, truth[there])), shape=(len(truth), tree.n_nodes))


def _with_frequencies(after: EvaluatedRows, rows: Rows, a: float, b: float) -> EvaluatedRows:
    """The rows with how often training rows have each label, on which some measures depend."""
    assert rows.tree is not None
    names, counts = after.labels.names, training_counts(rows)
    inverse = 1 / propensities(np.array([counts.get(name, 0) for name in names]), len(rows.train), a, b)
    own = dict(zip(rows.tree.names, np.asarray(_own(rows, rows.tree).sum(axis=0)).ravel().tolist(), strict=True))
    n_own = np.array([own.get(name, 0) for name in names], np.int64)
    return replace(after, inverse=inverse, n_train=len(rows.train), n_own=n_own)


def _write(
    context: JobContext, store: Files, edition: _Edition, data: EvaluatedRows, source: tables.ModelVersion, path: str
) -> str:
    """The files of a model and its features; returns the SHA-256 of the model's manifest."""
    features = data.loaded.features
    manifest = {"kind": features.kind, "params": features.params_json()}
    features_sha256 = store.save_arrays(f"{path}/features", features.arrays(), manifest)
    of = {"version": source.number, "version_sha256": source.sha256, "request": context.lease.request}
    changes = {**edition.lineage, "edition_of": of}
    return deriving.write_model(context, store, path, data, source, features_sha256, changes)


def _summary(
    request: AdoptRequest,
    source: tables.ModelVersion,
    edition: _Edition,
    before: EvaluatedRows,
    outcomes: tuple[Outcomes, Outcomes],
) -> EditionOf:
    places = edition.new_of_old
    successors, n_before = np.unique(places[places >= 0], return_counts=True)
    first, second = (each.by_row()[_NDCG] for each in outcomes)
    there = ~(np.isnan(first) | np.isnan(second))
    first, second = first[there], second[there]
    gain = paired_bootstrap(second, first, resamples=deriving.RESAMPLES, confidence=deriving.CONFIDENCE, seed=0)
    assert request.part is not None
    return EditionOf(
        version=source.number,
        version_sha256=source.sha256,
        hierarchy_sha256=source.hierarchy_sha256,
        gap=source.gap,
        appeared=edition.tree.n_nodes - len(successors),
        gone=int((places < 0).sum()),
        merged=int(n_before[n_before > 1].sum()),
        dataset_sha256=before.dataset.sha256,
        part=request.part,
        n_rows=len(before.rows),
        agreement=deriving.agreement(*outcomes, renamed=edition.labels.node_of),
        ndcg_source=float(np.mean(first, dtype=np.float64)),
        ndcg=float(np.mean(second, dtype=np.float64)),
        gain_low=gain.low,
        gain_high=gain.high,
    )
