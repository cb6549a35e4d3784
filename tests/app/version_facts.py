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
