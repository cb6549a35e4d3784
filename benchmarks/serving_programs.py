"""Other programs that serve a linear machine of texts, each from an environment of its own: MLServer, and Annif.

Both train on rows of ``text`` and ``label`` in JSON lines: TF-IDF, and scikit-learn's ``LinearSVC``.
"""

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

_PIPELINE = """
import json, sys, joblib
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
rows = [json.loads(line) for line in open(sys.argv[1])]
model = make_pipeline(TfidfVectorizer(min_df=2, sublinear_tf=True), LinearSVC())
joblib.dump(model.fit([row["text"] for row in rows], [row["label"] for row in rows]), sys.argv[2])
"""

# What Annif's analyzers find sentences by; its models of languages are no part of any package.
_SENTENCES = """
import json, sys
from nltk.tokenize.punkt import PunktTrainer, save_punkt_params
trainer = PunktTrainer()
trainer.train("\\n".join(json.loads(line) for line in open(sys.argv[1])))
save_punkt_params(trainer.get_params(), dir=sys.argv[2])
"""
_ROWS_OF_SENTENCES = 1_000


@contextmanager
def mlserver(python: str, rows: Path, name: str) -> Iterator[int]:
    """MLServer with a pipeline of scikit-learn's, without parallel workers; the port of its HTTP."""
    folder = rows.with_name("mlserver")
    folder.mkdir()
    subprocess.run([python, "-c", _PIPELINE, str(rows), str(folder / "model.joblib")], check=True)
    parameters = {"uri": "./model.joblib", "content_type": "str"}
    model = {"name": name, "implementation": "mlserver_sklearn.SKLearnModel", "parameters": parameters}
    (folder / "model-settings.json").write_text(json.dumps(model))
    http, grpc, metrics = _free_ports(3)
    server = {"host": "127.0.0.1", "http_port": http, "grpc_port": grpc, "metrics_port": metrics}
    (folder / "settings.json").write_text(json.dumps({**server, "parallel_workers": 0, "debug": False}))
    command = [str(Path(python).with_name("mlserver")), "start", str(folder)]
    with _running(command, dict(os.environ), f"http://127.0.0.1:{http}/v2/health/ready"):
        yield http


@dataclass(frozen=True)
class AnnifProject:
    """A project of Annif in a folder, by its command line.

    Attributes
    ----------
    python : str
        The interpreter of an environment that has Annif.
    name : str
        Of the project and its vocabulary.
    """

    python: str
    folder: Path
    name: str

    @property
    def environment(self) -> dict[str, str]:
        """Where Annif finds the project."""
        return {
            **os.environ,
            "NLTK_DATA": str(self.folder / "nltk"),
            "ANNIF_PROJECTS": str(self.folder / "projects.cfg"),
            "ANNIF_DATADIR": str(self.folder / "data"),
        }

    def run(self, command: Sequence[str], text: str | None = None) -> None:
        """Run a command of Annif, and give it a text to read."""
        whole = [self.python, "-m", "annif.cli", *command]
        subprocess.run(whole, env=self.environment, check=True, capture_output=True, input=text, text=True)

    def load_vocabulary(self) -> None:
        """Read the labels."""
        self.run(["load-vocab", "--language", "en", self.name, str(self.folder / "subjects.tsv")])

    def train(self) -> None:
        """Train on the rows that the project was made of."""
        self.run(["train", self.name, str(self.folder / "documents.tsv")])

    def documents(self, file: str, texts: Sequence[str], labels: Sequence[str]) -> Path:
        """A file of texts with their labels, as Annif reads them: one line each."""
        path = self.folder / file
        rows = zip(texts, labels, strict=True)
        path.write_text("".join(f"{' '.join(text.split())}\t<http://example.org/{label}>\n" for text, label in rows))
        return path


def train_sentences(python: str, texts: Sequence[str], folder: Path) -> None:
    """What Annif finds sentences by, of some of the texts, in a folder for NLTK."""
    found, few = folder / "tokenizers" / "punkt_tab" / "english", folder.with_name("few.jsonl")
    found.mkdir(parents=True)
    few.write_text("".join(json.dumps(text) + "\n" for text in texts[:_ROWS_OF_SENTENCES]))
    subprocess.run([python, "-c", _SENTENCES, str(few), str(found)], check=True)


def annif_project(python: str, rows: Path, folder: Path, name: str, backend: str) -> AnnifProject:
    """A project of Annif for rows of JSON lines, not trained yet."""
    documents = [json.loads(line) for line in rows.read_text().split("\n") if line]
    train_sentences(python, [one["text"] for one in documents], folder / "nltk")
    labels = sorted({one["label"] for one in documents})
    subjects = "".join(f"<http://example.org/{label}>\t{label}\n" for label in labels)
    (folder / "subjects.tsv").write_text(subjects)
    about = {"name": name, "language": "en", "backend": backend, "analyzer": "simple", "vocab": name, "min_df": 2}
    (folder / "projects.cfg").write_text("\n".join([f"[{name}]", *(f"{key}={value}" for key, value in about.items())]))
    project = AnnifProject(python, folder, name)
    project.documents("documents.tsv", [one["text"] for one in documents], [one["label"] for one in documents])
    return project


@contextmanager
def annif(python: str, rows: Path, name: str) -> Iterator[int]:
    """Annif with its ``svc`` backend behind one worker of gunicorn, as its documentation says; the port of its HTTP."""
    project = annif_project(python, rows, rows.with_name("annif"), name, "svc")
    project.load_vocabulary()
    project.train()
    (port,) = _free_ports(1)
    command = [python, "-m", "gunicorn", "annif:create_app()", "--bind", f"127.0.0.1:{port}", "--timeout", "600"]
    command += ["--workers", "1", "--worker-class", "uvicorn.workers.UvicornWorker"]
    with _running(command, project.environment, f"http://127.0.0.1:{port}/v1/projects/{name}"):
        yield port


@contextmanager
def _running(command: list[str], environment: dict[str, str], ready: str) -> Iterator[None]:
    """The program while it runs, from when it answers at an address."""
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not _answers(ready):
            assert process.poll() is None, f"{command[0]} ended"
            assert time.monotonic() < deadline, f"{command[0]} does not answer"
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait()


def _answers(address: str) -> bool:
    try:
        return httpx.get(address).status_code == 200
    except httpx.HTTPError:
        return False


def _free_ports(n: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(n)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
