"""Models that earlier versions wrote are read, and score as they did."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.core.stored_models import MODEL_KINDS, ModelError, load_model

FOLDER = Path(__file__).parents[2] / "artefacts" / "models"
STORED = sorted(path.parent.name for path in FOLDER.glob("*/manifest.json"))


@pytest.mark.parametrize("name", STORED)
def test_a_model_of_an_earlier_version_scores_as_it_did(name):
    model, details = load_model(FOLDER / name, verify=True)
    assert details == {"written": "before 1.0"}
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as case:
        X, scores = sp.csr_matrix(case["X"]), case["scores"]
    assert scores.shape == (X.shape[0], len(model.classes))
    # the order in which a library adds products differs from machine to machine
    tolerance = {"rtol": 1e-5, "atol": 1e-6 * np.abs(scores).max()}
    np.testing.assert_allclose(model.scores(X), scores, **tolerance)
    for i in range(X.shape[0]):
        row = X[i]
        np.testing.assert_allclose(model.score_one(row.indices, row.data), scores[i], **tolerance)


def test_a_model_of_every_kind_is_stored():
    kinds = {json.loads((FOLDER / name / "manifest.json").read_text())["kind"] for name in STORED}
    assert kinds == set(MODEL_KINDS)
    assert {name.split("-")[0] for name in STORED} == kinds


def _loaded_with(folder, name, array):
    """The model whose array is another; what was there is there again."""
    path = folder / f"{name}.npy"
    whole = path.read_bytes()
    np.save(path, array)
    try:
        return load_model(folder)[0]
    finally:
        path.write_bytes(whole)


@pytest.mark.parametrize("name", STORED)
def test_indices_out_of_range_and_sizes_that_do_not_agree_are_refused(name, tmp_path):
    folder = tmp_path / name
    shutil.copytree(FOLDER / name, folder)
    tried = 0
    for path in sorted(folder.glob("*.npy")):
        array = np.load(path, allow_pickle=False)
        if array.dtype.kind not in "if" or array.size == 0 or array.ndim == 0:
            continue
        # a rule of fewer candidates, or fewer rounds of boosting, are models of their own
        if not path.stem.endswith(("candidates", "vote_ends", "numbers", "bank_leads", "threshold")):
            with pytest.raises(ModelError, match="array"):
                _loaded_with(folder, path.stem, array[:-1])
        if array.dtype.kind == "i" and array.dtype.itemsize > 1 and not path.stem.endswith("code"):
            # counts of rows have no upper bound
            for wrong in (-2,) if path.stem.endswith((".has", ".names")) else (1 << 30, -2):
                other = array.copy()
                other.reshape(-1)[-1] = wrong
                with pytest.raises(ModelError, match="array"):
                    _loaded_with(folder, path.stem, other)
                tried += 1
    assert tried > 0


def test_a_label_tree_whose_node_is_its_own_parent_is_refused(tmp_path):
    folder = tmp_path / "label_trees"
    shutil.copytree(FOLDER / "label_trees", folder)
    parent = np.load(folder / "parent.npy", allow_pickle=False)
    with pytest.raises(ModelError, match="before its parent"):
        _loaded_with(folder, "parent", np.append(parent[:-1], len(parent) - 1).astype(parent.dtype))


def test_starts_of_rows_that_fall_are_refused(tmp_path):
    folder = tmp_path / "sparse_linear"
    shutil.copytree(FOLDER / "sparse_linear", folder)
    indptr = np.load(folder / "indptr.npy", allow_pickle=False)
    indptr[1] = indptr[-1] + 0
    with pytest.raises(ModelError, match="does not rise"):
        _loaded_with(folder, "indptr", indptr)
