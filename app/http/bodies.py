"""JSON bodies, read and checked so that a hostile one costs little and is not repeated in the answer."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, get_args, get_origin

import orjson
from fastapi import Depends
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from app.errors import MAX_ITEMS, InvalidInput, Item, Malformed, UnsupportedFormat
from app.http.problems import items, unknown
from app.json_text import pointer
from app.storable_text import parse_json

MAX_DEPTH = 64
INLINE_BYTES = 64 << 10
# whole numbers of floats are exact below
MAX_EXACT = 2.0**53

# what is refused in place of a number, from the character before it
_NO_NUMBER = re.compile(r".?(nan|-?inf|[-+]?\d+(\.\d*)?e\d)", re.IGNORECASE | re.DOTALL)

_NAMES = {"nan": "NaN", "inf": "Infinity"}

B = TypeVar("B", bound=BaseModel)


class JsonBody(Generic[B]):
    """A dependency that gives the request's body as a ``model``; ``Body[model]`` declares it as a parameter."""

    def __init__(self, model: type[B]) -> None:
        self._model = model
        self.models: tuple[type[BaseModel], ...] = (model,)

    async def __call__(self, request: Request) -> B:
        require_json(request)
        content = await request.body()
        if len(content) <= INLINE_BYTES:
            return self.parse(content)
        return await run_in_threadpool(self.parse, content)

    def parse(self, content: bytes) -> B:
        """The model that ``content`` spells; raises Malformed or InvalidInput."""
        return self.check(parse_object(content))

    def check(self, document: dict[str, Any]) -> B:
        """Parse a JSON object as the model; raises InvalidInput."""
        if _deeper_than(document, MAX_DEPTH):
            raise InvalidInput(f"The body is nested deeper than {MAX_DEPTH} levels.")
        extra = _unknown_fields(self._model, document, ())
        if extra:
            raise InvalidInput("The body has unknown fields.", extra)
        try:
            return self._validated(document)
        except ValidationError as error:
            faults = error.errors(include_url=False, include_input=False)
        if any(fault["type"] == "int_type" for fault in faults):
            # 1.0 is an integer by JSON Schema, and many programs write those so
            try:
                return self._validated(_with_integers(document))
            except ValidationError as error:
                faults = error.errors(include_url=False, include_input=False)
        raise InvalidInput("The body does not fit its schema.", items(faults))

    def _validated(self, document: dict[str, Any]) -> B:
        # as JSON, whose lists may be tuples; as Python objects they would be refused
        return self._model.model_validate_json(orjson.dumps(document), strict=True)


class KindBody:
    """As :class:`JsonBody` for several models, of which the body's ``kind`` chooses one.

    Parameters
    ----------
    default : type
        The model of a body without a kind, or with an unknown one, which its validation then reports.
    others : mapping of str to type
    """

    def __init__(self, default: type[BaseModel], others: Mapping[str, type[BaseModel]]) -> None:
        self._default, self._others = JsonBody(default), {kind: JsonBody(model) for kind, model in others.items()}
        self.models = (default, *others.values())

    async def __call__(self, request: Request) -> Any:
        require_json(request)
        content = await request.body()
        if len(content) <= INLINE_BYTES:
            return self.parse(content)
        return await run_in_threadpool(self.parse, content)

    def parse(self, content: bytes) -> Any:
        """The model that ``content`` spells; raises Malformed or InvalidInput."""
        document = parse_object(content)
        kind = document.get("kind")
        body = self._others.get(kind, self._default) if isinstance(kind, str) else self._default
        return body.check(document)


if TYPE_CHECKING:
    Body = Annotated[B, "the request's body"]
else:

    class Body:
        """``Body[Model]`` is the annotation of a route's parameter that gets the request's JSON as a ``Model``."""

        def __class_getitem__(cls, model: type[BaseModel]) -> Any:
            return Annotated[model, Depends(JsonBody(model))]


