"""Models that earlier versions wrote are read, and score as they did."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.core.stored_models import MODEL_KINDS, load_model

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
