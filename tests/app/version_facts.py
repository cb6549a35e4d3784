"""What is known of a version of no model in particular."""

from app.models.versions import Facts

FACTS = Facts(
    job_id="",
    dataset_id=None,
    dataset_sha256="0" * 64,
    solver="weston_watkins",
    params={"C": 1.0},
    seed=0,
    request={},
    code_version="1",
    n_classes=3,
    n_features=5,
    n_train=48,
    epochs=7,
    converged=True,
    primal=2.0,
    dual=1.0,
    gap=0.5,
    violation=None,
    seconds=0.1,
    path="models/x",
    sha256="0" * 64,
    size_bytes=10,
)

EDITION = {
    "version": 1,
    "version_sha256": "0" * 64,
    "hierarchy_sha256": "2" * 64,
    "gap": 0.0005,
    "appeared": 40,
    "gone": 3,
    "merged": 2,
    "dataset_sha256": "3" * 64,
    "part": "test",
    "n_rows": 200,
    "agreement": 0.985,
    "ndcg_source": 0.51,
    "ndcg": 0.53,
    "gain_low": 0.01,
    "gain_high": 0.03,
}