def request_schema(*models: type[BaseModel]) -> dict[str, Any]:
    """What the API's description says of a body that is one of ``models``."""
    references = [{"$ref": f"#/components/schemas/{model.__name__}"} for model in models]
    schema = references[0] if len(references) == 1 else {"anyOf": references}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def require_json(request: Request) -> None:
    """Refuse a body that says it is something other than JSON."""
    check_json(request.headers.get("content-type", ""))


def check_json(content_type: str) -> None:
    """Refuse the ``Content-Type`` of something other than JSON."""
    if content_type == "application/json":
        return
    media_type = content_type.split(";")[0].strip().lower()
    if media_type != "application/json" and not media_type.endswith("+json"):
        raise UnsupportedFormat("The Content-Type must be application/json.")


def parse_object(content: bytes) -> dict[str, Any]:
    """The JSON object that ``content`` spells; raises Malformed or InvalidInput."""
    if not content:
        raise Malformed("The body is empty; send a JSON object.")
    try:
        document = parse_json(content)
    except orjson.JSONDecodeError as error:
        raise no_json(error) from None
    if not isinstance(document, dict):
        raise InvalidInput("The body must be a JSON object.")
    return document


def no_json(error: orjson.JSONDecodeError) -> Malformed:
    """The error of a body that is not JSON, with the place; JSON has no NaN and no infinite numbers."""
    where = f"parsing stopped at line {error.lineno}, column {error.colno}"
    found = _NO_NUMBER.match(error.doc, max(0, error.pos - 1))
    if found is None:
        return Malformed(f"The body is not JSON: {where}.")
    name = _NAMES.get(found[1].lower().lstrip("-+")[:3])
    fault = "the number is too large or not written as JSON has it" if name is None else f"{name} is no number in JSON"
    return Malformed(f"The body is not JSON: {where}: {fault}.")


def _deeper_than(document: Any, limit: int) -> bool:
    level = [document]
    for _ in range(limit):
        level = [child for node in level for child in _children(node)]
        if not level:
            return False
    return True


def _with_integers(node: Any) -> Any:
    """The same with integers in place of the numbers that are whole; no deeper than ``MAX_DEPTH``."""
    if isinstance(node, dict):
        return {name: _with_integers(child) for name, child in node.items()}
    if isinstance(node, list):
        return [_with_integers(child) for child in node]
    return int(node) if isinstance(node, float) and node.is_integer() and abs(node) < MAX_EXACT else node


def _children(node: Any) -> list[Any]:
    inside = node.values() if isinstance(node, dict) else node
    return [child for child in inside if isinstance(child, dict | list)]


def _unknown_fields(model: type[BaseModel], document: dict[str, Any], path: tuple[str | int, ...]) -> list[Item]:
    # Pydantic would make one fault for each of a million unknown fields, and spend seconds on it.
    fields = model.model_fields
    names = islice((name for name in document if name not in fields), MAX_ITEMS)
    found = [Item(unknown(name, list(fields)), pointer((*path, name))) for name in names]
    for name, field in fields.items():
        for kind, place, child in _inside(field.annotation, document.get(name)):
            if len(found) < MAX_ITEMS:
                found += _unknown_fields(kind, child, (*path, name, *place))
    return found


def _inside(annotation: Any, value: Any) -> Iterator[tuple[type[BaseModel], tuple[int, ...], dict[str, Any]]]:
    """The objects of a field, with the model of each and its place, where only one model is possible."""
    kinds = (annotation, *get_args(annotation))
    if isinstance(value, dict):
        # the values of a mapping are objects of their own
        kinds = () if get_origin(annotation) is dict else kinds
        models = _models(kinds)
        if len(models) == 1:
            yield models[0], (), value
    elif isinstance(value, list):
        models = _models(inner for kind in kinds if get_origin(kind) is list for inner in get_args(kind))
        if len(models) == 1:
            yield from ((models[0], (at,), each) for at, each in enumerate(value) if isinstance(each, dict))


def _models(kinds: Iterable[Any]) -> list[type[BaseModel]]:
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
