"""Lists of names as two arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt


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
