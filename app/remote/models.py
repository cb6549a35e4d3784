"""Models of a remote service: versions, aliases, predictions."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.remote.transport import Transport
from app.schemas.models import Alias, AliasTarget, Model, ModelVersion, Selection
from app.schemas.pages import Page
from app.schemas.predictions import PredictResponse

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

    def predict(
        self,
        model: str,
        instances: Sequence[Instance],
        top_k: int = 1,
        version: int | None = None,
        alias: str | None = None,
        threshold: float | None = None,
        min_precision: float | None = None,
    ) -> PredictResponse:
        """Labels and scores, one prediction an instance, in order.

        Parameters
        ----------
        instances : sequence
            Texts as plain str; ``{"text": ...}``, ``{"features": {name: value}}``, ``{"indices": ..., "values": ...}``;
            or dense rows, numpy arrays included.
        version, alias : int, str or None
            Which version answers; the latest where neither is given.

        threshold, min_precision : float or None
            One of them, of models with probabilities: each prediction's ``sure`` is then what is at least so probable,
            or from where on answers were right more often than this on rows held out, with a confidence of 95 %.

        Raises
        ------
        InvalidInputError
            An instance does not fit the model; ``errors`` says which and why.
        """
        wrapped = [{"text": instance} if isinstance(instance, str) else instance for instance in instances]
        request: dict[str, Any] = {"instances": wrapped, "top_k": top_k}
        asked = {"threshold": threshold, "min_precision": min_precision}
        request |= {name: value for name, value in asked.items() if value is not None}
        path = f"/models/{model}/predict"
        return self._transport.post(PredictResponse, path, request, version=version, alias=alias)
