"""Models of a remote service: versions, aliases, predictions, and training a version again to compare it."""

import json
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import PrivateAttr

from app.exports.schemas import ExportFormat
from app.jobs.client import Jobs
from app.jobs.schemas import Reproduction, stored_request
from app.models.schemas import (
    AliasTarget,
    Deletion,
    Model,
    ModelVersion,
    MovedAlias,
    Restored,
    Retention,
    RetentionRule,
    Selection,
)
from app.operation.schemas import Health
from app.predictions.client import Instance, Instances, Predictions, batches, from_matrix, from_table, index_of, listed
from app.predictions.inspection_schemas import ClassTerms, Drift, NearestRows, OutputCode, ThresholdCurve
from app.predictions.schemas import ModelInputs, SureLevel
from app.remote.errors import ClientError
from app.remote.files import post_file, receive_file
from app.remote.tables import is_table
from app.remote.transport import Resource, Transport, given
from app.schemas import Page

# in one request; services may be set to take more, or fewer
_MOST_INSTANCES = 1000
_MOST_LABELS = 100_000


class Version(ModelVersion):
    """A version, whose view in notebooks has the curve of its training."""

    _transport: Transport = PrivateAttr()


class Models(Resource):
    """The service's models."""

    def get(self, model: str) -> Model:
        return self._transport.get(Model, f"/models/{model}")

    def list(self, page_size: int = 50, page_token: str | None = None) -> Page[Model]:
        """One page, newest first."""
        return self._transport.get(Page[Model], "/models", page_size=page_size, page_token=page_token)

    def versions(self, model: str, page_size: int = 50, page_token: str | None = None) -> Page[ModelVersion]:
        """One page of a model's versions, newest first."""
        place = f"/models/{model}/versions"
        return self._transport.get(Page[ModelVersion], place, page_size=page_size, page_token=page_token)

    def version(self, model: str, version: int) -> Version:
        found = self._transport.get(Version, f"/models/{model}/versions/{version}")
        found._transport = self._transport
        return found

    def selection(self, model: str, version: int) -> Selection:
        """How a version was chosen: its trials, the best first, and the members of the pool."""
        return self._transport.get(Selection, f"/models/{model}/versions/{version}/selection")

    def set_alias(self, model: str, alias: str, version: int, revision: int | None = None) -> MovedAlias:
        """Let an alias name a version.

        Parameters
        ----------
        revision : int or None
            The revision that the alias has now; None: the alias is new.

        Raises
        ------
        PreconditionFailedError
            Another client made or moved the alias meanwhile.
        """
        body, path = AliasTarget(version=version), f"/models/{model}/aliases/{alias}"
        return self._transport.ask("PUT", MovedAlias, path, body, revision)

    def delete_alias(self, model: str, alias: str, revision: int | None = None) -> None:
        """Remove an alias; its version stays.

        Parameters
        ----------
        revision : int or None
            The revision that the alias has now; None: whatever it has.

        Raises
        ------
        PreconditionFailedError
            Another client has moved the alias meanwhile.
        """
        self._transport.send("DELETE", f"/models/{model}/aliases/{alias}", revision=revision)

    def code(
        self,
        model: str,
        version: int,
        first_class: int = 0,
        n_classes: int = 100,
        first_column: int = 0,
        n_columns: int = 100,
    ) -> OutputCode:
        """The output code of a version that has one, or a window of it."""
        return self._transport.get(
            OutputCode,
            f"{_place(model, version)}/code",
            first_class=first_class,
            n_classes=n_classes,
            first_column=first_column,
            n_columns=n_columns,
        )

    def thresholds(self, model: str, version: int) -> ThresholdCurve:
        """Precision against coverage of a version with probabilities, threshold by threshold."""
        return self._transport.get(ThresholdCurve, f"{_place(model, version)}/thresholds")

    def terms(self, model: str, version: int, label: str, limit: int = 20) -> ClassTerms:
        """The features that count most for a class of a linear machine, and against it."""
        return self._transport.get(ClassTerms, f"{_place(model, version)}/terms", label=label, limit=limit)

    def drift(self, model: str, version: int, days: int = 7) -> Drift:
        """How the answers of the last days differ from those to rows held out from the version's training."""
        return self._transport.get(Drift, f"{_place(model, version)}/drift", days=days)

    def drift_picture(self, model: str, version: int, days: int = 7, format: str = "svg") -> bytes:
        """The picture of :meth:`drift`: svg or png."""
        query = {"model": model, "version": version, "days": days, "format": format}
        return self._transport.send("GET", "/figures/drift", params=query).content

    def nearest(
        self, model: str, instance: Instance, label: str | None = None, limit: int = 5, version: int | None = None
    ) -> NearestRows:
        """The training rows of the predicted label, or of another, that are the most like an instance."""
        asked = {"text": instance} if isinstance(instance, str) else instance
        body = given(instance=asked, limit=limit, label=label, version=version)
        return self._transport.post(NearestRows, f"/models/{model}/nearest", body)

    def code_picture(self, model: str, version: int, format: str = "svg") -> bytes:
        """The picture of a version's output code, as svg or png."""
        query = {"model": model, "version": version, "format": format}
        return self._transport.send("GET", "/figures/code", params=query).content

    def predict(
        self,
        model: str,
        instances: Instances,
        top_k: int = 1,
        version: int | None = None,
        alias: str | None = None,
        threshold: float | None = None,
        min_precision: float | None = None,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        explain: int = 0,
        language: str | None = None,
        sure_level: SureLevel = "any",
        certain: bool = False,
        least_cost: bool = False,
        text_language: str | None = None,
    ) -> Predictions:
        """Labels and scores, one prediction an instance, in order; ``to_pandas()`` and ``to_polars()`` convert them.

        Many instances are sent in several requests, which one version answers.

        Parameters
        ----------
        instances : sequence, str, mapping, Series, DataFrame of pandas or polars, Arrow table, or sparse matrix
            One text, or one mapping, is one instance. Texts as plain str; ``{"text": ...}``,
            ``{"record": {column: value}}``, ``{"features": {name: value}}``, ``{"indices": ..., "values": ...}``; or
            dense rows, numpy arrays included. Of tables the columns are read that the model was trained on, and the
            others are left out.
        version, alias : int, str or None
            Which version answers; the latest where neither is given.

        threshold, min_precision : float or None
            One of them, of models with probabilities: each prediction's ``sure`` is then what is at least so probable,
            or from where on answers were right more often than this on rows held out, with a confidence of 95 %. Of
            models of sets ``sure_labels`` is the labels of which that holds, empty where no threshold reached it.
        include, exclude : sequence of str or None
            The only labels to answer with, and labels never to answer with; a node of a tree includes all below it.
        explain : int
            Of linear machines: how many features each prediction's ``explanation`` names for the label, and against it.
        language : str or None
            Give the labels' names in this language alone.
        certain : bool
            Say in ``certain`` of each answer whether the exact optimum of the training problem gives the same label.
        least_cost : bool
            Answer with the label of the least expected cost, given in ``expected_cost``; of versions of ``auto`` with
            costs.
        text_language : str or None
            The language of the texts, or ``auto`` to detect it; each prediction's ``unseen_language`` has it if hardly
            any training text was in it.
        sure_level : {"any", "leaves"} or int
            Along a label tree, what ``min_precision`` is of: answers at all levels together, labels alone, or nodes at
            a level, from 1.

        Raises
        ------
        ClientError
            There are no rows, or a column or a text is missing, or a number where the version was trained without
            missing values; or a table has names of columns, but the version knows only their order.
        InvalidInputError
            An instance does not fit the model; ``errors`` says which and why.
        """
        most = _MOST_INSTANCES
        has_columns = is_table(instances) or hasattr(instances, "tocsr")
        if has_columns:
            reads = self.inputs(model, version, alias)
            rows = from_table(instances, reads) if is_table(instances) else from_matrix(instances, reads)
            most, version, alias = reads.max_instances, reads.version, None
        else:
            rows = listed(instances)
        request = given(
            top_k=top_k,
            threshold=threshold,
            min_precision=min_precision,
            explain=explain or None,
            sure_level=None if sure_level == "any" else sure_level,
            certain=certain or None,
            least_cost=least_cost or None,
            language=language,
            text_language=text_language,
            include=include and list(include),
            exclude=exclude and list(exclude),
        )
        path, answer = f"/models/{model}/predict", None
        for batch in batches(rows, max(1, min(most, _MOST_LABELS // max(top_k, 1)))):
            body = {"instances": batch, **request}
            found = self._transport.post(Predictions, path, body, version=version, alias=alias)
            if answer is None:
                answer, version, alias = found, found.version, None
            else:
                answer.predictions += found.predictions
        assert answer is not None
        answer._index = index_of(instances)
        return answer

    def inputs(self, model: str, version: int | None = None, alias: str | None = None) -> ModelInputs:
        """The columns of a table that a version reads; the latest version where neither is given."""
        return self._transport.get(ModelInputs, f"/models/{model}/inputs", version=version, alias=alias)

    def export(self, model: str, version: int, path: str | Path, format: ExportFormat = "archive") -> int:
        """Write a version with all its files to ``path``, which appears whole or not at all; return its bytes.

        numpy reads the file (``numpy.load``), the script load.py in it predicts from it, and :meth:`import_archive`
        makes a version of it in another service.
        """
        place = f"{_place(model, version)}/export"
        return receive_file(self._transport, place, Path(path), {"format": format})

    def import_archive(self, path: str | Path, name: str | None = None) -> ModelVersion:
        """Make a version of an archive that :meth:`export` has written; every hash is compared.

        Parameters
        ----------
        name : str or None
            Of the model; by default the one that the archive names.

        Raises
        ------
        InvalidInputError
            The file is no archive, or its bytes differ from the listed hash.
        """
        return self._transport.parsed(
            ModelVersion, post_file(self._transport, "/models/import", Path(path), {"name": name})
        )

    def delete(self, model: str, version: int | None = None, dry_run: bool = False) -> Deletion:
        """Delete a version, or with None all versions of a model; for a time they can be restored.

        Parameters
        ----------
        dry_run : bool
            Only report what would be done.

        Raises
        ------
        ConflictError
            An alias or a job that is not over holds it; ``errors`` has each of these.
        """
        return self._transport.ask("DELETE", Deletion, _place(model, version), dry_run=dry_run or None)

    def restore(self, model: str, version: int | None = None) -> Restored:
        """Bring a deleted version back, or with None the versions of a model that were deleted last."""
        return self._transport.post(Restored, f"{_place(model, version)}/restore")

    def describe(self, model: str, **about: Any) -> Model:
        """Say what a model is for; its page and its model cards show it.

        Parameters
        ----------
        model : str
            Id or name.
        **about
            Fields of app.models.schemas.ModelAbout: license, languages, intended_use, limitations, contact. A None
            removes a field; what is not given stays.
        """
        return self._transport.ask("PATCH", Model, _place(model, None), about)

    def change(
        self,
        model: str,
        version: int,
        tags: Mapping[str, str | None] | None = None,
        notes: str | None = None,
        revision: int | None = None,
    ) -> ModelVersion:
        """Set tags (a None takes one away) and notes of a version; what is not given stays.

        Parameters
        ----------
        revision : int or None
            The revision that the version has now; None: whatever it has.

        Raises
        ------
        PreconditionFailedError
            Another client has changed them meanwhile.
        """
        body = given(tags=None if tags is None else dict(tags), notes=notes)
        return self._transport.ask("PATCH", ModelVersion, _place(model, version), body, revision)

    def retention(self, model: str) -> Retention:
        """How many of a model's versions are kept, and which ones go by that now."""
        return self._transport.get(Retention, f"/models/{model}/retention")

    def set_retention(self, model: str, keep_last: int | None, dry_run: bool = False) -> Retention:
        """Keep so many of a model's newest versions (None: all), and whatever an alias names."""
        rule, path = RetentionRule(keep_last=keep_last), f"/models/{model}/retention"
        return self._transport.ask("PUT", Retention, path, rule, dry_run=dry_run or None)


def _place(model: str, version: int | None) -> str:
    return f"/models/{model}" if version is None else f"/models/{model}/versions/{version}"


# what the arrays of the measured model are called, all together
MEASURED = "measured"


def reproduce(transport: Transport, model: str, version: int, keep: bool, timeout: float | None) -> Reproduction:
    """Submit the request of a version again, wait, and compare the arrays of model and features by their hashes.

    Raises
    ------
    ClientError
        The dataset or the label tree of the version is gone, or the version is a copy or was trained elsewhere.
    JobFailedError, TimedOutError
        The job did not succeed.
    """
    models, jobs = Models(transport), Jobs(transport)
    found = models.version(model, version)
    if found.copy_of is not None:
        raise ClientError(f"Version {version} is a copy of version {found.copy_of.version}: reproduce that one")
    if found.edition_of is not None:
        raise ClientError(
            f"Version {version} has adopted an edition: reproduce version {found.edition_of.version} instead"
        )
    if found.dataset is None:
        raise ClientError(f"The dataset of version {version} was deleted, so it cannot be trained again")
    if found.request.get("hierarchy") is not None and found.hierarchy is None:
        raise ClientError(f"The label tree of version {version} was deleted")
    name = f"{found.model[:110]}.reproduced"
    with tempfile.TemporaryDirectory() as folder:
        first, shards = _hashes(models, model, version, Path(folder))
    # a job may have been trained in fewer shards than it asked for
    given = stored_request(found.request).model_copy(update={} if shards is None else {"shards": shards})
    resolved = given.model_copy(update={"dataset": found.dataset, "model": name, "hierarchy": found.hierarchy})
    request: dict[str, Any] = {"kind": "train", **resolved.model_dump(mode="json", exclude_defaults=True)}
    running = transport.get(Health, f"{transport.url}/healthz").version
    job = jobs.submit(request).wait(timeout)
    assert job.result is not None
    again = job.result.versions[found.point]
    with tempfile.TemporaryDirectory() as folder:
        second, _ = _hashes(models, name, again, Path(folder))
    first |= _measured(models, model, version)
    second |= _measured(models, name, again)
    if not keep:
        for number in job.result.versions:
            models.delete(name, number)
    return Reproduction(
        model=found.model,
        version=version,
        same=first == second,
        arrays=len(first),
        differing=sorted(each for each in first.keys() | second.keys() if first.get(each) != second.get(each)),
        code_version=found.code_version,
        code_version_now=running,
        job=job.id,
        reproduced_model=name if keep else None,
        reproduced_version=again if keep else None,
    )


def _measured(models: Models, model: str, version: int) -> dict[str, str]:
    """The hash of the arrays of the measured model, where the served one was trained on all rows."""
    refit = models.version(model, version).refit
    return {} if refit is None or refit.arrays_sha256 is None else {MEASURED: refit.arrays_sha256}


def _hashes(models: Models, model: str, version: int, folder: Path) -> tuple[dict[str, str], int | None]:
    """SHA-256 of every array of a version, and in how many class shards it was trained; None: in one worker."""
    path = folder / f"{version}-{model[-20:]}.npz"
    models.export(model, version, path)
    with zipfile.ZipFile(path) as archive:
        files = json.loads(archive.read("archive.json"))["files"]
        shards = json.loads(archive.read("model/manifest.json"))["details"].get("shards")
    path.unlink()
    hashes = {name: file["sha256"] for name, file in files.items() if name.endswith(".npy")}
    return hashes, None if shards is None else len(shards)
