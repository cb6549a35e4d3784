"""Lists of names as two arrays and back, and names of the elements of a column of lists: `v.0`, `v.1` and so on."""

import unicodedata
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from app.features.base import InstanceError

_MAX_SHOWN = 40


def pack_names(names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """UTF-8 bytes of all names, `names_blob` (uint8), and `names_offsets` (int64, n + 1)."""
    encoded = [name.encode() for name in names]
    offsets = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum([len(name) for name in encoded], out=offsets[1:])
    return {"names_blob": np.frombuffer(b"".join(encoded), dtype=np.uint8), "names_offsets": offsets}


def unpack_names(arrays: Mapping[str, npt.NDArray[Any]]) -> list[str]:
    """The names that pack_names packed."""
    blob = arrays["names_blob"].tobytes()
    offsets = arrays["names_offsets"].tolist()
    return [blob[start:end].decode() for start, end in pairwise(offsets)]


def list_widths(names: Iterable[str]) -> dict[str, int]:
    """How many elements each column of lists has, of those whose elements have these names."""
    widths: dict[str, int] = {}
    for name in names:
        column, mark, place = name.rpartition(".")
        if mark and place == str(widths.get(column, 0)):
            widths[column] = widths.get(column, 0) + 1
    return widths


def list_numbers(names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Which column of lists each name is an element of, numbered from 0; -1 for a single number."""
    single = set(names)
    elements = {
        f"{column}.{place}": number
        for number, (column, width) in enumerate(list_widths(names).items())
        for place in range(width)
        if column not in single
    }
    return np.array([elements.get(name, -1) for name in names], np.int64)


def rolled(names: Sequence[str]) -> dict[str, int | None]:
    """Names with each column of lists once, and its width; None for a single number."""
    widths, there = list_widths(names), set(names)
    elements = {column: set(map(str, range(width))) for column, width in widths.items()}
    found: dict[str, int | None] = {}
    for name in names:
        column, _, place = name.rpartition(".")
        is_element = column not in there and place in elements.get(column, ())
        found |= {column: widths[column]} if is_element else {name: None}
    return found


def unrolled(record: Mapping[str, Any], widths: Mapping[str, int], known: Container[str]) -> dict[str, Any]:
    """A record with the elements of its lists by their names; raises InstanceError."""
    found: dict[str, Any] = {}
    for name, value in record.items():
        width = widths.get(name)
        if width is None or name in known:
            found[name] = value
        elif value is not None:
            if type(value) is not list or len(value) != width:
                shown = shorten(name)
                raise InstanceError(
                    f"column '{shown}': a list of {width} numbers is required, or numbers '{shown}.0' to "
                    f"'{shown}.{width - 1}'"
                )
            found |= {f"{name}.{place}": element for place, element in enumerate(value)}
    return found


def found_as(names: Iterable[str], known: Container[str]) -> dict[str, str]:
    """What names are called among the known ones, by the Unicode form that these have; unknown names as they are.

    Raises
    ------
    InstanceError
        Two of them differ in their Unicode form alone.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        own = name
        if name not in known:
            forms = (unicodedata.normalize(form, name) for form in ("NFC", "NFD"))
            own = next((each for each in forms if each in known), name)
        found[name] = own
        if own in taken:
            raise InstanceError(f"'{shorten(own)}' is given twice, in two Unicode forms")
        taken.add(own)
    return found


def shorten(name: str) -> str:
    """A name, cut where it is too long for a message."""
    return name if len(name) <= _MAX_SHOWN else name[: _MAX_SHOWN - 3] + "..."
