"""How many texts a second does one process answer, beside MLServer and Annif with scikit-learn on the same rows?

``--mlserver PYTHON`` and ``--annif PYTHON`` name the interpreters of environments that have them: mlserver and
mlserver-sklearn, annif and gunicorn. All are trained on the same texts of 50 words, TF-IDF and a linear machine, and
asked for one text a request; the service in its own protocol, and in those of the others.
"""

import argparse
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import orjson

from benchmarks.bench_serving import CONNECTIONS, serving
from benchmarks.bench_soak import N_LABELS, N_ROWS, N_WORDS, NAME, texts_with_labels
from benchmarks.processes import apart
from benchmarks.results import write
from benchmarks.serving_load import FORM, JSON, load
from benchmarks.serving_programs import annif, mlserver


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=5.0)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--mlserver", metavar="PYTHON")
    arguments.add_argument("--annif", metavar="PYTHON")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        home = Path(name)
        os.environ["POLYMARGIN_HOME"], os.environ["POLYMARGIN_LOG_LEVEL"] = name, "error"
        os.environ["POLYMARGIN_REQUESTS_PER_SECOND"] = "0"  # of one key: there is no other here
        given = home / "texts.jsonl"
        texts = texts_with_labels(given)[:512]
        secret = apart(train, str(given), NAME, "weston_watkins")
        port = stack.enter_context(serving("app.server")).port
        ours = [orjson.dumps({"instances": [{"text": text}]}) for text in texts]
        asked = {"service": (port, f"/api/v1/models/{NAME}/predict", ours, JSON)}
        if chosen.mlserver:
            how = (f"/v2/models/{NAME}/infer", [_tensor(text) for text in texts], JSON)
            asked["service, Open Inference"] = (port, *how)
            asked["MLServer, Open Inference"] = (stack.enter_context(mlserver(chosen.mlserver, given, NAME)), *how)
        if chosen.annif:
            how = (f"/v1/projects/{NAME}/suggest", [urlencode({"text": text}).encode() for text in texts], FORM)
            asked["service, Annif's protocol"] = (port, *how)
            asked["Annif"] = (stack.enter_context(annif(chosen.annif, given, NAME)), *how)
        rates: dict[str, list[float]] = {program: [] for program in asked}
        tails: dict[str, list[float]] = {program: [] for program in asked}
        for _ in range(chosen.rounds):
            for program, (port, path, bodies, kind) in asked.items():
                found = load(port, path, bodies, secret, CONNECTIONS, chosen.seconds, kind)
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
        "from the same machine. MLServer answers without parallel workers, which are for models that take longer, "
        "Annif by its svc backend, and ten labels a text, as does the service in Annif's protocol."
    )
    write("Serving: texts", ["program", "requests/s", "p99 ms", "the service answers times as many"], rows, note)


def train(path: str, model: str, solver: str) -> str:
    """Train the service's model on a file of texts, in this process; returns a viewer's secret."""
    from app.access import keys
    from app.config import settings
    from app.datasets import service as datasets
    from app.datasets.schemas import NewDataset
    from app.jobs import service as jobs
    from app.jobs.schemas import TrainRequest
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
        asked = {"dataset": "texts", "model": model, "solver": solver}
        job = jobs.submit(session, TrainRequest.model_validate(asked))
        run(job.id)
        done = jobs.get(session, job.id)
        assert done.state == "succeeded", done.error
        return keys.create(session, "bench", "viewer").secret


def _tensor(text: str) -> bytes:
    tensor = {"name": "text", "shape": [1], "datatype": "BYTES", "data": [text]}
    return orjson.dumps({"parameters": {"content_type": "str"}, "inputs": [tensor]})


if __name__ == "__main__":
    main()
