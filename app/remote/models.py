"""Models of a remote service: versions, aliases, predictions."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.remote.transport import Transport
from app.schemas.models import Alias, AliasTarget, Model, ModelVersion
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
    ) -> PredictResponse:
        """Labels and scores, one prediction an instance, in order.

        Parameters
        ----------
        instances : sequence
            Texts as plain str; ``{"text": ...}``, ``{"features": {name: value}}``, ``{"indices": ..., "values": ...}``;
            or dense rows, numpy arrays included.
        version, alias : int, str or None
            Which version answers; the latest where neither is given.

        Raises
        ------
        InvalidInputError
            An instance does not fit the model; ``errors`` says which and why.
        """
        wrapped = [{"text": instance} if isinstance(instance, str) else instance for instance in instances]
        request = {"instances": wrapped, "top_k": top_k}
        path = f"/models/{model}/predict"
        return self._transport.post(PredictResponse, path, request, version=version, alias=alias)
