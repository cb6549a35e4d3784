"""``python -m app.operation.warm``: compile the loops of files, solvers and answers into numba's cache."""

import argparse
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np
import scipy.sparse as sp

from app.datasets.schemas import ImportOptions
from app.formats.parsing import parse
from app.formats.table import FormatError
from app.predictions.first_answers import load_loops, load_loops_of
from solvers.core.base import Solver
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.core.stored_models import load_model
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.ranking import places
from solvers.metrics.tree_places import tree_places
from solvers.numerics.array_types import AnyFloats
from solvers.registry import SOLVERS
from solvers.sharding.exchange import Exchange, Hub
from solvers.sharding.shardable import shardable
from solvers.subjects.lexicon import Lexicon, Name

FILES = (
    ("svmlight", b"a qid:1 cost:2 1:1\nb 1:12345678901234567890 2:3 # said\n", ImportOptions()),
    ("svmlight", b"a 1:1 faulty\n", ImportOptions()),  # a file with errors is read by loops of its own
    ("csv", b'label,x,y\na,1,2\nb,3,"4"\n', ImportOptions()),
    ("csv", b'label,text\na,"one ""two"""\nb,three\n', ImportOptions()),
    ("csv", b"label,x\na,1\nb,\n", ImportOptions(number_columns=("x",), missing="keep")),
)
FIRST = "auto"  # what is taken where no method is named; it tries several others
# tolerances below some 1e-4 are reached in double precision, by loops and an end game of their own
PRECISE = {"tol": 1e-6, "C": 10.0, "max_epochs": 60}
# what trains where features are many
ASCENT = {"algorithm": "ascent"}
# options whose values change none of the compiled loops of a training; and how costs count, whose loops few jobs need
_NO_LOOPS = {
    "class_weight", "measure", "label_thresholds", "decoding", "decoding_loss", "dtype", "code", "gamma",
    "cost_scaling", "sources",
}  # fmt: skip
# kernel values are rows of another shape, and take the loops of all kernels
_NO_VALUES = {"auto", "precomputed"}
# of boosting: deeper learners, cuts between any two values, and some of the rows
_BOOSTING = ({"depth": 2}, {"bins": "exact"}, {"weak_learner": "one_vs_rest"})


def main(note: Path | None = None, identity: str = "") -> None:
    """Read files, train each solver with its defaults, in shards, and with its other options; answer with the models.

    What most jobs need comes first: the defaults of all methods, then their shards.

    Parameters
    ----------
    note : Path, optional
        A file to which ``identity`` is written at the end.
    """
    load_loops()
    read()
    find_names()
    rank()
    methods = sorted(SOLVERS.items(), key=lambda item: item[0] != FIRST)
    for name, kind in methods:
        for problem in problems():
            train(kind(kind.Params()), problem)
        print(f"compiled {name}", flush=True)
    for name, kind in methods:
        if kind.handles.shards:
            for params in ({}, PRECISE, ASCENT, {**PRECISE, **ASCENT}):
                train_in_shards(kind(kind.Params(**known(kind, params))), problems()[0])
            print(f"compiled the shards of {name}", flush=True)
    for name, kind in methods:
        for params in options(kind):
            # other methods than linear machines have no end game, and would take long
            lasting = [mixed()] if "dtype" in kind.Params.model_fields and "tol" in params else []
            for problem in [*problems(), *lasting]:
                train(kind(kind.Params(**params)), problem)
        print(f"compiled the options of {name}", flush=True)
    if note is not None:
        note.write_text(identity)


def find_names() -> None:
    """Find names of concepts in a text."""
    lexicon = Lexicon.build([Name(0, ["a", "b"]), Name(1, ["b"])])
    words = lexicon.number(["b", "a", "c"])
    lexicon.match(words, np.zeros(3, np.int32), np.zeros(3, bool), np.arange(3, dtype=np.int32))


def rank() -> None:
    """Find the places of true labels, as measures do: flat and along a tree, of scores in both precisions."""
    tree = Taxonomy.from_edges([("root", "upper"), ("upper", "a"), ("root", "b")])
    true = np.array([0, 1])
    each = np.array([[0.5, 0.25], [0.25, 0.5]])
    precisions: list[AnyFloats] = [each.astype(np.float32), each]
    for scores in precisions:
        for ties in (None, scores):
            places(scores, np.arange(3), true, ties)
            tree_places(tree, tree.find(("a", "b")), scores, ties, np.arange(3), true)
    nodes = tree.find(("a", "b"))
    tree.distance(nodes, nodes)


