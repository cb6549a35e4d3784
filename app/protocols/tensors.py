"""Tensors of the Open Inference Protocol: as JSON, and as the bytes of its binary extension."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import InvalidInput, Item, Malformed
from app.storable_text import require_storable

KINDS: Mapping[str, str] = {
    "BOOL": "?", "UINT8": "<u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8", "INT8": "<i1", "INT16": "<i2",
    "INT32": "<i4", "INT64": "<i8", "FP16": "<f2", "FP32": "<f4", "FP64": "<f8",
}  # fmt: skip
_IN_JSON: Mapping[str, tuple[tuple[type, ...], str]] = {
    "b": ((bool, int), "true, false, 0 or 1"),
    "i": ((int,), "integers"),
    "u": ((int,), "integers"),
    "f": ((int, float), "numbers"),
}
_LENGTH_BYTES = 4
_MOST_DIMENSIONS = 8


@dataclass(frozen=True)
class Tensor:
    """One named tensor: texts as a list, numbers as an array; both flat, in row-major order."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    values: Sequence[str] | NDArray[Any]


def read(entry: Any, at: int, binary: bytes, offset: int) -> tuple[Tensor, int]:
    """One entry of ``inputs``, its bytes from ``binary`` where it names their number, and where the next ones begin.

    Raises
    ------
    InvalidInput
        The entry is none of the protocol's.
    Malformed
        The bytes end early.
    """
    where = f"/inputs/{at}"
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise _fault("an input has a name, a shape, a datatype and data", where)
    shape: Any = entry.get("shape")
    datatype: Any = entry.get("datatype")
    if not (isinstance(shape, list) and shape and all(type(n) is int and n >= 0 for n in shape)):
        raise _fault("a shape must be a list of numbers of at least 0", f"{where}/shape")
    if len(shape) > _MOST_DIMENSIONS:
        raise _fault(f"a shape has at most {_MOST_DIMENSIONS} dimensions", f"{where}/shape")
    if datatype != "BYTES" and datatype not in KINDS:
        raise _fault(f"the supported datatypes are BYTES, {', '.join(KINDS)}", f"{where}/datatype")
    size, n_bytes = math.prod(shape), _binary_size(entry, where)
    if n_bytes is None:
        return Tensor(
            entry["name"], datatype, tuple(shape), _from_json(entry.get("data"), datatype, size, where)
        ), offset
    if len(binary) < offset + n_bytes:
        raise Malformed(f"The body ends before the {n_bytes} bytes of the input {entry['name']!r:.80}.")
    raw = binary[offset : offset + n_bytes]
    return Tensor(entry["name"], datatype, tuple(shape), _from_bytes(raw, datatype, size, where)), offset + n_bytes


def as_json(tensor: Tensor) -> dict[str, Any]:
    """An entry of ``outputs`` with its data."""
    values = tensor.values
    data = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape), "data": data}


def as_bytes(tensor: Tensor) -> tuple[dict[str, Any], bytes]:
    """An entry of ``outputs`` without data, and its bytes."""
    values = tensor.values
    if isinstance(values, np.ndarray):
        raw = values.astype(KINDS[tensor.datatype]).tobytes()
    else:
        texts = [text.encode() for text in values]
        raw = b"".join(len(text).to_bytes(_LENGTH_BYTES, "little") + text for text in texts)
    entry = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
    return entry | {"parameters": {"binary_data_size": len(raw)}}, raw


def _binary_size(entry: dict[str, Any], where: str) -> int | None:
    parameters = entry.get("parameters", {})
    if not isinstance(parameters, dict):
        raise _fault("parameters are an object", f"{where}/parameters")
    n_bytes = parameters.get("binary_data_size")
    if n_bytes is not None and (type(n_bytes) is not int or n_bytes < 0):
        raise _fault("expected a number of bytes", f"{where}/parameters/binary_data_size")
    return n_bytes


def _from_json(data: Any, datatype: str, size: int, where: str) -> Sequence[str] | NDArray[Any]:
    flat = list(_flat(data))
    if len(flat) != size:
        raise _fault(f"{len(flat)} values for a shape of {size}", f"{where}/data")
    if datatype == "BYTES":
        if not all(type(value) is str for value in flat):
            raise _fault("BYTES are strings in JSON", f"{where}/data")
        return flat
    return _array(flat, datatype, where)


def _array(flat: list[Any], datatype: str, where: str) -> NDArray[Any]:
    """Numbers of a datatype; none is rounded, wrapped or read as another type."""
    kind = np.dtype(KINDS[datatype])
    taken, what = _IN_JSON[kind.kind]
    wrong = next((value for value in flat if type(value) not in taken), None)
    if wrong is not None or None in flat:
        raise _fault(f"{datatype} are {what} in JSON, and {wrong!r:.80} is given", f"{where}/data")
    if kind.kind in "iu":
        least, most = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
        odd = next((value for value in flat if not least <= value <= most), None)
        if odd is not None:
            raise _fault(f"{odd!r:.80} does not fit {datatype}, which is from {least} to {most}", f"{where}/data")
        return np.array(flat, kind)
    if kind.kind == "b" and not all(value in (0, 1) for value in flat):
        raise _fault(f"{datatype} are {what} in JSON", f"{where}/data")
    try:
        with np.errstate(all="raise", under="ignore"):
            return np.array(flat, np.float64).astype(kind)
    except (OverflowError, FloatingPointError):
        raise _fault(f"a value does not fit {datatype}", f"{where}/data") from None


def _flat(data: Any) -> Any:
    """The numbers or strings of lists within lists, without recursion."""
    if not isinstance(data, list):
        return
    stack = [iter(data)]
    while stack:
        for value in stack[-1]:
            if isinstance(value, list):
                stack.append(iter(value))
                break
            yield value
        else:
            stack.pop()


def _from_bytes(raw: bytes, datatype: str, size: int, where: str) -> Sequence[str] | NDArray[Any]:
    if datatype != "BYTES":
        array = np.frombuffer(raw, KINDS[datatype]) if len(raw) % np.dtype(KINDS[datatype]).itemsize == 0 else None
        if array is None or len(array) != size:
            raise _fault(f"{len(raw)} bytes for {size} values of {datatype}", where)
        return array
    texts: list[str] = []
    offset = 0
    while offset < len(raw) and len(texts) < size:
        begin = offset + _LENGTH_BYTES
        offset = begin + int.from_bytes(raw[offset:begin], "little")
        try:
            texts.append(raw[begin:offset].decode())
        except UnicodeDecodeError:
            raise _fault("a text is not UTF-8", where) from None
    require_storable(texts, where)
    if len(texts) != size or offset != len(raw):
        raise _fault(f"the bytes are not {size} texts, each after its length", where)
    return texts


def _fault(detail: str, pointer: str) -> InvalidInput:
    return InvalidInput("The request does not fit the Open Inference Protocol.", [Item(detail, pointer)])
