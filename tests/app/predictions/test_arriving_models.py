"""Versions in object storage answer by the rows of a request's features, before the whole version is there."""

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking import TestClient, problem
from version_facts import FACTS

from app.config import settings
from app.errors import Unavailable
from app.features.base import Row, stack
from app.features.columns import SparseFeatures
from app.models import versions
from app.predictions.arriving import has_rows, with_rows, without_weights
from app.store import ranges, tables
from app.store.bucket_files import BucketFiles
from app.store.db import db_now, new_id, sessions, writing
from app.store.files import files
from solvers.core.linear_model import LinearModel
from solvers.core.model import Model
from solvers.core.sharded_linear_model import ShardedLinearModel
from solvers.core.sparse_linear_model import SparseLinearModel, sparse_rows
from solvers.core.stored_models import load_model
from solvers.hierarchical.subtree_model import SubtreeModel
from solvers.hierarchical.taxonomy_model import TaxonomyModel
from solvers.labels.taxonomy import Taxonomy
from solvers.labels.tree_part import TreePart
from solvers.output_codes.code_model import LinearCodeModel
from solvers.selection.pool_model import PoolModel
from solvers.selection.sets.node_calibration import NodeCalibration
from solvers.selection.sets.set_model import SetPoolModel

N_FEATURES, N_CLASSES = 400, 8
NAMES = [f"c{c}" for c in range(N_CLASSES)]
RNG = np.random.default_rng(1)
W = RNG.standard_normal((N_FEATURES, N_CLASSES)).astype(np.float32)
SOME = np.sort(RNG.choice(N_FEATURES, 300, replace=False))
INTERCEPT = RNG.standard_normal(N_CLASSES).astype(np.float32)
FOLDER = "models/arriving"


def _linear(of: Any = slice(None), dtype: Any = np.float32, intercept: Any = None) -> LinearModel:
    return LinearModel(
        NAMES, N_FEATURES, np.arange(N_FEATURES)[of], np.ascontiguousarray(W[of].astype(dtype)), intercept
    )


TREE = Taxonomy.from_parents(NAMES, [-1, -1, 0, 0, 1, 1, 2, 2])


def _sharded(bias: float, n_first: int = 4) -> ShardedLinearModel:
    features = np.append(SOME, N_FEATURES) if bias else SOME
    owner = (np.arange(N_CLASSES) >= n_first).astype(np.int32)
    blocks = [np.ascontiguousarray(W[: len(features), owner == block]) for block in (0, 1)]
    return ShardedLinearModel(tuple(NAMES), N_FEATURES, features, owner, blocks, bias)


def _set_pool() -> SetPoolModel:
    """One that scores a part of the tree."""
    fitted = NodeCalibration(*np.abs(RNG.normal(size=(4, N_CLASSES))) + 0.1)
    known = TreePart(TREE, np.setdiff1d(np.arange(N_CLASSES, dtype=np.int32), TREE.leaves[:2]))
    few = LinearModel(known.tree.names, N_FEATURES, SOME, np.ascontiguousarray(W[SOME][:, known.nodes]))
    spread = NodeCalibration(*(values[known.nodes] for values in fitted[:4])).spread(known, -0.3)
    return SetPoolModel(TREE, SubtreeModel(known.tree, few, "path"), spread, None, known.nodes)


MODELS: dict[str, Callable[[], Model]] = {
    "all features": _linear,
    "some features and an intercept": lambda: _linear(SOME, intercept=INTERCEPT),
    "half precision": lambda: _linear(dtype=np.float16),
    "double precision": lambda: _linear(SOME, np.float64),
    "code": lambda: LinearCodeModel(NAMES, N_FEATURES, np.arange(N_FEATURES), W, np.eye(N_CLASSES)),
    "tree": lambda: TaxonomyModel(TREE, N_FEATURES, np.arange(N_FEATURES), W),
    "shards": lambda: _sharded(0.0),
    "shards with an intercept": lambda: _sharded(0.5),
    "shards of which one is small": lambda: _sharded(0.5, n_first=1),
    "pool of sets": lambda: _set_pool(),
    "subtrees": lambda: SubtreeModel(TREE, LinearModel(NAMES, N_FEATURES, np.arange(N_FEATURES), W, INTERCEPT), "path"),
    "pool": lambda: PoolModel([_linear(SOME), _linear(dtype=np.float16)], np.array([0.7, 0.4])),
}


