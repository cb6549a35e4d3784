"""Models of a remote service: versions, aliases, predictions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from app.remote.files import post_file, receive_file
from app.remote.transport import Transport
from app.schemas.common.pages import Page
from app.schemas.exports import ExportFormat
from app.schemas.models.deletions import Deletion, Restored, Retention, RetentionRule
from app.schemas.models.models import Alias, AliasTarget, Model, ModelVersion, Selection
from app.schemas.predictions.codes import OutputCode
from app.schemas.predictions.drift import Drift
from app.schemas.predictions.nearest import NearestRows
from app.schemas.predictions.predictions import PredictResponse
from app.schemas.predictions.terms import ClassTerms
from app.schemas.predictions.thresholds import ThresholdCurve

Instance = str | Mapping[str, Any] | Sequence[float]


class Models:
    """The service's models."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, model: str) -> Model:
        return self._transport.get(Model, f"/models/{model}")

    def list(self, page_size: int = 50, page_token: str | None = None) -> Page[Model]:
        """One page, newest first."""
        return self._transport.get(Page[Model], "/models", page_size=page_size, page_token=page_token)

    def versions(self, model: str, page_size: int = 50, page_token: str | None = None) -> Page[ModelVersion]:
        """One page of a model's versions, newest first."""
        place = f"/models/{model}/versions"
        return self._transport.get(Page[ModelVersion], place, page_size=page_size, page_token=page_token)

    def version(self, model: str, version: int) -> ModelVersion:
        return self._transport.get(ModelVersion, f"/models/{model}/versions/{version}")

    def selection(self, model: str, version: int) -> Selection:
        """How a version was chosen: its trials, the best first, and the members of the pool."""
        return self._transport.get(Selection, f"/models/{model}/versions/{version}/selection")

    def set_alias(self, model: str, alias: str, version: int, revision: int | None = None) -> Alias:
        """Let an alias name a version.

        Parameters
        ----------
        revision : int or None
            The revision that the alias has now; None: the alias is new.

        Raises
        ------
        PreconditionFailedError
            Somebody else made or moved the alias meanwhile.
        """
        headers = {"Content-Type": "application/json"}
        if revision is not None:
            headers["If-Match"] = f'"{revision}"'
        body = AliasTarget(version=version).model_dump_json().encode()
        response = self._transport.send("PUT", f"/models/{model}/aliases/{alias}", content=body, headers=headers)
        return Alias.model_validate_json(response.content)

    def delete_alias(self, model: str, alias: str, revision: int | None = None) -> None:
        """Remove an alias; its version stays.

        Parameters
        ----------
        revision : int or None
            The revision that the alias has now; None: whatever it has.

        Raises
        ------
        PreconditionFailedError
            Somebody else has moved the alias meanwhile.
        """
        headers = {} if revision is None else {"If-Match": f'"{revision}"'}
        self._transport.send("DELETE", f"/models/{model}/aliases/{alias}", headers=headers)

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
        """Precision against coverage of a version that tells probabilities, threshold by threshold."""
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
        body: dict[str, Any] = {
            "instance": {"text": instance} if isinstance(instance, str) else instance,
            "limit": limit,
        }
        more = {"label": label, "version": version}
        body |= {name: value for name, value in more.items() if value is not None}
        return self._transport.post(NearestRows, f"/models/{model}/nearest", body)

    def code_picture(self, model: str, version: int, format: str = "svg") -> bytes:
        """The picture of a version's output code: plotly (JSON), svg or png."""
        query = {"model": model, "version": version, "format": format}
        return self._transport.send("GET", "/figures/code", params=query).content

    def predict(
        self,
        model: str,
        instances: Sequence[Instance],
        top_k: int = 1,
        version: int | None = None,
        alias: str | None = None,
        threshold: float | None = None,
        min_precision: float | None = None,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        explain: int = 0,
        language: str | None = None,
    ) -> PredictResponse:
        """Labels and scores, one prediction an instance, in order.

        Parameters
        ----------
        instances : sequence
            Texts as plain str; ``{"text": ...}``, ``{"record": {column: value}}``, ``{"features": {name: value}}``,
            ``{"indices": ..., "values": ...}``; or dense rows, numpy arrays included.
        version, alias : int, str or None
            Which version answers; the latest where neither is given.

        threshold, min_precision : float or None
            One of them, of models with probabilities: each prediction's ``sure`` is then what is at least so probable,
            or from where on answers were right more often than this on rows held out, with a confidence of 95 %. Of
            models of sets ``sure_labels`` is the labels of which that holds, empty where no threshold reached it.
        include, exclude : sequence of str or None
            The only labels to answer with, and labels never to answer with; a node of a tree stands for all below it.
        explain : int
            Of linear machines: how many features each prediction's ``explanation`` names for the label, and against it.
        language : str or None
            Tell the labels' names in this language alone.

        Raises
        ------
        InvalidInputError
            An instance does not fit the model; ``errors`` says which and why.
        """
        wrapped = [{"text": instance} if isinstance(instance, str) else instance for instance in instances]
        request: dict[str, Any] = {"instances": wrapped, "top_k": top_k}
        asked: dict[str, Any] = {"threshold": threshold, "min_precision": min_precision, "explain": explain or None}
        asked |= {"language": language, "include": include and list(include), "exclude": exclude and list(exclude)}
        request |= {name: value for name, value in asked.items() if value is not None}
        path = f"/models/{model}/predict"
        return self._transport.post(PredictResponse, path, request, version=version, alias=alias)

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
            The file is no archive, or its bytes are not those that were written.
        """
        return ModelVersion.model_validate_json(
            post_file(self._transport, "/models/import", Path(path), {"name": name})
        )

    def delete(self, model: str, version: int | None = None, dry_run: bool = False) -> Deletion:
        """Delete a version, or with None all versions of a model; for a time they can be restored.

        Parameters
        ----------
        dry_run : bool
            Only tell what it would do.

        Raises
        ------
        ConflictError
            An alias or a job that is not over holds it; ``errors`` has each of these.
        """
        response = self._transport.send("DELETE", _place(model, version), params={"dry_run": dry_run or None})
        return Deletion.model_validate_json(response.content)

    def restore(self, model: str, version: int | None = None) -> Restored:
        """Bring a deleted version back, or with None the versions of a model that were deleted last."""
        return self._transport.post(Restored, f"{_place(model, version)}/restore")

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
            Somebody else has changed them meanwhile.
        """
        given = {"tags": None if tags is None else dict(tags), "notes": notes}
        body = orjson.dumps({name: value for name, value in given.items() if value is not None})
        headers = {"Content-Type": "application/json"} | ({} if revision is None else {"If-Match": f'"{revision}"'})
        response = self._transport.send("PATCH", _place(model, version), content=body, headers=headers)
        return ModelVersion.model_validate_json(response.content)

    def retention(self, model: str) -> Retention:
        """How many of a model's versions are kept, and which ones go by that now."""
        return self._transport.get(Retention, f"/models/{model}/retention")

    def set_retention(self, model: str, keep_last: int | None, dry_run: bool = False) -> Retention:
        """Keep so many of a model's newest versions (None: all), and whatever an alias names."""
        response = self._transport.send(
            "PUT",
            f"/models/{model}/retention",
            params={"dry_run": dry_run or None},
            content=RetentionRule(keep_last=keep_last).model_dump_json().encode(),
            headers={"Content-Type": "application/json"},
        )
        return Retention.model_validate_json(response.content)


def _place(model: str, version: int | None) -> str:
    return f"/models/{model}" if version is None else f"/models/{model}/versions/{version}"
