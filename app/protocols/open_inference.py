"""The Open Inference Protocol (version 2 of KServe's, Triton's and MLServer's), JSON and binary tensors.

Texts are one BYTES input; features one input of numbers, shape [rows, features]; records one input a column, shape
[rows].
"""

import zlib
from typing import Any

import numpy as np
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from app.api.common.parameters import Number, Ref
from app.api.common.problems import responses
from app.errors import InvalidInput, Item, Malformed, TooLarge
from app.protocols.asking import (
    VIEWER,
    ProtocolRoute,
    answer_json,
    ask,
    loaded_model,
    most_instances,
    object_of,
    reads_texts,
    require_few,
)
from app.protocols.tensors import Tensor, as_bytes, as_json, read
from app.services.predictions.model_cache import LoadedModel
from app.version import VERSION

router = APIRouter(prefix="/v2", tags=["open inference"], dependencies=[VIEWER], route_class=ProtocolRoute)

_HEADER = "inference-header-content-length"
_ERRORS = responses(401, 404, 409, 422)
_INFER = responses(401, 404, 409, 413, 422)
_OUTPUTS = ("labels", "scores", "probabilities")


@router.get("", responses=responses(401))
def server_metadata() -> dict[str, Any]:
    """What this server is, and which extensions of the protocol it speaks."""
    return {"name": "polymargin", "version": VERSION, "extensions": ["binary_tensor_data"]}


@router.get("/health/live", responses=responses(401))
def server_live() -> Response:
    """The process answers."""
    return answer_json({"live": True})


@router.get("/health/ready", responses=responses(401))
def server_ready() -> Response:
    """Predictions are answered: the database, where the key was found, is there."""
    return answer_json({"ready": True})


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
        inputs = [{"name": name, "datatype": "FP64", "shape": [-1]} for name in columns.numbers]
        words = (*columns.categories, *columns.texts)
        inputs += [{"name": name, "datatype": "BYTES", "shape": [-1]} for name in words]
    else:
        inputs = [{"name": "features", "datatype": "FP32", "shape": [-1, loaded.features.n_given]}]
    outputs = [{"name": "labels", "datatype": "BYTES", "shape": [-1, -1]}]
    outputs += [{"name": name, "datatype": "FP64", "shape": [-1, -1]} for name in _names(loaded)[1:]]
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
    return _OUTPUTS if loaded.model.reliability is not None else _OUTPUTS[:2]


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
        raise _fault("parameters are an object", "/parameters")
    of_records = loaded.features.columns is not None
    instances = (_records if of_records else _instances)(inputs, most_instances(request))
    answer = ask(request, loaded, instances, top_k=parameters.get("top_k", 1))
    wanted = _wanted(document, parameters, loaded)
    return _answer(document, loaded, [(tensor, wanted[tensor.name]) for tensor in _tensors(loaded, answer, wanted)])


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
        raise TooLarge(f"The body unpacks to more than {most} bytes, the most that is taken here.")
    return plain


def _parts(request: Request, content: bytes) -> tuple[dict[str, Any], bytes]:
    said = request.headers.get(_HEADER)
    if said is None:
        return object_of(content), b""
    if not (said.isascii() and said.isdigit() and len(said) < 12 and int(said) <= len(content)):
        raise Malformed("Inference-Header-Content-Length is no length within the body.")
    return object_of(content[: int(said)]), content[int(said) :]


def _instances(inputs: list[Tensor], most: int) -> list[Any]:
    if len(inputs) != 1:
        raise _fault(f"{len(inputs)} inputs were given; the model has one", "/inputs")
    (tensor,) = inputs
    # before the rows are made: an empty tensor may have a shape of any number of rows
    if 0 in tensor.shape:
        raise _fault("a dimension is 0; nothing can be predicted of that", "/inputs/0/shape")
    if isinstance(tensor.values, np.ndarray):
        rows = tensor.shape[0] if len(tensor.shape) == 2 else 1
        require_few(rows, most, "/inputs/0/shape")
        return tensor.values.astype(np.float64).reshape(rows, -1).tolist()
    require_few(len(tensor.values), most, "/inputs/0/shape")
    return [{"text": text} for text in tensor.values]


def _records(inputs: list[Tensor], most: int) -> list[Any]:
    """Rows of a table, of which each input is a column; NaN, and an empty string, is missing."""
    lengths = {int(np.prod(tensor.shape)) for tensor in inputs}
    if len(lengths) != 1 or lengths == {0}:
        raise _fault("each column is an input of as many values as there are rows, and at least one", "/inputs")
    require_few(lengths.pop(), most, "/inputs/0/shape")
    columns = []
    for tensor in inputs:
        if isinstance(tensor.values, np.ndarray):
            values: list[Any] = tensor.values.ravel().tolist()
            columns.append([None if value != value else value for value in values])
        else:
            columns.append([value or None for value in tensor.values])
    names = [tensor.name for tensor in inputs]
    if len(set(names)) < len(names):
        raise _fault("two inputs have one name", "/inputs")
    return [{"record": dict(zip(names, row, strict=True))} for row in zip(*columns, strict=True)]


def _wanted(document: dict[str, Any], parameters: dict[str, Any], loaded: LoadedModel) -> dict[str, bool]:
    """The outputs that are asked for, and whether each shall be binary."""
    names, binary = _names(loaded), bool(parameters.get("binary_data_output", False))
    asked = document.get("outputs")
    if not asked:
        return dict.fromkeys(names, binary)
    if not isinstance(asked, list):
        raise _fault("outputs are a list", "/outputs")
    wanted = {}
    for at, entry in enumerate(asked):
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or name not in names:
            raise _fault(f"the model's outputs are {', '.join(names)}", f"/outputs/{at}/name")
        own = entry.get("parameters")
        wanted[name] = bool(own.get("binary_data", binary)) if isinstance(own, dict) else binary
    return wanted


def _tensors(loaded: LoadedModel, answer: dict[str, Any], wanted: dict[str, bool]) -> list[Tensor]:
    tops = [prediction["top"] for prediction in answer["predictions"]]
    width = max(len(top) for top in tops)
    shape = (len(tops), width)
    labels = [entry["label"] for top in tops for entry in [*top, *[{"label": ""}] * (width - len(top))]]
    found = [Tensor("labels", "BYTES", shape, labels)]
    for name, field in (("scores", "score"), ("probabilities", "probability")):
        values = np.full(shape, -np.inf if field == "score" else 0.0)
        for row, top in enumerate(tops):
            values[row, : len(top)] = [entry.get(field, 0.0) for entry in top]
        found.append(Tensor(name, "FP64", shape, values.ravel()))
    by_name = {tensor.name: tensor for tensor in found}
    return [by_name[name] for name in wanted]


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


def _fault(detail: str, pointer: str) -> InvalidInput:
    return InvalidInput("The request does not fit the model.", [Item(detail, pointer)])
