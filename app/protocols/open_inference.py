"""The Open Inference Protocol (version 2 of KServe's, Triton's and MLServer's), JSON and binary tensors.

Texts are one BYTES input; features one input of numbers, shape [rows, features]; records one input a column, shape
[rows], or of a column of lists [rows, elements].
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from app.errors import InvalidInput, Malformed, TooLarge, unfit
from app.features.names import rolled
from app.http.parameters import Number, Ref
from app.http.problems import responses
from app.operation import readiness
from app.predictions.inference import infer, loaded_model, most_instances
from app.predictions.model_cache import LoadedModel
from app.predictions.service import MAX_TOP
from app.protocols.adapter import (
    VIEWER,
    ProtocolRoute,
    answer_json,
    lists_of,
    object_of,
    reads_texts,
    require_few,
)
from app.protocols.tensors import Tensor, as_bytes, as_json, read
from app.version import VERSION

router = APIRouter(prefix="/v2", tags=["open inference"], dependencies=[VIEWER], route_class=ProtocolRoute)
health = APIRouter(prefix="/v2/health", tags=["open inference"], route_class=ProtocolRoute)

_HEADER = "inference-header-content-length"
_ERRORS = responses(401, 404, 409, 422)
_INFER = responses(401, 404, 409, 413, 422)
_DATATYPES = {"labels": "BYTES", "selected": "BOOL"}


@router.get("", responses=responses(401))
def server_metadata() -> dict[str, Any]:
    """What this server is, and which extensions of the protocol it speaks."""
    return {"name": "polymargin", "version": VERSION, "extensions": ["binary_tensor_data"]}


@health.get("/live", responses=responses())
def server_live() -> Response:
    """The process answers; a probe, which needs no key."""
    return answer_json({"live": True})


@health.get("/ready", responses=responses())
def server_ready(request: Request) -> Response:
    """Predictions are answered, as the database is there; a probe, which needs no key."""
    is_ready = readiness.check(request.app.state.sessions).database == "ok"
    return answer_json({"ready": is_ready}, 200 if is_ready else 503)


router.routes.extend(health.routes)  # as they are: a router that is included would ask for the key


@router.get("/models/{ref}", responses=_ERRORS)
async def model_metadata(request: Request, ref: Ref) -> Response:
    """The inputs and outputs of a model's latest version."""
    return _metadata(await loaded_model(request, ref))


@router.get("/models/{ref}/versions/{number}", responses=_ERRORS)
async def version_metadata(request: Request, ref: Ref, number: Number) -> Response:
    """The inputs and outputs of a version."""
    return _metadata(await loaded_model(request, ref, number))


@router.get("/models/{ref}/ready", responses=_ERRORS)
async def model_ready(request: Request, ref: Ref) -> Response:
    """The latest version can be loaded, and now is."""
    return _ready(await loaded_model(request, ref))


@router.get("/models/{ref}/versions/{number}/ready", responses=_ERRORS)
async def version_ready(request: Request, ref: Ref, number: Number) -> Response:
    """The version can be loaded, and now is."""
    return _ready(await loaded_model(request, ref, number))


@router.post("/models/{ref}/infer", responses=_INFER)
async def infer_model(request: Request, ref: Ref) -> Response:
    """Labels and scores of the latest version; the parameter `top_k` asks for more than the best."""
    return await _answered(request, await loaded_model(request, ref))


@router.post("/models/{ref}/versions/{number}/infer", responses=_INFER)
async def infer_version(request: Request, ref: Ref, number: Number) -> Response:
    """Labels and scores of a version; the parameter `top_k` asks for more than the best."""
    return await _answered(request, await loaded_model(request, ref, number))


def _metadata(loaded: LoadedModel) -> Response:
    columns = loaded.features.columns
    inputs: list[dict[str, Any]]
    if reads_texts(loaded):
        inputs = [{"name": "text", "datatype": "BYTES", "shape": [-1]}]
    elif columns is not None:
        inputs = [
            {"name": name, "datatype": "FP64", "shape": [-1] if width is None else [-1, width]}
            for name, width in rolled(columns.numbers).items()
        ]
        words = (*columns.categories, *columns.texts)
        inputs += [{"name": name, "datatype": "BYTES", "shape": [-1]} for name in words]
    else:
        inputs = [{"name": "features", "datatype": "FP64", "shape": [-1, loaded.features.n_given]}]
    outputs = [{"name": name, "datatype": _DATATYPES.get(name, "FP64"), "shape": [-1, -1]} for name in _names(loaded)]
    version = loaded.version
    return answer_json(
        {
            "name": version.model,
            "versions": [str(version.version)],
            "platform": "polymargin",
            "inputs": inputs,
            "outputs": outputs,
        }
    )


def _ready(loaded: LoadedModel) -> Response:
    return answer_json({"name": loaded.version.model, "ready": True})


def _names(loaded: LoadedModel) -> tuple[str, ...]:
    names = ["labels", "scores"]
    if loaded.model.reliability is not None or loaded.model.set_reliability is not None:
        names.append("probabilities")
    return (*names, "selected") if loaded.model.names_sets else tuple(names)


