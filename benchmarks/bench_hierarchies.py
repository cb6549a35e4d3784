"""Do machines over a label tree, and over sets of its labels, make fewer errors than flat ones?

The comparisons of Zhou et al. 2011 (Tables 2 to 8) and Rousu et al. 2005 (Tables 1 to 3), their rows and columns, for
several C, on the largest sets for one. Each training begins at the solution of the smaller C and is given so many
seconds of processor time to reach a gap of 1 %; the table has the gap that it reached. Of sets with one label a row the
sets of labels are paths.
"""

import sys
import time
from typing import Any

from benchmarks import sets
from benchmarks.results import tables, write
from solvers.core.base import State, Step
from solvers.core.machine import Machine
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.hierarchical.subtree_model import SubtreeModel
from solvers.metrics.flat import flat
from solvers.metrics.hierarchical import hierarchical
from solvers.metrics.multilabel import multilabel
from solvers.registry import SOLVERS, parse_params

CS = (0.1, 1.0, 10.0)
SECONDS = 10.0
SHOWN = ("hierarchical_precision", "hierarchical_recall", "hierarchical_f1", "hierarchical_macro_f1")
# of mean 0, so that only a constant can express how rare a label is
CENTRED = ("cellcycle_fun", "seq_fun")
LARGE, LARGE_CS, LARGE_SECONDS = ("naics", "debian-tags"), (1.0,), 60.0

SINGLE: list[tuple[str, str, dict[str, Any]]] = [
    ("FLATMULT", "flat_multiclass", {}),
    ("HIERMULT", "hierarchical_multiclass", {}),
    ("TRANSFER", "transfer", {}),
    ("TREELOSS", "tree_loss", {}),
    ("ORTHOGNL", "orthogonal_transfer", {}),
]
MULTI: list[tuple[str, str, dict[str, Any]]] = [
    ("SVM", "node_svm", {}),
    ("H-SVM", "hierarchical_svm", {}),
    ("H-RLS", "hierarchical_rls", {"tol": 1e-2}),
    ("H-M3 symmetric", "hm3", {}),
    *(
        (f"H-M3 H-{kind}", "hm3", {"loss": "hierarchical", "scaling": kind})
        for kind in ("uniform", "sibling", "subtree")
    ),
]


def trained(
    name: str, problem: Problem, params: dict[str, Any], seconds: float, before: tuple[State, float] | None
) -> tuple[Step, float, Model]:
    """The last step within the time, the best gap met, and the model; from the end at a smaller C."""
    solver = SOLVERS[name](parse_params(name, params))
    assert isinstance(solver, Machine)
    start = None if before is None else solver.rescaled(problem, *before)
    began, gap = time.process_time(), float("nan")
    for step in solver.steps(problem, start):
        gap = step.gap if step.gap == step.gap else gap
        if time.process_time() - began > seconds:
            break
    return step, gap, solver.model(problem, step.state)


def single(name: str) -> None:
    """One label a row: the table of Zhou et al."""
    problem, X, y = sets.load_tree(name)
    tree, rows = problem.taxonomy, []
    values, seconds = (LARGE_CS, LARGE_SECONDS) if name in LARGE else (CS, SECONDS)
    assert tree is not None
    for title, method, params in SINGLE:
        before = None
        for C in values:
            step, gap, model = trained(method, problem, {"C": C, **params}, seconds, before)
            before, said = (step.state, C), model.predict(X)
            reported = hierarchical(tree, y, said)
            macro = flat(y, said, tree.n_nodes)["macro_f1"]
            numbers = [
                100 * reported["error"],
                100 * reported["tree_loss"],
                100 * reported["hierarchical_f1"],
                100 * macro,
            ]
            rows.append((C, [C, title, *(f"{number:.2f}" for number in numbers), f"{gap:.4f}"]))
            print(rows[-1][1], flush=True)
    header = ["C", "method", "0/1 loss, %", "tree loss, %", "micro F1, %", "macro F1, %", "gap"]
    size = f"n {problem.n_samples} / {X.shape[0]}, {tree.n_nodes} nodes"
    note = f"{size}; the paper's C is n times this one; at most {seconds:.0f} s each."
    write(f"One label of a tree: {name}", header, [row for _, row in sorted(rows, key=lambda row: row[0])], note)


def multi(name: str) -> None:
    """Sets of labels: the tables of Rousu et al. in one."""
    problem, X, true = sets.load_sets(name)
    tree, rows = problem.taxonomy, []
    values, seconds = (LARGE_CS, LARGE_SECONDS) if name in LARGE else (CS, SECONDS)
    assert tree is not None
    for title, method, params in MULTI:
        before = None
        for C in values:
            bias = 1.0 if name in CENTRED else 0.0
            step, gap, model = trained(method, problem, {"C": C, "bias": bias, **params}, seconds, before)
            assert isinstance(model, SubtreeModel)
            before, reported = (step.state, C), multilabel(tree, true, model.predict_sets(X))
            numbers = [f"{100 * reported['error']:.1f}", f"{reported['hierarchical_symmetric_difference']:.3f}"]
            numbers += [f"{reported[f'h_{kind}']:.3f}" for kind in ("uniform", "sibling", "subtree")]
            numbers += [f"{100 * reported[key]:.1f}" for key in SHOWN]
            levels = [
                f"{100 * reported[f'precision_{k}']:.1f}/{100 * reported[f'recall_{k}']:.1f}"
                for k in range(1, tree.depth + 1)
            ]
            rows.append((C, [C, title, *numbers, *levels, f"{gap:.4f}"]))
            print(rows[-1][1], flush=True)
    constant = "; a constant feature of 1" if name in CENTRED else ""
    n_labels = problem.label_sets().nnz / problem.n_samples
    header = ["C", "method", "0/1, %", "symmetric", "H uniform", "H sibling", "H subtree", "P", "R", "F1", "macro F1"]
    header += [*(f"P/R level {k}" for k in range(1, tree.depth + 1)), "gap"]
    size = f"n {problem.n_samples} / {X.shape[0]}, {tree.n_nodes} nodes, {n_labels:.1f} labels a row"
    note = f"{size}{constant}; at most {seconds:.0f} s each."
    write(f"Sets of labels of a tree: {name}", header, [row for _, row in sorted(rows, key=lambda row: row[0])], note)


def summary() -> None:
    """Which method comes first in the tables that are there, beside which one does in the papers."""
    papers = {
        "One label": "ORTHOGNL on five of six sets, close to the first on the other",
        "Sets": "H-M3 on both sets, the hierarchical loss on the larger tree",
    }
    rows = []
    for kind, theirs in papers.items():
        for table in (each for each in tables() if each.title.startswith(f"{kind} of")):
            for C in dict.fromkeys(row[0] for row in table.rows):
                errors = sorted((float(row[2]), row[1]) for row in table.rows if row[0] == C)
                order = ", ".join(f"{method} {error:.1f}" for error, method in errors)
                rows.append([table.title.rpartition(": ")[2], C, order, theirs])
    header = ["set", "C", "0/1 loss in %, the best first", "first in the paper"]
    write("Where the papers' order holds", header, rows, "Read off the tables of the same benchmark.")


def main() -> None:
    trees, others = [*sets.TREE, "docstrings"], sets.MULTILABEL
    for name in sys.argv[1:] or [*trees, *others, "summary"]:
        if name == "summary":
            summary()
            continue
        if name in trees:
            single(name)
        multi(name)


if __name__ == "__main__":
    main()
