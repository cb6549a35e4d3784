"""Shared by all protocol adapters: authentication, errors, feedback, and JSON."""

import base64
import binascii
import math
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Annotated, Any

import orjson
from fastapi import Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from app.access.authentication import admit
from app.access.keys import Principal
from app.access.schemas import Role
from app.errors import InvalidInput, Item, PolymarginError
from app.features.base import OF_TEXTS
from app.features.names import list_widths
from app.http.bodies import no_json
from app.http.parameters import opened
from app.http.problems import items, problem_of, refused_parameters
from app.predictions.inference import loaded_model
from app.predictions.model_cache import LoadedModel
from app.rules import feedback
from app.rules.schemas import FeedbackRequest
from app.storable_text import parse_json
from app.store.failures import FAILURES

_REPORTED: tuple[type[Exception], ...] = (PolymarginError, *FAILURES)

_bearer = HTTPBearer(
    auto_error=False, description="An API key, as returned by POST /keys; or HTTP Basic with the key as password."
)


class ProtocolRoute(APIRoute):
    """A route whose errors also say ``error`` and ``message``, where clients of other services look for words."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handler(request)
            except RequestValidationError as error:
                return _with_error_fields(problem_of(refused_parameters(error), request.scope))
            except _REPORTED as error:
                return _with_error_fields(problem_of(error, request.scope))

        return answer


def _with_error_fields(response: Response) -> Response:
    document = orjson.loads(bytes(response.body))
    faults = [f"{item['pointer']}: {item['detail']}" for item in document["errors"]]
    words = "; ".join([document["detail"].removesuffix(".") if faults else document["detail"], *faults])
    more = {"error": words, "message": words, "error_code": document["code"].upper()}
    headers = {name: value for name, value in response.headers.items() if name != "content-length"}
    return Response(orjson.dumps(document | more), response.status_code, headers, response.media_type)


def _needs(role: Role) -> Callable[..., object]:
    async def check(
        request: Request, _shown: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
    ) -> Principal:
        return await admit(request.app.state, request.scope, _as_bearer(request.headers.get("authorization", "")), role)

    return check


def _as_bearer(authorization: str) -> str:
    """HTTP Basic as a bearer's header: for clients that only know names and passwords, the key is the password."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return authorization
    try:
        shown = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return f"Bearer {shown.partition(':')[2]}"


_viewer, _clerk = _needs("viewer"), _needs("clerk")
VIEWER, CLERK = Depends(_viewer), Depends(_clerk)


async def answered(request: Request, ref: str, answer: Callable[[Request, LoadedModel, bytes], Response]) -> Response:
    """What ``answer`` makes of the model and the body, in a worker thread: a long one is parsed for a while."""
    content = await request.body()
    return await run_in_threadpool(answer, request, await loaded_model(request, ref), content)


def report_feedback(
    request: Request, loaded: LoadedModel, given: Sequence[tuple[Any, list[Any], str | None]], *, again: bool = False
) -> None:
    """Keep instances with their right labels as feedback, all or none.

    Parameters
    ----------
    given : sequence of (instance, labels, answer)
        The answer names what was reported, where the client has a name for it.
    again : bool
        The report takes the place of those of the same answer that wait.

    Raises
    ------
    InvalidInput
        An instance or a label is none of the model's.
    """
    asked = []
    for at, (instance, labels, answer) in enumerate(given):
        try:
            body = {"instance": instance, "labels": labels, "answer": answer, "version": loaded.version.version}
            asked.append(FeedbackRequest.model_validate(body))
        except ValidationError as error:
            raise InvalidInput("The feedback is not valid.", items(error.errors(), f"/{at}")) from None
    with opened(request) as session:
        for each in asked if again else ():
            if each.answer is not None:
                feedback.withdraw(session, loaded.version.model, each.answer)
        feedback.report_all(session, loaded, asked, [f"/{at}" for at in range(len(asked))])


def require_few(n_instances: int, most: int, pointer: str) -> None:
    """Raise InvalidInput for too many instances, to be called before anything is made of each of them."""
    if n_instances > most:
        raise InvalidInput("There are too many instances.", [Item(f"send 1 to {most} instances", pointer)])


def json_of(content: bytes) -> Any:
    """What JSON spells; raises Malformed, InvalidInput."""
    try:
        return parse_json(content)
    except orjson.JSONDecodeError as error:
        raise no_json(error) from None


def object_of(content: bytes) -> dict[str, Any]:
    """The JSON object; raises Malformed, InvalidInput."""
    document = json_of(content)
    if not isinstance(document, dict):
        raise InvalidInput("The body must be a JSON object.")
    return document


def answer_json(document: Any, status: int = 200) -> Response:
    """A document as an answer."""
    return Response(orjson.dumps(document), status, media_type="application/json")


def lists_of(loaded: LoadedModel) -> dict[str, int]:
    """The columns of lists that a model of a table reads, and the length of each list."""
    columns = loaded.features.columns
    if columns is None:
        return {}
    known = {*columns.texts, *columns.numbers, *columns.categories}
    return {name: width for name, width in list_widths(columns.numbers).items() if name not in known}


def reads_texts(loaded: LoadedModel) -> bool:
    """Whether the model's instances are texts."""
    return loaded.features.kind in OF_TEXTS


def share_of(entry: Mapping[str, Any]) -> float:
    """The probability of a label, or 1 / (1 + exp(-score)), which has the same order, where the model has none."""
    if "probability" in entry and entry["probability"] is not None:
        return float(entry["probability"])
    score = entry["score"]
    return 1.0 / (1.0 + math.exp(-score)) if score > -700 else 0.0
