"""Models in memory: found by name, kept while they fit, shared by all threads of a process."""

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from app.datasets.statistics_schemas import LabelType
from app.errors import Conflict, NotFound, PolymarginError, Unavailable
from app.features.base import Features
from app.features.load import load_features
from app.formats.label_forms import label_form, label_type
from app.hierarchies.version_labels import VersionLabels, of_details
from app.jobs import job_requests
from app.models import service as models
from app.models import versions
from app.models.schemas import ModelVersion
from app.predictions import answer_reference
from app.predictions.answer_counts import AnswerCounts, VersionCounts
from app.predictions.answer_reference import AnswerReference
from app.predictions.arriving import Arrival, has_rows, without_weights
from app.predictions.first_answers import ReadAhead, load_loops_of
from app.predictions.sure_answers import prepare
from app.short_cache import Remembered
from app.store import tables
from app.store.buckets import StorageAway
from app.store.db import reading
from app.store.failures import FAILURES
from app.store.files import Files, files
from app.store.scope import Scope, confine
from solvers.core.model import Model
from solvers.core.stored_models import ModelError, load_model
from solvers.labels.taxonomy import Taxonomy

# workspace, name or id, number, alias
Reference = tuple[str, str, int | None, str | None]


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A version with its arrays mapped into memory.

    Attributes
    ----------
    labels : VersionLabels
        What it knows of its labels beside the arrays.
    reference : AnswerReference or None
        How it answers to held-out rows.
    counts : VersionCounts or None
        Where its answers are counted, of one that is served.
    read_ahead : ReadAhead or None
        Of one that is served: whether its arrays are in the system's cache yet.
    arrival : Arrival or None
        Of one whose weights are not all here: ``model`` has NaN in place of them.
    measured : bool
        It is the measured model of a version whose served one was trained on all rows.
    languages : frozenset of str
        Those that at least 1 % of the training texts are in, and those of its recipe; empty if they are not known.
    """

    version: ModelVersion
    model: Model
    features: Features
    nbytes: int
    labels: VersionLabels = field(default_factory=VersionLabels)
    reference: AnswerReference | None = None
    counts: VersionCounts | None = None
    read_ahead: ReadAhead | None = None
    arrival: Arrival | None = None
    measured: bool = False
    languages: frozenset[str] = frozenset()

    @property
    def on_disk(self) -> bool:
        """Whether some of the arrays may have to be read from the disk, or the network, to answer."""
        return self.arrival is not None or (self.read_ahead is not None and not self.read_ahead.over)

    @cached_property
    def nodes(self) -> Collection[str]:
        """The names of all nodes of the model's label tree; none where it has no tree."""
        return frozenset(() if self.model.tree is None else self.model.tree.names)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The index of each label among the model's classes."""
        return {label: index for index, label in enumerate(self.model.classes)}

    def label_form(self, label: str) -> str:
        """The label in the form that imports write: NFC, and canonical by the type of the model's classes.

        A label that the model knows as it is stays as it is: older versions have labels in other forms.
        """
        known = label in self.places or label in self.node_places
        return label if known else label_form(label, self._label_type)

    @cached_property
    def _label_type(self) -> LabelType:
        return label_type(self.model.classes)

    @property
    def tree(self) -> Taxonomy | None:
        """The label tree that the model was trained along, also of models that do not go down it."""
        if self.model.tree is not None:
            return self.model.tree
        return None if self.model.back_off is None else self.model.back_off.tree

    def path(self, label: str) -> list[str] | None:
        """The labels from the top of the label tree to a label, itself the last; None where there is no tree."""
        found = self._paths.get(label)
        if found is None and self.tree is not None:
            node = self.node_places.get(label)
            names = self.tree.names
            found = [label] if node is None else [names[at] for at in self.tree.path(node).tolist()]
            self._paths[label] = found
        return found

    def is_seen(self, label: str) -> bool:
        """Whether the model learnt from rows of a label; models that do not know say yes."""
        scored = self.model.learnt
        return scored is None or self.places[label] in scored

    @cached_property
    def node_places(self) -> Mapping[str, int]:
        """The number of each node in the label tree that the model was trained along; none where there was no tree."""
        return {} if self.tree is None else {name: at for at, name in enumerate(self.tree.names)}

    @cached_property
    def other_parents(self) -> sp.csr_matrix:
        """Which nodes of the label tree have which others above them as well: int32, shape (n_nodes, n_nodes)."""
        places, n = self.node_places, len(self.node_places)
        pairs = [
            (places[label], places[other])
            for label, others in self.labels.other_parents.items()
            for other in others
            if label in places and other in places
        ]
        rows, columns = np.array(pairs, np.int64).reshape(-1, 2).T
        return sp.csr_matrix((np.ones(len(pairs), np.int32), (rows, columns)), shape=(n, n))

    @cached_property
    def _paths(self) -> dict[str, list[str]]:
        return {}