def read() -> None:
    """Read a file of each kind whose rows have compiled loops."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        for format, content, options in FILES:
            path.write_bytes(content)
            with suppress(FormatError):
                parse(path, format, options)


def problems() -> list[Problem]:
    """Twelve points of three classes, sparse and dense: many machines have loops of their own for each."""
    rng = np.random.default_rng(0)
    y = np.arange(12) % 3
    dense = np.eye(3)[y] + 0.1 * rng.standard_normal((12, 3))
    sparse = sp.hstack([sp.csr_matrix(np.eye(3)[y]), sp.eye_array(12)], format="csr")
    return [_problem(X, y) for X in (sparse, dense)]


def mixed() -> Problem:
    """Sparse points whose classes say nothing of them: training takes many epochs, and gets to its end game."""
    rng = np.random.default_rng(0)
    X = sp.random(150, 400, density=0.05, random_state=rng, data_rvs=rng.random, format="csr")
    return _problem(X, rng.permutation(np.arange(150) % 6))


def _problem(X: Any, y: Any) -> Problem:
    names = tuple("abcdef"[: int(y.max()) + 1])
    # two levels, as subtrees of one node have loops of their own
    groups = [("root", "upper"), ("root", "lower")]
    edges = groups + [(groups[at % 2][1], name) for at, name in enumerate(names)]
    return Problem.check(X, y, names, taxonomy=Taxonomy.from_edges(edges))


def known(kind: type[Solver[Any]], params: dict[str, Any]) -> dict[str, Any]:
    """Those of some parameters that a method has."""
    return {name: value for name, value in params.items() if name in kind.Params.model_fields}


def options(kind: type[Solver[Any]]) -> Iterator[dict[str, Any]]:
    """Parameters that lead a method to other compiled loops than its defaults do."""
    fields, few = kind.Params.model_fields, known(kind, {"max_epochs": 60})
    if known(kind, PRECISE).keys() > few.keys() and not kind.chooses:
        yield known(kind, PRECISE)
    for name, field in fields.items():
        if name in _NO_LOOPS:
            continue
        for value in _values(field.annotation):
            if value != field.default and value not in _NO_VALUES:
                # Newton's method takes the loss that has second derivatives
                beside = {"loss": "squared_hinge"} if value == "newton" else {}
                yield {**few, **beside, name: value}
    if "sources" in fields:  # the others call loops that other methods call, too
        yield {**few, "sources": ["neighbours"]}
    if "weak_learner" in fields:
        yield from ({**few, **params} for params in _BOOSTING)


def _values(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return [value for value in get_args(annotation) if isinstance(value, str)]
    return [value for part in get_args(annotation) for value in _values(part)]


def train(solver: Solver[Any], problem: Problem) -> None:
    """Train to the end, go on to another C, and answer with the stored model."""
    try:
        *_, last = solver.steps(problem)
    except ValueError:  # options that do not fit such a problem
        return
    if solver.has_path and solver.params.C is not None:
        solver.at(2.0 * solver.params.C).rescaled(problem, last.state, solver.params.C)
    with tempfile.TemporaryDirectory() as folder:
        answer(solver.model(problem, last.state), Path(folder) / "model")


def train_in_shards(solver: Solver[Any], problem: Problem) -> None:
    """Train in two shards, threads of this process."""
    machine, hub = shardable(solver), Hub(2)
    failures: list[Exception] = []
    threads = [threading.Thread(target=_shard, args=(machine, problem, hub, rank, failures)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _shard(machine: Any, problem: Problem, hub: Hub, rank: int, failures: list[Exception]) -> None:
    exchange: Exchange = hub.exchange(rank)
    try:
        *_, last = machine.sharded(problem, exchange)
        machine.part(problem, last.state)
    except Exception as error:
        failures.append(error)
        hub.abort(f"shard {rank} has failed")


def answer(model: Model, folder: Path) -> None:
    """Answer one instance and some at once, as a service and its jobs do: with arrays mapped into memory."""
    model.save(folder)
    stored, _ = load_model(folder, mmap=True)
    load_loops_of(stored)
    rows = sp.csr_matrix(np.ones((2, stored.n_features)))
    stored.top_rows(rows, 1)
    stored.predict(rows)
    stored.ranking(rows)
    stored.predict_sets(rows)
    # jobs measure a model before it is stored
    model.top_rows(rows, 1)
    model.predict(rows)
    model.ranking(rows)
    model.predict_sets(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--note", nargs=2, metavar=("FILE", "IDENTITY"), help="write IDENTITY to FILE at the end")
    arguments = parser.parse_args()
    main(*(() if arguments.note is None else (Path(arguments.note[0]), arguments.note[1])))
