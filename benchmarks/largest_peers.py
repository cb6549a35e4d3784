"""Programs for very many labels beside the largest collection: Omikuji and PECOS, each in a process of its own.

Both learn a tree over the labels and look at a few of its branches for a row, and both drop small weights. They train
in one thread with their own defaults, and are asked for the best label of each row held out. Run as a module by any
Python that has the program, which need not be that of this project:
``python -m benchmarks.largest_peers omikuji FOLDER``; FOLDER has what :func:`prepare` wrote.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.processes import peak_bytes

GB = 1e9
ROWS, HELD_OUT, SHAPE = "rows.svm", "held-out.svm", "shape.json"
TITLES = {
    "omikuji": "Omikuji, three trees (its default)",
    "omikuji-1": "Omikuji, one tree",
    "pecos": "PECOS XR-Linear",
}
HEADER = ("program", "training, s", "processor s", "GB at most", "model, GB", "P@1, %", "ms a row")
Clocks = tuple[float, float]


class Rows(NamedTuple):
    """Rows with their labels: X (n, d) CSR, float32, and y (n,) as the file numbers them."""

    X: sp.csr_matrix
    y: NDArray[np.int64]


class Trained(NamedTuple):
    """Processor and wall seconds of training; the model's bytes; the best label of each row."""

    training: Clocks
    n_bytes: int
    best: Callable[[Rows], NDArray[np.int64]]


def measured(name: str, python: str, folder: Path) -> list[object]:
    """A row of the table: a program's training and predictions, by a Python that has it."""
    command = [python, "-m", "benchmarks.largest_peers", name, str(folder)]
    # where programs do not take the number of threads
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    row: list[object] = json.loads(done.stdout.splitlines()[-1])
    return row


def run(name: str, folder: Path) -> list[object]:
    """The same in this process."""
    trained = PROGRAMS[name](folder)
    # the peak of training, before the held-out rows are read
    peak, test = peak_bytes(), read(folder / HELD_OUT, folder)
    began = time.process_time()
    right = float((trained.best(test) == test.y).mean())
    ms = 1e3 * (time.process_time() - began) / len(test.y)
    processor, wall = trained.training
    figures = [f"{wall:.1f}", f"{processor:.1f}", f"{peak / GB:.2f}"]
    return [TITLES[name], *figures, f"{trained.n_bytes / GB:.2f}", f"{100 * right:.1f}", f"{ms:.2f}"]


def read(path: Path, folder: Path) -> Rows:
    """A file's rows, by scikit-learn."""
    from sklearn.datasets import load_svmlight_file

    _, d, _ = json.loads((folder / SHAPE).read_bytes())
    X, y = load_svmlight_file(str(path), n_features=d, dtype=np.float32, zero_based=False)
    return Rows(X, y.astype(np.int64))


def omikuji_trees(n_trees: int, folder: Path) -> Trained:
    """Omikuji, whose training reads the file."""
    import omikuji

    params = omikuji.Model.default_hyper_param()
    params.n_trees = n_trees
    n, d, k = json.loads((folder / SHAPE).read_bytes())
    with tempfile.TemporaryDirectory() as kept:
        # its own format is svmlight's behind a line of sizes; features count from 0 there, so that one stays empty
        path = Path(kept, "rows.txt")
        with path.open("wb") as file, (folder / ROWS).open("rb") as rows:
            file.write(f"{n} {d + 1} {k}\n".encode())
            for line in rows:
                file.write(line)
        began = _clocks()
        model = omikuji.Model.train_on_data(str(path), params, n_threads=1)
        training = _since(began)
        path.unlink()
        model.save(kept)
        n_bytes = _bytes(Path(kept))
    model.init_prediction_thread_pool(1)

    def best(test: Rows) -> NDArray[np.int64]:
        found = np.full(len(test.y), -1)
        for i in range(len(found)):
            begin, end = test.X.indptr[i : i + 2]
            pairs = zip((test.X.indices[begin:end] + 1).tolist(), test.X.data[begin:end].tolist(), strict=True)
            found[i] = next((label for label, _ in model.predict(list(pairs), top_k=1)), -1)
        return found

    return Trained(training, n_bytes, best)


def pecos(folder: Path) -> Trained:
    """PECOS's linear ranker over a tree of labels, as its documentation trains it: labels by their rows' sum."""
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    X, y = read(folder / ROWS, folder)
    X.sort_indices()
    # its labels are columns, and one without a row is no column
    names, columns = np.unique(y, return_inverse=True)
    Y = sp.csr_matrix((np.ones(len(y), np.float32), (np.arange(len(y)), columns)), shape=(len(y), len(names)))
    began = _clocks()
    embedding = LabelEmbeddingFactory.create(Y, X, method="pifa")
    clusters = Indexer.gen(embedding, indexer_type="hierarchicalkmeans", threads=1)
    model = XLinearModel.train(X, sp.csc_matrix(Y), C=clusters, threads=1)
    training = _since(began)
    with tempfile.TemporaryDirectory() as kept:
        model.save(kept)
        n_bytes = _bytes(Path(kept))

    def best(test: Rows) -> NDArray[np.int64]:
        test.X.sort_indices()
        found = model.predict(test.X, only_topk=1, threads=1)
        return names[np.asarray(found.argmax(axis=1)).ravel()]

    return Trained(training, n_bytes, best)


PROGRAMS: dict[str, Callable[[Path], Trained]] = {
    "omikuji": lambda folder: omikuji_trees(3, folder),
    "omikuji-1": lambda folder: omikuji_trees(1, folder),
    "pecos": pecos,
}


def _clocks() -> Clocks:
    return time.process_time(), time.perf_counter()


def _since(began: Clocks) -> Clocks:
    processor, wall = _clocks()
    return processor - began[0], wall - began[1]


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], Path(sys.argv[2]))))
