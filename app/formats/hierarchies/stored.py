"""A vocabulary on its way from the process that reads it to the one that keeps it: files in a folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from app.formats.hierarchies.vocabulary import Dropped, Label, Vocabulary
from solvers.core.artefact_files import read_array
from solvers.labels.taxonomy import Taxonomy


def save_vocabulary(folder: Path, vocabulary: Vocabulary) -> None:
    """Write a vocabulary to an empty folder."""
    tree = vocabulary.tree
    # no name has a line end in it: that is a control character
    (folder / "names").write_text("\n".join(tree.names), encoding="utf-8", newline="")
    np.save(folder / "parent.npy", tree.parent, allow_pickle=False)
    np.save(folder / "others.npy", tree.others, allow_pickle=False)
    _write_lines(folder / "labels", _facts(vocabulary.labels))
    _write_lines(folder / "retired", _facts(vocabulary.retired))
    _write_lines(folder / "dropped", map(tuple, vocabulary.dropped))
    (folder / "read_as").write_bytes(orjson.dumps(dict(vocabulary.read_as)))


def load_vocabulary(folder: Path) -> Vocabulary:
    """The vocabulary that :func:`save_vocabulary` wrote."""
    names = tuple((folder / "names").read_text(encoding="utf-8").split("\n"))
    parent, others = (read_array(folder / f"{name}.npy", mmap=False) for name in ("parent", "others"))
    return Vocabulary(
        Taxonomy(names, parent, others),
        _labels(folder / "labels"),
        _labels(folder / "retired"),
        [Dropped(*values) for values in _lines(folder / "dropped")],
        orjson.loads((folder / "read_as").read_bytes()),
    )


def _facts(labels: Mapping[str, Label]) -> Iterable[object]:
    return ((name, label.facts()) for name, label in labels.items())


def _labels(path: Path) -> dict[str, Label]:
    return {name: Label.from_facts(facts) for name, facts in _lines(path)}


def _write_lines(path: Path, values: Iterable[object]) -> None:
    with path.open("wb") as file:
        for value in values:
            file.write(orjson.dumps(value) + b"\n")


def _lines(path: Path) -> Iterable[Any]:
    with path.open("rb") as file:
        return [orjson.loads(line) for line in file]