@pytest.fixture
def elsewhere(bucket: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> BucketFiles:
    """Files of another machine, with digests of all arrays of two kilobytes or more."""
    monkeypatch.setattr(ranges, "RANGED_BYTES", 1 << 12)
    monkeypatch.setattr(ranges, "BLOCK_BYTES", 512)
    store = files()
    assert isinstance(store, BucketFiles)
    return BucketFiles(tmp_path / "elsewhere", store.bucket, 1 << 30)


def _published(model: Model) -> str:
    """Write the model and its features to the bucket alone; the digest of its manifest."""
    store = files()
    features = SparseFeatures(N_FEATURES)
    store.save_arrays(
        f"{FOLDER}/features", features.arrays(), {"kind": features.kind, "params": features.params_json()}
    )
    sha256 = model.save(store.path(f"{FOLDER}/model"))
    store.publish(f"{FOLDER}/model")
    return sha256


def _examples(n: int) -> list[Row]:
    rng = np.random.default_rng(2)
    rows = []
    for _ in range(n):
        indices = np.sort(rng.choice(N_FEATURES, 20, replace=False)).astype(np.int32)
        rows.append((indices, rng.standard_normal(20)))
    return rows


@pytest.mark.parametrize("kind", MODELS)
def test_scores_have_the_bits_of_the_whole_model(kind: str, elsewhere: BucketFiles) -> None:
    _published(MODELS[kind]())
    whole, _ = load_model(files().path(f"{FOLDER}/model"))
    folder = elsewhere.ranged(f"{FOLDER}/model")
    assert folder is not None
    assert has_rows(folder)
    rows = _examples(5)
    part = with_rows(folder, rows)
    assert part.classes == whole.classes
    for row in rows:
        np.testing.assert_array_equal(part.score_one(*row), whole.score_one(*row))
        for found, expected in zip(part.top(*row, 3), whole.top(*row, 3), strict=True):
            np.testing.assert_array_equal(found, expected)
    X = stack(rows, N_FEATURES)
    np.testing.assert_array_equal(part.scores(X), whole.scores(X))
    lacking = (np.setdiff1d(np.arange(N_FEATURES), SOME)[:3].astype(np.int32), np.ones(3))
    np.testing.assert_array_equal(with_rows(folder, [lacking]).score_one(*lacking), whole.score_one(*lacking))
    unknown = np.isnan(without_weights(folder).score_one(*rows[0]))
    n_known = {"shards of which one is small": 1, "pool of sets": 2}.get(kind, 0)
    assert unknown.sum() == N_CLASSES - n_known


def test_a_model_that_needs_more_than_rows_is_not_read_by_rows(elsewhere: BucketFiles) -> None:
    model = SparseLinearModel(NAMES, sparse_rows(W, np.arange(N_FEATURES), N_FEATURES), None, False)
    _published(model)
    found = None
    try:
        found = elsewhere.ranged(f"{FOLDER}/model")
    except ValueError:  # no array of two axes
        return
    assert found is None or not has_rows(found)


@pytest.fixture
def away(request: pytest.FixtureRequest, client: TestClient, elsewhere: BucketFiles) -> TestClient:
    """A client of a service whose bucket has the version ``arriving``, of which nothing is on its machine."""
    sha256 = _published(MODELS[getattr(request, "param", "some features and an intercept")]())
    with sessions()() as session, writing(session):
        job = tables.Job(
            id=new_id(), kind="train", state="succeeded", queue="jobs", request={}, attempt=1, losses=0,
            created_at=db_now(),
        )  # fmt: skip
        session.add(job)
        session.flush()
        size = {"n_classes": N_CLASSES, "n_features": N_FEATURES}
        versions.add(session, "arriving", replace(FACTS, job_id=job.id, path=FOLDER, sha256=sha256, **size), {})
    shutil.rmtree(settings().files_folder)
    return client


BODY = {"instances": [{"indices": [3, 7, 200], "values": [1.0, -2.0, 0.5]}], "top_k": N_CLASSES, "explain": 3}


def _ask(client: TestClient, **more: Any) -> Any:
    return client.post("/api/v1/models/arriving/predict", json=BODY | more)


class Held:
    """Holds up the download of the whole array until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go_on, self.begun = threading.Event(), threading.Event()
        get = BucketFiles._get_array

        def hold(store: BucketFiles, relative: str, name: str, part: Path, sha256: str) -> None:
            if "W" in name:
                self.begun.set()
                assert self.go_on.wait(60)
            get(store, relative, name, part, sha256)

        monkeypatch.setattr(BucketFiles, "_get_array", hold)


def _whole() -> dict[str, Any]:
    expected = _linear(SOME, intercept=INTERCEPT).score_one(np.array([3, 7, 200], np.int32), np.array([1.0, -2.0, 0.5]))
    best = np.argsort(-expected, kind="stable")
    return {NAMES[c]: float(expected[c]) for c in best}


def _scores(answer: Any) -> dict[str, float]:
    assert answer.status_code == 200, answer.text
    return {each["label"]: each["score"] for each in answer.json()["predictions"][0]["top"]}


def test_answers_come_before_the_version_and_are_the_same_after_it(
    away: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch)
    first = _ask(away)
    assert held.begun.wait(60)
    second = _ask(away)
    assert not settings().files_folder.joinpath(FOLDER, "model").exists()
    held.go_on.set()
    cache = away.app.state.models  # type: ignore[attr-defined]
    while cache._arriving:
        threading.Event().wait(0.01)
    assert [each.version.model for each in cache.loaded()] == ["arriving"]
    after = _ask(away)
    assert _scores(first) == _scores(second) == _scores(after) == _whole()
    assert list(_scores(first)) == list(_whole())
    without_ids = [{**each.json(), "id": None} for each in (first, second, after)]
    assert without_ids[0] == without_ids[1] == without_ids[2]
    assert settings().files_folder.joinpath(FOLDER, "model", "W.npy").exists()


@pytest.mark.parametrize(
    "away", ["subtrees", "tree", "pool", "pool of sets", "shards with an intercept"], indirect=True
)
def test_answers_of_other_kinds_are_the_same_before_and_after(
    away: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch)
    asked = [{}, {"include": ["c1", "c2"]}, {"instances": 3 * BODY["instances"]}]
    before = [_ask(away, **more) for more in asked]
    assert away.app.state.models.loaded() == []  # type: ignore[attr-defined]
    held.go_on.set()
    cache = away.app.state.models  # type: ignore[attr-defined]
    while cache._arriving:
        threading.Event().wait(0.01)
    after = [_ask(away, **more) for more in asked]
    assert {answer.status_code for answer in before} <= {200, 422}
    assert before[0].status_code == before[2].status_code == 200
    for first, second in zip(before, after, strict=True):
        assert {**first.json(), "id": None, "request_id": None} == {**second.json(), "id": None, "request_id": None}


def test_many_requests_at_once_open_and_fetch_it_once(
    away: TestClient, bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch)
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(_ask(away))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held.go_on.set()
    assert all(_scores(answer) == _whole() for answer in answers)
    assert sum(method == "GET" and path.endswith(ranges.SUFFIX) for method, path in bucket.requests) == 1


def test_rows_that_cannot_be_read_wait_for_the_whole_version(away: TestClient) -> None:
    store = files()
    assert isinstance(store, BucketFiles)
    kept = store.bucket.get_bytes(f"{FOLDER}/model/W.npy{ranges.SUFFIX}")
    first, rest = kept.split(b'"blocks": ["', 1)
    parts = rest.split(b'", "')
    damaged = first + b'"blocks": ["' + b'", "'.join([parts[0]] + [b"0" * 64] * (len(parts) - 2) + [parts[-1]])
    store.bucket.put_bytes(f"{FOLDER}/model/W.npy{ranges.SUFFIX}", damaged)
    assert _scores(_ask(away)) == _whole()
    assert settings().files_folder.joinpath(FOLDER, "model", "W.npy").exists()


def test_a_request_for_too_many_rows_waits_for_the_whole_version(
    away: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.store.ranges.MOST_BYTES", 3 * 512)
    wide = {"indices": list(range(0, N_FEATURES, 4)), "values": [0.5] * (N_FEATURES // 4)}
    answer = _ask(away, instances=[wide])
    assert answer.status_code == 200
    assert settings().files_folder.joinpath(FOLDER, "model", "W.npy").exists()


def test_a_whole_version_that_is_damaged_is_not_served_and_fetched_again_a_minute_later(
    away: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = files()
    assert isinstance(store, BucketFiles)
    path = f"{FOLDER}/model/W.npy"
    content = store.bucket.get_bytes(path)
    held = Held(monkeypatch)
    held.go_on.set()
    (tmp_path / "damaged").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))  # in a row that no request reads
    store.bucket.put(path, tmp_path / "damaged", "0" * 64)
    assert _scores(_ask(away)) == _whole()
    cache = away.app.state.models  # type: ignore[attr-defined]
    (arriving,) = cache._arriving.values()
    assert isinstance(arriving.arrival._whole.exception(60), Unavailable)
    assert cache.loaded() == []
    held.begun.clear()
    assert _scores(_ask(away)) == _whole()  # by rows that are checked
    assert not held.begun.is_set()
    problem(_ask(away, instances=30 * [{"indices": [1], "values": [1.0]}], certain=True), 422)
    problem(away.get("/api/v1/models/arriving/versions/1/terms?label=c0"), 503, "unavailable")
    (tmp_path / "repaired").write_bytes(content)
    store.bucket.put(path, tmp_path / "repaired", "0" * 64)
    arriving.arrival._ended_at -= 61
    assert _scores(_ask(away)) == _whole()
    assert arriving.arrival._whole.result(60).version.model == "arriving"
    assert cache._arriving == {}
    assert _scores(_ask(away)) == _whole()


def test_a_wrong_request_fetches_no_weights(away: TestClient) -> None:
    problem(_ask(away, instances=[{"indices": [N_FEATURES], "values": [1.0]}]), 422)
    assert not settings().files_folder.joinpath(FOLDER, "model").exists()


def test_other_uses_wait_for_the_whole_version(away: TestClient) -> None:
    assert away.get("/api/v1/models/arriving/versions/1/terms?label=c0").status_code in (200, 404, 409, 422)
    assert settings().files_folder.joinpath(FOLDER, "model", "W.npy").exists()
