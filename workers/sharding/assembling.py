"""The model of a training in shards: put together from what each shard has written to one folder."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.core.artefact_files import read_array, write_array
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.sharding.shardable import Shardable


@dataclass(eq=False)
class Assembly:
    """What the shards have written to ``folder``.

    Attributes
    ----------
    folder : Path
    owns : sequence of int32 array
        What each shard has trained, by rank.
    reports : sequence of mapping
        By rank: ``hashes``, the SHA-256 of its files by their names, and what its part ``reported``.
    """

    folder: Path
    owns: Sequence[NDArray[np.int32]]
    reports: Sequence[Mapping[str, Any]]
    _model: Model | None = field(default=None, init=False)

    @property
    def owner(self) -> NDArray[np.int32]:
        """The rank that has trained each class."""
        owner = np.empty(sum(map(len, self.owns)), np.int32)
        for rank, own in enumerate(self.owns):
            owner[own] = rank
        return owner

    @property
    def hashes(self) -> dict[str, str]:
        """The SHA-256 of all files by their names."""
        return {name: digest for shard in self.reports for name, digest in shard["hashes"].items()}

    def make(self, solver: Shardable, problem: Problem) -> Model:
        """The model, around the mapped files where it stays in shards."""
        arrays = {name: read_array(self.folder / f"{name}.npy", mmap=True) for name in self.hashes}
        self._model = solver.assembled(problem, self.owner, arrays, [shard["reported"] for shard in self.reports])
        return self._model

    def save(self, to: Path, lineage: Mapping[str, Any]) -> str:
        """Move the files to where the model shall be, or write it there and remove them; the SHA-256 of its manifest.

        :meth:`make` comes first.
        """
        model = self._model
        assert model is not None
        if model.in_shards:
            hashes = self.hashes | {"owner": write_array(self.folder / "owner.npy", self.owner)}
            return model.seal(self.folder, hashes, to, lineage)
        sha256 = model.save(to, lineage)
        shutil.rmtree(self.folder)
        return sha256
