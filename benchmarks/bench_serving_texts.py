"""How many texts a second does one process answer, beside MLServer with a pipeline of scikit-learn on the same rows?

``--mlserver PYTHON`` names the interpreter of an environment that has mlserver and mlserver-sklearn; without it the
service alone is measured. Both are trained on the same texts of 50 words, TF-IDF and a linear machine, and asked for
one text a request. Annif is not there: its analyzers need a data file of NLTK that no package brings.
"""

import argparse
import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import numpy as np
import orjson

from benchmarks.bench_serving import CONNECTIONS, serving
from benchmarks.bench_soak import N_LABELS, N_ROWS, N_WORDS, NAME, texts_with_labels
from benchmarks.processes import apart
from benchmarks.results import write
from benchmarks.serving_load import load

_FIT = """
import json, sys, joblib
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
rows = [json.loads(line) for line in open(sys.argv[1])]
model = make_pipeline(TfidfVectorizer(min_df=2, sublinear_tf=True), LinearSVC())
joblib.dump(model.fit([row["text"] for row in rows], [row["label"] for row in rows]), sys.argv[2])
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=5.0)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--mlserver", metavar="PYTHON")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        home = Path(name)
        os.environ["POLYMARGIN_HOME"], os.environ["POLYMARGIN_LOG_LEVEL"] = name, "error"
        os.environ["POLYMARGIN_REQUESTS_PER_SECOND"] = "0"  # of one key: there is no other here
        texts = texts_with_labels(home / "texts.jsonl")[:512]
        secret = apart(_train, str(home / "texts.jsonl"))
        ours = [orjson.dumps({"instances": [{"text": text}]}) for text in texts]
        port = stack.enter_context(serving("app.server")).port
        asked = {"service": (port, f"/api/v1/models/{NAME}/predict", ours)}
        if chosen.mlserver:
            port = stack.enter_context(_mlserver(chosen.mlserver, home))
            asked["MLServer, scikit-learn"] = (port, f"/v2/models/{NAME}/infer", [_tensor(text) for text in texts])
        rates: dict[str, list[float]] = {program: [] for program in asked}
        tails: dict[str, list[float]] = {program: [] for program in asked}
        for _ in range(chosen.rounds):
            for program, (port, path, bodies) in asked.items():
                found = load(port, path, bodies, secret, CONNECTIONS, chosen.seconds)
                assert found["failed"] == 0, (program, found)
                rates[program].append(found["rate"])
                tails[program].append(found["p99"])
    base = np.array(rates["service"])
    rows = [
        [program, f"{np.median(of):.0f}", f"{np.median(tails[program]):.1f}", f"{np.median(base / of):.1f}"]
        for program, of in rates.items()
    ]
    note = (
        f"Texts of {N_WORDS} words, {N_LABELS} labels, trained on {N_ROWS} rows; one text a request, {CONNECTIONS} "
        f"connections, {chosen.rounds} rounds of {chosen.seconds:g} s in turns, medians; one process each, the load "
        "from the same machine. MLServer answers without parallel workers, which are for models that take longer."
    )
    write("Serving: texts", ["program", "requests/s", "p99 ms", "the service answers times as many"], rows, note)


def _train(path: str) -> str:
    """Train the service's model in this process; returns a viewer's secret."""
    from app.config import settings
    from app.schemas.datasets import NewDataset
    from app.schemas.jobs import TrainRequest
    from app.services import datasets, jobs, keys
    from app.store.db import sessions
    from app.store.files import files
    from app.store.migrate import upgrade
    from workers.tasks import run

    upgrade(settings().sqlalchemy_url)
    upload = files().upload()
    upload.write(Path(path).read_bytes())
    with sessions()() as session:
        shown = datasets.register(session, NewDataset(name="texts", format="jsonl"), upload)
        assert shown.job is not None
        run(shown.job)
        asked = {"dataset": "texts", "model": NAME, "solver": "weston_watkins"}
        job = jobs.submit(session, TrainRequest.model_validate(asked))
        run(job.id)
        done = jobs.get(session, job.id)
        assert done.state == "succeeded", done.error
        return keys.create(session, "bench", "viewer").secret


def _tensor(text: str) -> bytes:
    tensor = {"name": "text", "shape": [1], "datatype": "BYTES", "data": [text]}
    return orjson.dumps({"parameters": {"content_type": "str"}, "inputs": [tensor]})


@contextmanager
def _mlserver(python: str, home: Path) -> Iterator[int]:
    folder = home / "mlserver"
    folder.mkdir()
    subprocess.run([python, "-c", _FIT, str(home / "texts.jsonl"), str(folder / "model.joblib")], check=True)
    parameters = {"uri": "./model.joblib", "content_type": "str"}
    model = {"name": NAME, "implementation": "mlserver_sklearn.SKLearnModel", "parameters": parameters}
    (folder / "model-settings.json").write_text(json.dumps(model))
    http, grpc, metrics = _free_ports(3)
    server = {"host": "127.0.0.1", "http_port": http, "grpc_port": grpc, "metrics_port": metrics}
    (folder / "settings.json").write_text(json.dumps({**server, "parallel_workers": 0, "debug": False}))
    command = [str(Path(python).with_name("mlserver")), "start", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not _ready(http):
            assert process.poll() is None, "mlserver ended"
            assert time.monotonic() < deadline, "mlserver does not answer"
            time.sleep(0.2)
        yield http
    finally:
        process.terminate()
        process.wait()


def _ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/v2/health/ready").status_code == 200
    except httpx.HTTPError:
        return False


def _free_ports(n: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(n)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


if __name__ == "__main__":
    main()
