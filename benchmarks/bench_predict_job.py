"""How many rows a second does a prediction job answer, from its start to its file?

One worker process, in this process, on rows of 100 features; the import of the rows is not counted.
"""

import argparse
import os
import tempfile
import time

import numpy as np

from benchmarks import serving_model
from benchmarks.processes import apart
from benchmarks.results import write

FEATURES = 2_000
MODELS: tuple[tuple[int, serving_model.Answer], ...] = (
    (20, "one label"),
    (100, "one label"),
    (1_000, "one label"),
    (1_000, "set"),
    (1_000, "set under a tree"),
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=100_000)
    chosen = arguments.parse_args()
    rows = []
    for n_classes, answer in MODELS:
        with tempfile.TemporaryDirectory() as home:
            os.environ["POLYMARGIN_HOME"] = home
            for format, rate in apart(_measure, n_classes, answer, chosen.rows):
                rows.append([answer, n_classes, format, f"{rate:.0f}"])
    note = (
        f"{chosen.rows} rows of {serving_model.NONZEROS} features out of {FEATURES}: the best label, or a set of three "
        "on average; one worker."
    )
    write("Prediction jobs", ["answer", "classes", "format", "rows/s"], rows, note)


def _measure(n_classes: int, answer: serving_model.Answer, n_rows: int) -> list[tuple[str, float]]:
    from app.config import settings
    from app.datasets import service as datasets
    from app.datasets.schemas import NewDataset
    from app.jobs import service as jobs
    from app.predictions.schemas import BatchPredictRequest
    from app.store.db import sessions
    from app.store.files import files
    from workers.tasks import run

    serving_model.make(settings().sqlalchemy_url, n_features=FEATURES, n_classes=n_classes, answer=answer)
    rng = np.random.default_rng(1)
    upload = files().upload()
    for begin in range(0, n_rows, 1000):
        columns = np.sort(rng.integers(1, FEATURES, (1000, serving_model.NONZEROS)), axis=1)
        lines = []
        for row in columns:
            distinct = np.unique(row)
            lines.append("class-0 " + " ".join(f"{j}:0.5" for j in distinct.tolist()))
        upload.write(("\n".join(lines[: n_rows - begin]) + "\n").encode())
    found = []
    with sessions()() as session:
        shown = datasets.register(session, NewDataset(name="rows", format="svmlight"), upload)
        assert shown.job is not None
        run(shown.job)
        for format in ("parquet", "csv", "jsonl"):
            request = {"dataset": "rows", "model": serving_model.NAME, "format": format}
            job = jobs.submit(session, BatchPredictRequest.model_validate(request))
            began = time.perf_counter()
            run(job.id)
            seconds = time.perf_counter() - began
            done = jobs.get(session, job.id)
            assert done.state == "succeeded", done.error
            found.append((format, n_rows / seconds))
    return found


if __name__ == "__main__":
    main()
