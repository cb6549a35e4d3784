"""Smaller copies of versions: their files, what they are measured to lose, and what refuses to be one."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sqlalchemy.orm import Session, sessionmaker

from app.errors import Conflict
from app.evaluations import comparisons
from app.evaluations.comparisons import Side
from app.evaluations.schemas import EvaluateRequest
from app.exports import archive_imports, archives
from app.exports.model_cards import model_card
from app.exports.onnx_models import onnx_model
from app.jobs import service as jobs
from app.jobs.request_schemas import CompressRequest
from app.jobs.schemas import Job, TrainRequest
from app.models import aliases
from app.models import service as models
from app.models.schemas import ModelAbout, ModelVersion
from app.predictions.model_cache import ModelCache, load_version
from app.store.files import files
from solvers.core.stored_models import load_model
from workers.job_kinds.compressing import Pruning
from workers.tasks import run


def _trained(database: sessionmaker[Session], solver: str = "weston_watkins", **changes: Any) -> ModelVersion:
    with database() as session:
        request = TrainRequest(solver=solver, dataset="digits", model="m", **changes)
        job = jobs.submit(session, request)
        run(job.id)
        assert jobs.get(session, job.id).error is None
        return models.version(session, "m")


def _submit(database: sessionmaker[Session], **changes: Any) -> Job:
    with database() as session:
        job = jobs.submit(session, CompressRequest.model_validate({"kind": "compress", "model": "m"} | changes))
        run(job.id)
        return jobs.get(session, job.id)


def _copied(database: sessionmaker[Session], **changes: Any) -> ModelVersion:
    job = _submit(database, **changes)
    assert job.error is None, job.error.detail
    assert job.result is not None
    with database() as session:
        return models.version(session, "m", job.result.version)


def test_a_copy_in_half_precision_is_a_version_with_lineage_its_loss_and_no_certificate(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    source = _trained(database, test_fraction=0.3)
    copy = _copied(database, float16=True)
    copied_from = copy.copy_of
    assert copied_from is not None
    assert (copy.version, copied_from.version, copied_from.version_sha256) == (2, 1, source.sha256)
    assert (copied_from.float16, copied_from.prune_share, copied_from.prune_below, copied_from.pruned) == (
        True,
        None,
        None,
        0,
    )
    assert source.gap is not None
    assert (copy.gap, copy.primal, copy.dual, copied_from.gap) == (None, None, None, source.gap)
    assert (copied_from.part, copied_from.dataset_sha256) == ("test", source.dataset_sha256)
    assert copied_from.n_rows > 0
    assert copied_from.agreement >= 0.9
    assert copied_from.error_source == pytest.approx(source.metrics["test"]["error"])
    # a copy has no certificate, which certain answers follow from
    assert copy.metrics["test"].keys() == source.metrics["test"].keys() - {"certain"}
    assert copy.metrics["test"]["error"] == pytest.approx(copied_from.error)
    assert copied_from.loss_low <= copied_from.error - copied_from.error_source <= copied_from.loss_high
    assert copied_from.memory_bytes < copied_from.memory_bytes_source
    with database() as session:
        folder = files().path(models.folder(session, copy.id))
        model, lineage = load_model(folder / "model", verify=True)
    assert model.arrays()["W"].dtype == np.float16
    assert (lineage["copy_of"]["version"], lineage["copy_of"]["version_sha256"]) == (1, source.sha256)
    assert lineage["answers"] is not None


def test_the_latest_stays_what_it_was_and_an_alias_names_the_copy(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    source = _trained(database)
    copy = _copied(database, float16=True)
    with database() as session:
        assert models.version(session, "m").id == source.id
        found = models.get(session, "m")
        assert found.latest is not None
        assert (found.latest.version, found.versions) == (1, [2, 1])
        aliases.set_alias(session, "m", "small", copy.version)
        assert models.version(session, "m", alias="small").id == copy.id


@pytest.mark.parametrize("changes", [{"prune_share": 0.9}, {"prune_below": 0.3, "float16": True}])
def test_pruned_weights_answer_from_their_files_and_are_counted(
    database: sessionmaker[Session], dataset: Callable[..., str], changes: dict[str, Any]
) -> None:
    dataset()
    source = _trained(database, test_fraction=0.3)
    copy = _copied(database, **changes)
    assert copy.copy_of is not None
    assert 0 < copy.copy_of.pruned < copy.copy_of.weights
    with database() as session:
        small, whole = (load_version(session, each).model for each in (copy, source))
    before, after = (each.linear_weights() for each in (whole, small))
    assert before is not None
    assert after is not None
    n = small.n_features
    n_before, n_after = (np.count_nonzero(each.coef(n)) for each in (before, after))
    assert (n_before, n_before - n_after) == (copy.copy_of.weights, copy.copy_of.pruned)


@pytest.mark.parametrize("solver", ["weston_watkins", pytest.param("one_vs_rest", marks=pytest.mark.slow)])
def test_copies_predict_and_are_evaluated_and_compared_as_any_version(
    database: sessionmaker[Session], dataset: Callable[..., str], solver: str
) -> None:
    dataset()
    _trained(database, solver, test_fraction=0.3)
    copy = _copied(database, float16=True, prune_share=0.3)
    cache = ModelCache(database, 1 << 30)
    loaded = cache.get(("default", "m", copy.version, None))
    answered = loaded.model.top(np.array([0], np.int32), np.array([1.0]))
    assert answered[0][0] in range(copy.n_classes)
    with database() as session:
        for version in (1, copy.version):
            request = EvaluateRequest(kind="evaluate", model="m", dataset="digits", version=version, resamples=0)
            run(jobs.submit(session, request).id)
        found = comparisons.compare(session, Side("m", "1"), Side("m", str(copy.version)))
    assert copy.copy_of is not None
    assert (found.mcnemar, found.n_rows) == (copy.copy_of.mcnemar, copy.copy_of.n_rows)


def test_an_archive_of_a_copy_is_imported_with_its_lineage_and_read_by_the_script(
    database: sessionmaker[Session], dataset: Callable[..., str], tmp_path: Path
) -> None:
    dataset()
    _trained(database)
    copy = _copied(database, float16=True)
    path = tmp_path / "copy.npz"
    with database() as session:
        content = b"".join(archives.make(session, "m", copy.version).blocks())
        path.write_bytes(content)
        upload = files().upload()
        upload.write(content)
        with archive_imports.unpacked(session, upload, lambda: None) as archive:
            taken = archive_imports.register(session, archive, "elsewhere")
        model, arrived = (load_version(session, each).model for each in (copy, taken))
        assert models.version(session, "elsewhere").id == taken.id
    assert taken.copy_of == copy.copy_of
    X = np.eye(model.n_features)[:4]
    loader = path.with_name("load.py")
    with np.load(path, allow_pickle=False) as members:
        loader.write_bytes(bytes(members["load.py"]))
    script = (
        "import json, sys, numpy as np; from load import Classifier; "
        f"print(json.dumps(Classifier('copy.npz').decision_function(np.eye({copy.n_features})[:4]).tolist()))"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=True)
    rows = sp.csr_matrix(X)
    np.testing.assert_allclose(json.loads(ran.stdout), model.scores(rows), atol=1e-5)
    assert arrived.scores(rows).tobytes() == model.scores(rows).tobytes()


def test_the_card_says_that_the_certificate_is_the_sources(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    _trained(database)
    card = model_card(_copied(database, prune_share=0.5), "sparse", "linear", ModelAbout())
    assert "smaller copy of version 1" in card
    assert "it has no certificate" in card


def test_onnx_has_the_copys_weights(database: sessionmaker[Session], dataset: Callable[..., str]) -> None:
    onnx = pytest.importorskip("onnx")
    dataset()
    _trained(database)
    copy = _copied(database, float16=True)
    with database() as session:
        loaded = load_version(session, copy)
    graph = onnx.load_model(io.BytesIO(onnx_model(copy, loaded.model, loaded.features))).graph
    W = next(onnx.numpy_helper.to_array(each) for each in graph.initializer if each.name == "W")
    np.testing.assert_array_equal(W, loaded.model.arrays()["W"].astype(np.float32))


def test_copies_of_copies_and_models_without_weights_are_refused(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    _trained(database)
    copy = _copied(database, float16=True)
    with pytest.raises(Conflict, match="version 2 is itself a smaller copy"):
        _submit(database, version=copy.version, float16=True)
    _trained(database, "adaboost_mh")
    job = _submit(database, version=3, float16=True)
    assert job.state == "failed"
    assert job.error is not None
    assert "has no feature weights to compress" in job.error.detail


def test_nothing_to_be_smaller_and_two_ways_of_pruning_are_refused() -> None:
    for given, fault in (
        ({}, "at least one of float16, prune_share and prune_below"),
        ({"prune_share": 0.5, "prune_below": 1.0}, "not both"),
    ):
        with pytest.raises(ValueError, match=fault):
            CompressRequest.model_validate({"kind": "compress", "model": "m", **given})


def test_a_share_is_of_the_weights_that_are_not_zero_the_least_first() -> None:
    pruning = Pruning(0.5, None)
    found = pruning(np.array([[0.0, -1.0, 2.0], [3.0, -4.0, 0.0]], np.float32))
    np.testing.assert_array_equal(found, [[0, 0, 0], [3, -4, 0]])
    assert found.dtype == np.float32
    assert (pruning.weights, pruning.pruned) == (4, 2)
    assert np.count_nonzero(Pruning(None, 3.5)(found)) == 1
    np.testing.assert_array_equal(Pruning(0.5, None)(np.zeros((2, 2))), 0)
