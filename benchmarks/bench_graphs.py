"""What does H-M3 take along a label graph, and what do all parents change?

``trees``: the machine for graphs on label trees, beside the machine for trees. ``stw``: STW's graph, in which most
concepts have two parents and more, and the tree of the deepest parents; rows are texts of tib-core, labelled with the
concepts whose English name occurs in them. One thread, C = 1; processor seconds of the whole training.
"""

import lzma
import re
import statistics
import sys
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import average_precision_score

from app.features.vocabulary import Vocabulary
from app.formats.hierarchies.parsing import parse_hierarchy
from app.formats.hierarchies.source import Bounds
from app.formats.plain_file import plain_file
from app.hierarchies.schemas import HierarchyOptions
from benchmarks import sets
from benchmarks.results import write
from solvers.core.base import Step
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.hierarchical.marginals import graph_sets
from solvers.hierarchical.marginals.ascent import MarkovAscent
from solvers.hierarchical.marginals.example import markov_graph
from solvers.labels.label_sets import closed, with_ancestors
from solvers.labels.taxonomy import Taxonomy
from solvers.labels.tree_part import TreePart
from solvers.metrics.multilabel import multilabel
from solvers.registry import SOLVERS, parse_params

TREES = ("enron", "imclef07a", "cellcycle_fun", "seq_fun")
METHODS = ("hm3", "node_svm", "hierarchical_svm", "hierarchical_rls")
RUNS = 3
LONGEST_NAME = 4
FEWEST_ROWS = 20
HELD_OUT = 1000


def of_trees() -> None:
    """Seconds of both machines to a gap of 1 %, in turns."""
    rows = []
    for name in TREES:
        problem = sets.load_sets(name)[0]
        times: dict[bool, list[float]] = {False: [], True: []}
        epochs = {}
        for run in range(RUNS + 1):
            for as_graph in times:
                ascent = MarkovAscent(problem, 1.0, "uniform", False, False)
                if as_graph:
                    ascent.tree, ascent._masses = markov_graph(problem.tree), graph_sets
                began = time.process_time()
                *_, last = ascent.train(1e-2, 1000, 0, None)
                epochs[as_graph] = last.epoch
                if run:
                    times[as_graph].append(time.process_time() - began)
        tree, graph = (statistics.median(times[kind]) for kind in (False, True))
        rows.append([name, problem.tree.n_nodes, epochs[False], f"{tree:.2f}", epochs[True], f"{graph:.2f}"])
        rows[-1].append(f"{graph / tree:.2f}")
        print(rows[-1], flush=True)
    header = ["set", "nodes", "epochs", "s, for trees", "epochs", "s, for graphs", "ratio"]
    note = f"hm3 to a gap of 1 %; medians of {RUNS} runs in turns. A graph that is a tree is trained by the first."
    write("The machine for label graphs on trees", header, rows, note)


def of_stw() -> None:
    """Seconds and measures along the graph, and along the tree of the deepest parents."""
    graph, X, labels = stw()
    tree = Taxonomy(graph.names, graph.parent)
    train, test = np.arange(labels.shape[0] - HELD_OUT), np.arange(labels.shape[0] - HELD_OUT, labels.shape[0])
    rows = []
    for method in METHODS:
        for shape, along in (("graph", graph), ("tree", tree)):
            seconds, last, model = trained(method, Problem.check_sets(X[train], labels[train], along))
            began = time.process_time()
            named = model.predict_sets(X[test])
            spent = 1e3 * (time.process_time() - began) / len(test)
            left = closed(graph, named.indptr, named.indices)[1].n_added
            complete = with_ancestors(tree, named, *graph.others.T.tolist())
            found = multilabel(graph, labels[test], complete)
            measures = [found[name] for name in ("hierarchical_f1", "micro_f1", "h_uniform")]
            margins = completed(graph, model.set_margins(model.scores(X[test])))
            measures.append(float(average_precision_score(labels[test].toarray().ravel(), margins.ravel())))
            row = [method, shape, last.epoch, f"{seconds:.1f}", f"{last.gap:.4f}", f"{spent:.2f}", left]
            rows.append([*row, *(f"{value:.3f}" for value in measures)])
            print(rows[-1], flush=True)
    header = ["method", "along", "epochs", "s", "gap", "ms a row", "labels missing", "hierarchical F1", "F1", "H-loss"]
    header.append("AU(PRC)")
    n_several = len(np.unique(graph.others[:, 0]))
    note = (
        f"{len(train)} rows, {X.shape[1]} terms, {graph.n_nodes} concepts that {FEWEST_ROWS} rows and more have, "
        f"{n_several} with several parents, {len(graph.others)} edges beside the tree. Sets predicted along the tree "
        "are completed along the graph before they are measured; the column of missing labels says how many that are "
        f"in {HELD_OUT} rows. AU(PRC) is the area under the curve of precision and recall over all pairs of rows and "
        "concepts, by margins; a concept's is at least that of those below it."
    )
    write("STW's graph and its tree", header, rows, note)