class ModelCache:
    """The most recently used models, up to ``max_bytes`` of arrays; one that is larger than that is kept alone.

    What a name or an alias means is asked again within each second, so that a promoted version answers within it, and
    with :class:`app.short_cache.Refreshing` ahead of it; then the version is loaded while the one
    before still answers, and let go once no name that is asked for means it.

    Parameters
    ----------
    sessions : sessionmaker
    """

    def __init__(self, sessions: sessionmaker[Session], max_bytes: int) -> None:
        self._sessions = sessions
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._loading: dict[str, threading.Lock] = {}
        self._opening: dict[str, threading.Lock] = {}
        self._ahead: dict[str, threading.Thread] = {}
        self._arriving: dict[str, LoadedModel] = {}
        self._superseded: set[str] = set()
        self.resolved = Remembered(self._resolve)
        self._loaded: OrderedDict[str, LoadedModel] = OrderedDict()
        self.counts = AnswerCounts(sessions)
        self._nbytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all models that are loaded."""
        return self._nbytes

    def ready(self, reference: Reference) -> LoadedModel | None:
        """The model that a reference means, if that is known without SQL and files; never waits."""
        id = self.resolved.ready(reference)
        if id is None:
            return None
        with self._lock:
            loaded = self._loaded.get(id)
            if loaded is not None:
                self._loaded.move_to_end(id)
            return loaded

    def get(self, reference: Reference, rows_suffice: bool = False) -> LoadedModel:
        """The model that a reference means.

        Parameters
        ----------
        rows_suffice : bool
            It may be one that still arrives, if the caller asks its ``arrival`` before it uses weights.

        Raises
        ------
        NotFound
            There is no such model, version or alias.
        Conflict
            The model has no version yet, a job is about to make it.
        Unavailable
            The model's files cannot be read.
        """
        loaded = self.ready(reference)
        if loaded is not None:
            return loaded
        id = self.resolved.get(reference)
        arriving = self._arrive(id) if rows_suffice and id not in self._loaded else None
        return self._load(id) if arriving is None else arriving

    def _arrive(self, id: str) -> LoadedModel | None:
        """A version of which requests read rows while it arrives; None where that is no use, or fails."""
        with self._lock:
            gate = self._opening.setdefault(id, threading.Lock())
        with gate:
            found = self._arriving.get(id)
            if found is None and id not in self._loaded:
                try:
                    with contextlib.suppress(ModelError, SQLAlchemyError, ValueError), self._sessions() as session:
                        found = self._opened(session, id)
                except OSError as error:
                    if isinstance(error, StorageAway):
                        raise  # the whole version is in the same place
                if found is not None:
                    self._arriving[id] = found
        return found

    def _opened(self, session: Session, id: str) -> LoadedModel | None:
        version, folder, store = models.version_by_id(session, id), models.folder(session, id), files()
        ranged = store.ranged(f"{folder}/model")
        if ranged is None or not has_rows(ranged):
            return None
        features, n_bytes = _features(store, folder)
        model = without_weights(ranged)
        read = _described(version, model, features, model.nbytes + n_bytes, ranged.manifest["details"])
        edges = None if read.reference is None else read.reference.edges
        arrival = Arrival(ranged, partial(self._arrived, id))
        languages = models.training_languages(session, version)
        return replace(read, counts=self.counts.for_version(id, edges), arrival=arrival, languages=languages)

    def _arrived(self, id: str) -> LoadedModel:
        try:
            return self._load(id)
        except NotFound:
            self._arriving.pop(id, None)
            raise

    def _load(self, id: str) -> LoadedModel:
        with self._lock:
            gate = self._loading.setdefault(id, threading.Lock())
        with gate, self._sessions() as session:
            loaded = self._loaded.get(id)
            if loaded is None:
                version = models.version_by_id(session, id)
                folder = models.folder(session, id)
                with contextlib.suppress(OSError, ValueError):  # load_version has the reason
                    files().local(f"{folder}/model")
                read_ahead = ReadAhead(files().path(folder))
                read = load_version(session, version)
                load_loops_of(read.model)
                edges = None if read.reference is None else read.reference.edges
                loaded = replace(read, counts=self.counts.for_version(id, edges), read_ahead=read_ahead)
            self._keep(loaded)
        return loaded

    def loaded(self) -> list[LoadedModel]:
        """All that are in memory."""
        with self._lock:
            return list(self._loaded.values())

    def _resolve(self, reference: Reference) -> str:
        """The id of the version; for as long as a new one is loaded beside, that of the one before if it is there."""
        self._let_go()
        with self._sessions() as session:
            id = _version_id(session, reference)
            before = self.resolved.known(reference)
            if before is not None and before != id:
                self._superseded.add(before)
            if before not in (None, id) and not _is_live(session, before):
                before = None
        if before in (None, id) or before not in self._loaded or id in self._loaded:
            self._ahead.pop(id, None)
            return id
        thread = self._ahead.get(id)
        if thread is None:
            thread = self._ahead[id] = threading.Thread(target=self._load_ahead, args=(id,), daemon=True)
            thread.start()
        if thread.is_alive():
            return before
        self._ahead.pop(id, None)
        return id

    def _let_go(self) -> None:
        """Forget versions that others took the place of, once no name that is asked for means them."""
        for id in self._superseded - self.resolved.values():
            self._superseded.discard(id)
            with self._lock:
                self._drop(id)

    def _drop(self, id: str) -> None:
        loaded = self._loaded.pop(id, None)
        if loaded is not None:
            self._nbytes -= loaded.nbytes
            self._loading.pop(id, None)
            self._opening.pop(id, None)
            self.counts.let_go(id)

    def _load_ahead(self, id: str) -> None:
        with contextlib.suppress(PolymarginError, *FAILURES):  # the next request tries itself and gets the error
            self._load(id)

    def _keep(self, loaded: LoadedModel) -> None:
        self._arriving.pop(loaded.version.id, None)
        with self._lock:
            if loaded.version.id not in self._loaded:
                self._loaded[loaded.version.id] = loaded
                self._nbytes += loaded.nbytes
            self._loaded.move_to_end(loaded.version.id)
            while self._nbytes > self._max_bytes and len(self._loaded) > 1:
                self._drop(next(iter(self._loaded)))


def _version_id(session: Session, reference: Reference) -> str:
    workspace, ref, number, alias = reference
    confine(session, Scope(workspace))
    try:
        with reading(session):
            return models.version_row(session, ref, number, alias).id
    except NotFound:
        if number is None and alias is None:
            _explain_waiting(session, ref)
        raise


def _is_live(session: Session, id: str | None) -> bool:
    V = tables.ModelVersion
    with reading(session):
        return session.scalar(select(V.id).where(V.id == id, V.deleted_at.is_(None))) is not None


def _explain_waiting(session: Session, name: str) -> None:
    J = tables.Job
    making = J.kind.in_(("train", "tune")), J.state.in_(("queued", "running"))
    waiting = next(job_requests.of_model(session, (name,), *making), None)
    if waiting is not None:
        raise Conflict(f"The model {name!r:.80} has no version yet; job {waiting.id} is {waiting.state}.")


def load_version(session: Session, version: ModelVersion, *, measured: bool = False) -> LoadedModel:
    """A version with its arrays mapped into memory; ``measured``: the model that its measures are of.

    Raises NotFound and Unavailable; Conflict where the measured model stayed where the version was trained.
    """
    store, folder = files(), models.folder(session, version.id)
    measured = measured and version.refit is not None and version.refit.reason is None
    if measured:
        folder = f"{folder}/{versions.MEASURED}"
        if not store.exists(f"{folder}/model"):
            raise Conflict(
                f"version {version.version} was trained on all rows of this dataset, and the measured model, which was "
                "trained without some of them, was not imported: evaluate it on other rows"
            )
    try:
        model, features, nbytes, details = load_folder(store, folder)
    except (ModelError, OSError, ValueError) as error:
        reason = f": {error.detail}" if isinstance(error, StorageAway) else "."
        raise Unavailable(f"The files of version {version.version} cannot be read{reason}") from error
    read = _described(version, model, features, nbytes, details)
    return replace(read, measured=measured, languages=models.training_languages(session, version))


def _described(
    version: ModelVersion, model: Model, features: Features, nbytes: int, details: Mapping[str, Any]
) -> LoadedModel:
    prepare(model)
    labels, reference = of_details(details), answer_reference.of_details(details)
    labels = replace(labels, nodes=frozenset(model.classes if model.tree is None else model.tree.names))
    return LoadedModel(version, model, features, nbytes, labels, reference)


def load_folder(store: Files, folder: str) -> tuple[Model, Features, int, Mapping[str, Any]]:
    """The model and the features in a folder, mapped into memory, their bytes, and the manifest's details.

    Raises
    ------
    ModelError, OSError, ValueError
        They cannot be read.
    """
    model, details = load_model(store.local(f"{folder}/model"), mmap=True)
    features, n_bytes = _features(store, folder)
    return model, features, model.nbytes + n_bytes, details


def _features(store: Files, folder: str) -> tuple[Features, int]:
    """The features of a version, and the bytes of their arrays."""
    arrays, manifest = store.load_arrays(f"{folder}/features")
    features = load_features(manifest["kind"], manifest["params"], _plain(arrays))
    return features, sum(array.nbytes for array in arrays.values())


def _plain(arrays: Mapping[str, Any]) -> dict[str, Any]:
    # Every slice of an np.memmap is another np.memmap, at several times the cost of a plain view of the same bytes.
    return {name: np.asarray(array) for name, array in arrays.items()}