async def _answered(request: Request, loaded: LoadedModel) -> Response:
    return await run_in_threadpool(_infer, request, loaded, await request.body())


def _infer(request: Request, loaded: LoadedModel, content: bytes) -> Response:
    document, binary = _parts(request, _unpacked(request, content))
    inputs, offset = [], 0
    given = document.get("inputs")
    for at, entry in enumerate(given if isinstance(given, list) else []):
        tensor, offset = read(entry, at, binary, offset)
        inputs.append(tensor)
    if offset < len(binary):
        raise Malformed(f"{len(binary) - offset} bytes follow those of the inputs.")
    parameters = document.get("parameters") or {}
    if not isinstance(parameters, dict):
        raise unfit("parameters are an object", "/parameters")
    of_records = loaded.features.columns is not None
    if of_records:
        instances = _records(inputs, lists_of(loaded), most_instances(request))
    else:
        instances = _instances(inputs, "text" if reads_texts(loaded) else "features", most_instances(request))
    wanted = _wanted(document, parameters, loaded)
    top_k = parameters.get("top_k", 1)
    asked = top_k
    if type(top_k) is int and top_k > 0:
        asked = max(top_k, *(output.n_classes for output in wanted.values()))
    answer = infer(request.app.state, loaded, {"instances": instances, "top_k": asked})
    rows = [_listed(loaded, prediction, top_k) for prediction in answer["predictions"]]
    tensors = _tensors(rows)
    ranked = [prediction["top"] for prediction in answer["predictions"]]
    found = []
    for name, output in wanted.items():
        tensor = _classified(loaded, name, ranked, output.n_classes) if output.n_classes else tensors[name]
        found.append((tensor, output.is_binary))
    return _answer(document, loaded, found)


def _unpacked(request: Request, content: bytes) -> bytes:
    """The body; clients may compress it."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        return content
    if encoding not in ("gzip", "deflate"):
        raise InvalidInput("The Content-Encoding may be gzip or deflate.")
    most = request.app.state.settings.max_body_bytes
    unpacking = zlib.decompressobj(wbits=31 if encoding == "gzip" else 15)
    try:
        plain = unpacking.decompress(content, most + 1)
    except zlib.error:
        raise Malformed(f"The body is not {encoding}.") from None
    if len(plain) > most:
        raise TooLarge(f"The body unpacks to more than {most} bytes, which is the maximum.")
    return plain


def _parts(request: Request, content: bytes) -> tuple[dict[str, Any], bytes]:
    said = request.headers.get(_HEADER)
    if said is None:
        return object_of(content), b""
    if not (said.isascii() and said.isdigit() and len(said) < 12 and int(said) <= len(content)):
        raise Malformed("Inference-Header-Content-Length is not a length within the body.")
    return object_of(content[: int(said)]), content[int(said) :]


def _instances(inputs: list[Tensor], name: str, most: int) -> list[Any]:
    if len(inputs) != 1:
        raise unfit(f"{len(inputs)} inputs were given; the model has one", "/inputs")
    (tensor,) = inputs
    if isinstance(tensor.values, np.ndarray) == (name == "features") and tensor.name != name:
        raise unfit(f"the model's input is {name}", "/inputs/0/name")
    # before the rows are made: an empty tensor may have a shape of any number of rows
    if 0 in tensor.shape:
        raise unfit("a dimension is 0, so there is nothing to predict", "/inputs/0/shape")
    if isinstance(tensor.values, np.ndarray):
        rows = tensor.shape[0] if len(tensor.shape) == 2 else 1
        require_few(rows, most, "/inputs/0/shape")
        return tensor.values.astype(np.float64).reshape(rows, -1).tolist()
    require_few(len(tensor.values), most, "/inputs/0/shape")
    return [{"text": text} for text in tensor.values]


def _records(inputs: list[Tensor], lists: Mapping[str, int], most: int) -> list[Any]:
    """Rows of a table, of which each input is a column; NaN, and an empty string, is missing."""
    lengths = {_n_rows(tensor, lists) for tensor in inputs}
    if len(lengths) != 1 or lengths == {0}:
        raise unfit(
            "all inputs must have the same number of rows, at least one: send one value per row, or the shape "
            "[rows, elements] for a column of lists",
            "/inputs",
        )
    n_rows = lengths.pop()
    require_few(n_rows, most, "/inputs/0/shape")
    columns: list[list[Any]] = []
    for tensor in inputs:
        if isinstance(tensor.values, np.ndarray) and tensor.name in lists:
            columns.append([_as_written(row) for row in tensor.values.reshape(n_rows, -1)])
        elif isinstance(tensor.values, np.ndarray):
            columns.append(_as_written(tensor.values.ravel()))
        else:
            columns.append([value or None for value in tensor.values])
    names = [tensor.name for tensor in inputs]
    if len(set(names)) < len(names):
        raise unfit("two inputs have one name", "/inputs")
    return [{"record": dict(zip(names, row, strict=True))} for row in zip(*columns, strict=True)]


def _n_rows(tensor: Tensor, lists: Mapping[str, int]) -> int:
    n_values = int(np.prod(tensor.shape))
    if tensor.name not in lists or n_values == 0 or not isinstance(tensor.values, np.ndarray):
        return n_values
    return tensor.shape[0] if len(tensor.shape) > 1 else 1


def _as_written(values: np.ndarray) -> list[Any]:
    """Numbers as Python's, None for NaN; of short floats the shortest decimal, as files and JSON have it."""
    if values.dtype.kind == "f" and values.dtype.itemsize < np.dtype(np.float64).itemsize:
        return [None if value != value else float(str(value)) for value in values]
    return [None if value != value else value for value in values.tolist()]