def completed(graph: Taxonomy, margins: Any) -> np.ndarray:
    """Margins that no child exceeds, shape (n_samples, n_nodes)."""
    found = np.array(margins, np.float64)
    below = [*range(graph.n_nodes), *graph.others[:, 0].tolist()]
    above = [*graph.parent.tolist(), *graph.others[:, 1].tolist()]
    # parents have lower levels, so every child is complete before it is compared
    for child, parent in sorted(zip(below, above, strict=True), key=lambda edge: -int(graph.level[edge[0]])):
        if parent >= 0:
            np.maximum(found[:, parent], found[:, child], out=found[:, parent])
    return found


def trained(method: str, problem: Problem) -> tuple[float, Step, Model]:
    """Processor seconds, the last step, and the model."""
    params: dict[str, Any] = {"tol": 1e-2} | ({"loss": "squared_hinge"} if "svm" in method else {})
    solver = SOLVERS[method](parse_params(method, params))
    began = time.process_time()
    *_, last = solver.steps(problem)
    return time.process_time() - began, last, solver.model(problem, last.state)


def stw() -> tuple[Taxonomy, sp.csr_matrix, sp.csr_matrix]:
    """The part of the graph that has rows, terms of the texts, and the sets of their concepts."""
    folder = sets.folder()
    assert folder is not None, "POLYMARGIN_BENCH_DATA is not set"
    file = folder / "vocabularies" / "stw-skos.ttl.xz"
    with plain_file(file) as plain:
        bounds = Bounds(nodes=1 << 20, depth=1000, characters=1 << 30)
        graph = parse_hierarchy(plain, "skos", HierarchyOptions(tree="graph"), bounds).tree
    number = {name: node for node, name in enumerate(graph.names)}
    by_name = {
        " ".join(words(name)): number[concept]
        for concept, names in Vocabulary.read(file, "en", tree="graph").names.items()
        for name in names
    }
    with lzma.open(folder / "tib-core.en.tsv.xz", "rt", encoding="utf-8") as lines:
        texts = [line.partition("\t")[0] for line in lines]
    found = [sorted(concepts_of(words(text), by_name)) for text in texts]
    indptr = np.concatenate([[0], np.cumsum([len(each) for each in found])])
    labels, _ = closed(graph, indptr, np.array([node for each in found for node in each], np.int32))
    counts = np.asarray(labels.sum(axis=0)).ravel()
    frequent = np.flatnonzero(counts >= FEWEST_ROWS).astype(np.int32)
    part = TreePart(graph, frequent)
    X = sp.csr_matrix(TfidfVectorizer(min_df=5, sublinear_tf=True).fit_transform(texts), dtype=np.float64)
    order = np.random.default_rng(0).permutation(len(texts))
    return part.tree, X[order], sp.csr_matrix(labels[order][:, frequent])


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def concepts_of(given: list[str], by_name: dict[str, int]) -> set[int]:
    """The concepts whose name occurs among the words."""
    spans = (given[at : at + n] for at in range(len(given)) for n in range(1, LONGEST_NAME + 1))
    return {by_name[name] for name in map(" ".join, spans) if name in by_name}


if __name__ == "__main__":
    for part_ in sys.argv[1:] or ("trees", "stw"):
        {"trees": of_trees, "stw": of_stw}[part_]()
