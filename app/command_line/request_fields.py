"""Options of commands that submit jobs: one for each field of the request's schema, so that none is ever missing."""

import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import orjson
import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from app.command_line.output import with_parameters

C = TypeVar("C", bound=Callable[..., None])


def fields_of(schema: type[BaseModel], arguments: Sequence[str] = (), leave: Sequence[str] = ()) -> Callable[[C], C]:
    """Give a command that takes ``**given`` an option for each field of a schema; what is not given is None.

    Parameters
    ----------
    schema : type
        The fields of a model within it are options, too: ``text.min_df`` is ``--text-min-df``.
    arguments : sequence of str
        Fields that are arguments instead.
    leave : sequence of str
        Fields that the command has its own way for.
    """

    first = [_argument(name, schema.model_fields[name]) for name in arguments]
    added = [
        # a model within may be left out, whatever it would need
        _parameter(name, info, required=info.is_required() and name in schema.model_fields)
        for name, info in flat_fields(schema)
        if name not in (*arguments, *leave)
    ]
    return with_parameters(first, added)


def build_request(schema: type[BaseModel], given: dict[str, Any]) -> dict[str, Any]:
    """What was given as the request's JSON; the service is the one judge of values."""
    request: dict[str, Any] = {}
    for name, info in schema.model_fields.items():
        inner = _plain(info.annotation)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            nested = {
                field: _read(f"{name}_{field}", inner.model_fields[field], given[f"{name}_{field}"])
                for field in inner.model_fields
                if given.get(f"{name}_{field}") is not None
            }
            if nested:
                request[name] = nested
        elif given.get(name) is not None:
            request[name] = _read(name, info, given[name])
    return request


def flat_fields(schema: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """The fields of a schema by the names of their options, those of models within it included."""
    for name, info in schema.model_fields.items():
        inner = _plain(info.annotation)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from ((f"{name}_{field}", of_field) for field, of_field in inner.model_fields.items())
        else:
            yield name, info


def _argument(name: str, info: FieldInfo) -> inspect.Parameter:
    kind = _kind(info)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, typer.Argument(help=info.description)]
    )


def _kind(info: FieldInfo) -> Any:
    return {bool: bool, int: int, float: float}.get(_plain(info.annotation), str)


def _parameter(name: str, info: FieldInfo, *, required: bool) -> inspect.Parameter:
    plain, kind = _plain(info.annotation), _kind(info)
    described = info.description or ""
    if info.default is not None and info.default != {} and not info.is_required() and kind is not bool:
        described += f" Default: {info.default}."
    settings: dict[str, Any] = {"help": described}
    if _is_name_or_list(plain):
        settings["metavar"] = "NAME|A,B,..."
        settings["help"] += " Write a single word with a trailing comma."
    elif float in _kinds(plain):
        words = [word for each in _kinds(plain) if get_origin(each) is Literal for word in get_args(each)]
        settings["metavar"] = "|".join(["NUMBER", *words])
    elif get_origin(plain) is Literal:
        settings["metavar"] = "|".join(map(str, get_args(plain)))
    elif get_origin(plain) in (list, tuple):
        settings["metavar"] = "A,B,..."
    elif _is_word_or_objects(plain):
        words = [word for each in _kinds(plain) if get_origin(each) is Literal for word in get_args(each)]
        settings["metavar"] = "|".join(["JSON", *words])
    elif get_origin(plain) is dict:
        settings["metavar"] = f"{'A,B,...|' * _takes_names(plain)}JSON" if _of_objects(plain) else "NAME=VALUE,..."
    elif kind is bool:
        settings["show_default"] = False
    if required:
        return inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, typer.Option(**settings)]
        )
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, typer.Option(**settings)]
    )


def _plain(annotation: Any) -> Any:
    """A type without its ``| None`` and without its annotations."""
    if get_origin(annotation) is Annotated:
        return _plain(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        others = [each for each in get_args(annotation) if each is not type(None)]
        return _plain(others[0]) if len(others) == 1 else annotation
    return annotation


def _kinds(plain: Any) -> list[Any]:
    """The types of a union, without None; of other types none."""
    return [_plain(each) for each in get_args(plain)] if get_origin(plain) in (Union, types.UnionType) else []


def _is_word_or_objects(plain: Any) -> bool:
    """Whether a type is that of a word, or of a mapping to models in its place."""
    kinds = _kinds(plain)
    return any(get_origin(each) is dict and _of_objects(each) for each in kinds)


def _is_name_or_list(plain: Any) -> bool:
    """Whether a type is that of a name, or of a list of strings in its place."""
    kinds = _kinds(plain)
    return str in kinds and any(get_origin(each) in (list, tuple) for each in kinds)


def tags_of(texts: Sequence[str]) -> dict[str, str]:
    """Names and values of texts as ``NAME=VALUE``."""
    pairs = [text.partition("=") for text in texts]
    wrong = next((text for text, (_, sign, _) in zip(texts, pairs, strict=True) if not sign), None)
    if wrong is not None:
        raise typer.BadParameter(f"expected NAME=VALUE, got {wrong[:80]!r}")
    return {name: value for name, _, value in pairs}


def _of_objects(plain: Any) -> bool:
    """Whether the values of a mapping are models."""
    value = _plain(get_args(plain)[1])
    return isinstance(value, type) and issubclass(value, BaseModel)


def _takes_names(plain: Any) -> bool:
    """Whether the schema has a default for each name of a mapping of models, so that names are enough."""
    return hasattr(_plain(get_args(plain)[1]), "of")


def param_of(text: str) -> tuple[str, Any]:
    """Name and value of a text as ``NAME=VALUE``; what is no JSON is a string."""
    name, sign, value = text.partition("=")
    if not sign:
        raise typer.BadParameter(f"expected NAME=VALUE, got {text[:80]!r}", param_hint="--param")
    try:
        return name, orjson.loads(value)
    except orjson.JSONDecodeError:
        return name, value


def _read(name: str, info: FieldInfo, value: Any) -> Any:
    plain = _plain(info.annotation)
    hint = f"--{name.replace('_', '-')}"
    if get_origin(plain) is dict and _of_objects(plain) and _takes_names(plain) and value[:1] not in "{[":
        return [part.strip() for part in value.split(",")]
    if (get_origin(plain) is dict and _of_objects(plain)) or (_is_word_or_objects(plain) and value[:1] in "{["):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            raise typer.BadParameter(f"expected a JSON object, got {value[:80]!r}", param_hint=hint) from None
    if _is_word_or_objects(plain):
        return value  # a word, which the schema checks
    if get_origin(plain) is dict:
        return tags_of(value.split(","))
    if _is_name_or_list(plain):
        # a comma makes a list, of one where nothing follows it
        return [part.strip() for part in value.split(",") if part.strip()] if "," in value else value
    if float in _kinds(plain):
        try:
            return float(value)
        except ValueError:
            return value  # a word, which the schema checks
    if get_origin(plain) is Literal:  # of numbers, too; the schema refuses others
        return next((each for each in get_args(plain) if str(each) == value), value)
    if get_origin(plain) not in (list, tuple):
        return value
    of_each = _plain(get_args(plain)[0])
    if of_each is str or get_origin(of_each) is Literal:
        return [part.strip() for part in value.split(",")]
    try:
        return [orjson.loads(part) for part in value.split(",")]
    except orjson.JSONDecodeError:
        raise typer.BadParameter(f"expected comma-separated numbers, got {value[:80]!r}", param_hint=hint) from None
