"""``python -m app.warm``: compile the loops of files, solvers and answers into numba's cache, on tiny ones of them."""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from app.formats.registry import parse
from app.schemas.datasets.datasets import ImportOptions
from app.services.predictions.first_answers import load_loops, load_loops_of
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.core.stored_models import load_model
from solvers.labels.taxonomy import Taxonomy
from solvers.registry import SOLVERS

FILES = (
    ("svmlight", b"a qid:1 cost:2 1:1\nb 1:12345678901234567890 2:3 # said\n", ImportOptions()),
    ("csv", b'label,x,y\na,1,2\nb,3,"4"\n', ImportOptions()),
    ("csv", b'label,text\na,"one ""two"""\nb,three\n', ImportOptions()),
    ("csv", b"label,x\na,1\nb,\n", ImportOptions(number_columns=("x",), missing="keep")),
)
FIRST = "auto"  # what is taken where no method is named; it tries several others


def main(note: Path | None = None, identity: str = "") -> None:
    """Read files, train each solver on sparse and on dense rows, go on to another C, answer with its stored model.

    Parameters
    ----------
    note : Path, optional
        A file to which ``identity`` is written at the end.
    identity : str
    """
    load_loops()
    read()
    for name, kind in sorted(SOLVERS.items(), key=lambda item: item[0] != FIRST):
        for problem in problems():
            solver = kind(kind.Params())
            *_, last = solver.steps(problem)
            if solver.has_path and solver.params.C is not None:
                solver.at(2.0 * solver.params.C).rescaled(problem, last.state, solver.params.C)
            with tempfile.TemporaryDirectory() as folder:
                answer(solver.model(problem, last.state), Path(folder) / "model")
        print(f"compiled {name}", flush=True)
    if note is not None:
        note.write_text(identity)


def read() -> None:
    """Read a file of each kind whose rows have compiled loops."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        for format, content, options in FILES:
            path.write_bytes(content)
            parse(path, format, options)


def problems() -> list[Problem]:
    """Twelve points of three classes, sparse and dense: many machines have loops of their own for each."""
    rng = np.random.default_rng(0)
    y, names = np.arange(12) % 3, ("a", "b", "c")
    taxonomy = Taxonomy.from_edges([("root", name) for name in names])
    dense = np.eye(3)[y] + 0.1 * rng.standard_normal((12, 3))
    sparse = sp.hstack([sp.csr_matrix(np.eye(3)[y]), sp.eye_array(12)], format="csr")
    return [Problem.check(X, y, names, taxonomy=taxonomy) for X in (sparse, dense)]


def answer(model: Model, folder: Path) -> None:
    """Answer one instance and two of them, as a service does: with the arrays of files, mapped into memory."""
    model.save(folder)
    stored, _ = load_model(folder, mmap=True)
    load_loops_of(stored)
    stored.top_rows(sp.csr_matrix(np.ones((2, stored.n_features))), 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--note", nargs=2, metavar=("FILE", "IDENTITY"), help="write IDENTITY to FILE at the end")
    arguments = parser.parse_args()
    main(*(() if arguments.note is None else (Path(arguments.note[0]), arguments.note[1])))
