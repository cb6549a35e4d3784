"""A data folder with one large linear model and its viewer's key, as training would have left it, and its requests."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from app.access import keys
from app.features.columns import SparseFeatures
from app.models import versions
from app.store import tables
from app.store.db import db_now, new_id, sessions, writing
from app.store.files import files
from app.store.migrate import upgrade
from solvers.core.linear_model import LinearModel
from solvers.core.model import Model
from solvers.hierarchical.subtree_model import SubtreeModel
from solvers.labels.taxonomy import Taxonomy

Answer = Literal["one label", "set", "set under a tree"]
Floats32 = NDArray[np.float32]
NAME, FEATURES, CLASSES, NONZEROS = "large", 50_000, 1_000, 100


def make(
    url: str,
    folder: str = "models/bench",
    n_features: int = FEATURES,
    n_classes: int = CLASSES,
    name: str = NAME,
    answer: Answer = "one label",
) -> str:
    """Write the model into the home that the settings name; returns a viewer's secret."""
    upgrade(url)
    rng = np.random.default_rng(0)
    W = rng.standard_normal((n_features, n_classes), dtype=np.float32)
    model = _model(W, answer)
    store = files()
    features = SparseFeatures(n_features)
    manifest = {"kind": features.kind, "params": features.params_json()}
    store.save_arrays(f"{folder}/features", features.arrays(), manifest)
    sha256 = model.save(store.path(f"{folder}/model"))
    with sessions()() as session:
        with writing(session):
            job = tables.Job(
                id=new_id(), kind="train", state="succeeded", queue="jobs", request={}, attempt=1, losses=0,
                created_at=db_now(),
            )  # fmt: skip
            session.add(job)
            session.flush()
            versions.add(session, name, _facts(job.id, folder, sha256, n_features, n_classes), {})
        return keys.create(session, f"bench-{name}", "viewer").secret


def _model(W: Floats32, answer: Answer) -> Model:
    n_features, n_classes = W.shape
    names = [f"class-{c}" for c in range(n_classes)]
    if answer == "one label":
        return LinearModel(names, n_features, np.arange(n_features), W)
    # a score has a deviation of 5 where all values of a row are 0.5: three labels of a thousand are positive
    if answer == "set":
        tree, least = Taxonomy.flat(names), np.full(n_classes, -13.75, np.float32)
    else:
        n_broad = n_classes // 10
        tree = Taxonomy.from_parents(names, [-1] * n_broad + [c % n_broad for c in range(n_broad, n_classes)])
        least = np.where(tree.level == 1, -9.0, -8.0).astype(np.float32)
    return SubtreeModel(tree, LinearModel(tree.names, n_features, np.arange(n_features), W, least), "path")


def body(n: int, seed: int = 0) -> bytes:
    """One request: ``n`` instances of 100 features each, the five best labels of each wanted."""
    rng = np.random.default_rng(seed)
    instances: list[dict[str, Any]] = []
    for _ in range(n):
        indices = np.sort(rng.choice(FEATURES, NONZEROS, replace=False)).tolist()
        instances.append({"indices": indices, "values": rng.standard_normal(NONZEROS).round(6).tolist()})
    return orjson.dumps({"instances": instances, "top_k": 5})


def model_file(home: Path) -> Path:
    """Where the model lies in a home."""
    return home / "files" / "models" / "bench" / "model"


def _facts(job_id: str, folder: str, sha256: str, n_features: int, n_classes: int) -> versions.Facts:
    return versions.Facts(
        job_id=job_id, dataset_id=None, dataset_sha256="0" * 64, solver="weston_watkins", params={}, seed=0,
        request={}, code_version="bench", n_classes=n_classes, n_features=n_features, n_train=1, epochs=1,
        converged=True, primal=1.0, dual=1.0, gap=0.0, violation=0.0, seconds=0.0, path=folder, sha256=sha256,
        size_bytes=4 * n_features * n_classes,
    )  # fmt: skip