@dataclass(frozen=True)
class _Output:
    """How an output is wanted: as bytes or as JSON, and with how many classes in Triton's form of a classification."""

    is_binary: bool
    n_classes: int = 0


def _wanted(document: dict[str, Any], parameters: dict[str, Any], loaded: LoadedModel) -> dict[str, _Output]:
    names, binary = _names(loaded), bool(parameters.get("binary_data_output", False))
    asked = document.get("outputs")
    if not asked:
        return {name: _Output(binary) for name in names}
    if not isinstance(asked, list):
        raise unfit("outputs are a list", "/outputs")
    wanted = {}
    for at, entry in enumerate(asked):
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or name not in names:
            raise unfit(f"the model's outputs are {', '.join(names)}", f"/outputs/{at}/name")
        own = entry.get("parameters")
        own = own if isinstance(own, dict) else {}
        n_classes = own.get("classification", 0)
        if type(n_classes) is not int or not 0 <= n_classes <= MAX_TOP:
            raise unfit(f"expected an integer from 1 to {MAX_TOP}", f"/outputs/{at}/parameters/classification")
        if n_classes and name not in ("scores", "probabilities"):
            raise unfit("only scores and probabilities have a classification", f"/outputs/{at}/parameters")
        wanted[name] = _Output(bool(own.get("binary_data", binary)), n_classes)
    return wanted


def _listed(loaded: LoadedModel, prediction: dict[str, Any], top_k: int) -> list[tuple[dict[str, Any], bool]]:
    """The labels of one row, and whether each is in the answer: first those that are, then the next best."""
    answered = prediction["labels"]
    known = {label["label"] for label in answered}
    for label in answered:
        known.update(label.get("path") or ())
    size = max(top_k, len(answered)) if top_k > 1 or not loaded.model.names_sets else len(answered)
    others = [label for label in prediction["top"] if label["label"] not in known]
    return [*((label, True) for label in answered), *((label, False) for label in others)][:size]


def _tensors(rows: list[list[tuple[dict[str, Any], bool]]]) -> dict[str, Tensor]:
    """The outputs by name; rows with fewer labels end in empty ones, which are not selected."""
    width = max(1, *map(len, rows))
    shape = (len(rows), width)
    labels = [each["label"] for row in rows for each, _ in [*row, *[({"label": ""}, False)] * (width - len(row))]]
    found = {"labels": Tensor("labels", "BYTES", shape, labels)}
    for name, field, nothing in (("scores", "score", np.finfo(np.float64).min), ("probabilities", "probability", 0.0)):
        values = np.full(shape, nothing)
        for at, row in enumerate(rows):
            values[at, : len(row)] = [each.get(field, 0.0) for each, _ in row]
        found[name] = Tensor(name, "FP64", shape, values.ravel())
    selected = np.zeros(shape, bool)
    for at, row in enumerate(rows):
        selected[at, : len(row)] = [is_selected for _, is_selected in row]
    return found | {"selected": Tensor("selected", "BOOL", shape, selected.ravel())}


def _classified(loaded: LoadedModel, name: str, ranked: list[list[dict[str, Any]]], n_classes: int) -> Tensor:
    """The best classes in Triton's form, value, index and label with colons between."""
    field = "score" if name == "scores" else "probability"
    rows = [[f"{each[field]:f}:{loaded.places[each['label']]}:{each['label']}" for each in top] for top in ranked]
    rows = [row[:n_classes] for row in rows]
    width = max(map(len, rows))
    values = [value for row in rows for value in [*row, *[""] * (width - len(row))]]
    return Tensor(name, "BYTES", (len(rows), width), values)


def _answer(document: dict[str, Any], loaded: LoadedModel, tensors: list[tuple[Tensor, bool]]) -> Response:
    entries, parts = [], []
    for tensor, binary in tensors:
        if binary:
            entry, raw = as_bytes(tensor)
            entries.append(entry)
            parts.append(raw)
        else:
            entries.append(as_json(tensor))
    version = loaded.version
    head: dict[str, Any] = {"model_name": version.model, "model_version": str(version.version), "outputs": entries}
    if isinstance(document.get("id"), str):
        head["id"] = document["id"]
    answer = answer_json(head)
    if not parts:
        return answer
    text = bytes(answer.body)
    return Response(b"".join([text, *parts]), 200, {_HEADER: str(len(text))}, "application/octet-stream")
