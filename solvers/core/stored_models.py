"""Stored models: which class reads which kind, and loading one from its folder."""

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from solvers.core.artefact_files import file_digest, read_array
from solvers.core.certain_answers import Reach
from solvers.core.model import COSTS, Model
from solvers.labels.costs import Costs
from solvers.labels.stored_arrays import ArrayFault
from solvers.numerics.array_types import Array
from solvers.numerics.lazy_arrays import part_of

# The class of every kind of model that an artefact may hold, imported when a first model of its kind is met.
MODEL_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "linear": "solvers.core.linear_model:LinearModel",
        "sparse_linear": "solvers.core.sparse_linear_model:SparseLinearModel",
        "sharded_linear": "solvers.core.sharded_linear_model:ShardedLinearModel",
        "kernel": "solvers.kernel_svm.kernel_model:KernelModel",
        "code": "solvers.output_codes.code_model:CodeModel",
        "linear_code": "solvers.output_codes.code_model:LinearCodeModel",
        "stumps": "solvers.boosting.weak_learners.stumps_model:StumpsModel",
        "trees": "solvers.boosting.weak_learners.decision_trees_model:DecisionTreesModel",
        "committee": "solvers.boosting.weak_learners.binary_machines:CommitteeModel",
        "label_trees": "solvers.hierarchical.learnt_trees.label_tree_model:LabelTreeModel",
        "centroids": "solvers.hierarchical.learnt_trees.centroid_model:CentroidModel",
        "pool": "solvers.selection.pool_model:PoolModel",
        "set_pool": "solvers.selection.sets.set_model:SetPoolModel",
        "taxonomy": "solvers.hierarchical.taxonomy_model:TaxonomyModel",
        "kernel_taxonomy": "solvers.hierarchical.kernel_taxonomy_model:KernelTaxonomyModel",
        "subtree": "solvers.hierarchical.subtree_model:SubtreeModel",
        "subjects": "solvers.subjects.model:SubjectModel",
    }
)


class ModelError(ValueError):
    """A folder does not hold a model that this version can read, or its bytes differ from the listed hash."""


def load_model(folder: Path, *, mmap: bool = True, verify: bool = False) -> tuple[Model, dict[str, Any]]:
    """Read a model and the details of its manifest.

    Parameters
    ----------
    folder : Path
    mmap : bool
        Map the arrays read-only instead of reading them, so that processes share one copy.
    verify : bool
        Compare every array with its SHA-256 first.

    Raises
    ------
    ModelError
        The folder holds no model, one of a later version, one whose bytes have changed, or arrays that do not fit one
        another.
    """
    manifest = _manifest(folder)
    kind_of(manifest, folder.name)  # before its arrays are read
    arrays = {}
    for name, digest in manifest["arrays"].items():
        path = folder / f"{name}.npy"
        if verify and file_digest(path) != digest:
            raise ModelError(f"{path.name} does not match the manifest")
        # a plain view of the same bytes: every slice of an np.memmap is another one, at several times the cost
        arrays[name] = np.asarray(read_array(path, mmap=mmap))
    return model_of(manifest, arrays, folder.name), manifest["details"]


def model_of(manifest: Mapping[str, Any], arrays: Mapping[str, Array], name: str = "model") -> Model:
    """The model that a manifest describes, with these arrays, wherever they come from.

    Raises
    ------
    ModelError
        It is of a later version, or the arrays do not fit one another; the message begins with ``name``.
    """
    kind = kind_of(manifest, name)
    try:
        priced = part_of(arrays, COSTS)
        own = {each: array for each, array in arrays.items() if not each.startswith(f"{COSTS}.")}
        model = kind.from_arrays(tuple(manifest["classes"]), manifest["n_features"], own)
        model.costs = Costs.from_arrays(len(model.classes), priced) if priced else None
    except ArrayFault as error:
        raise ModelError(f"{name}: {error}") from error
    model.report = manifest.get("report", {})
    model.record = manifest.get("record", {})
    model.reach = Reach.of_json(manifest["reach"]) if "reach" in manifest else None
    return model


def kind_of(manifest: Mapping[str, Any], name: str = "model") -> type[Model]:
    """The class of the model that a manifest describes; raises ModelError for one of a later version."""
    kind = find_kind(str(manifest.get("kind")))
    if manifest.get("format") != 1 or kind is None:
        raise ModelError(f"{name} was written by another version of the program")
    return kind


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_bytes())
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder.name} has no readable manifest.json") from error
    return manifest


def find_kind(name: str) -> type[Model] | None:
    """The class of a kind of model by :data:`MODEL_KINDS`; None for a kind that this version does not know."""
    if name not in MODEL_KINDS:
        return None
    module, _, member = MODEL_KINDS[name].partition(":")
    found: type[Model] = getattr(importlib.import_module(module), member)
    return found
