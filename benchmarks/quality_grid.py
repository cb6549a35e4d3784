"""The programs that are asked who answers best, and what each tries on rows held out.

Features are the same for all, but for those that read the texts.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import ComplementNB
from sklearn.svm import SVC, LinearSVC

from benchmarks.quality_programs import (
    Program,
    Setting,
    fasttext_model,
    from_texts,
    hiclass_model,
    lightgbm_model,
    omikuji_model,
    polymargin,
    scikit_learn,
    texts_only,
    trees_only,
)
from benchmarks.sets import Rows

MOST_CLASSES_OF_LOGISTIC = 100


def _grid(name: str, *values: Any, **others: Any) -> list[Setting]:
    return [{name: value} | others for value in values]


def _dense_only(rows: Rows, n_classes: int) -> str:
    return "" if rows.texts is None else "of dense features only"


def _few_classes(rows: Rows, n_classes: int) -> str:
    return "" if n_classes <= MOST_CLASSES_OF_LOGISTIC else f"more than {MOST_CLASSES_OF_LOGISTIC} classes"


def _own(name: str, grid: list[Setting], method: str, *refused: Any) -> Program:
    return Program(name, grid, partial(polymargin, method), *refused, ours=True)


def _peer(name: str, grid: list[Setting], make: Callable[..., Any], *refused: Any, dense: bool = False) -> Program:
    return Program(name, grid, partial(scikit_learn, make, dense), *refused)


# the middle first: where time is short, that has been tried
SQUARED = {"loss": "squared_hinge", "bias": 1.0}
PROGRAMS = [
    from_texts(_own("auto", [{}], "auto")),
    _own("auto", [{}], "auto"),
    _own("auto, by top-5", [{"measure": "top_5"}], "auto"),
    _own("weston_watkins, C = 1", [{"C": 1.0}], "weston_watkins"),
    _own("crammer_singer", _grid("C", 1.0, 0.3, 3.0, 0.1, 10.0, bias=1.0), "crammer_singer"),
    _own("one_vs_rest, squared hinge", _grid("C", 0.3, 1.0, 0.1, 3.0, 0.03, **SQUARED), "one_vs_rest"),
    _own("label_trees", _grid("C", 1.0, 0.3, 3.0), "label_trees"),
    *(
        _own(method, _grid("C", 10.0, 3.0, 30.0, 1.0, bias=1.0), method, trees_only)
        for method in ("hierarchical_multiclass", "transfer", "tree_loss", "orthogonal_transfer")
    ),
    _peer("LinearSVC", _grid("C", 0.3, 1.0, 0.1, 3.0, 0.03), partial(LinearSVC, random_state=0)),
    from_texts(_peer("LinearSVC", _grid("C", 1.0, 3.0, 0.3), partial(LinearSVC, random_state=0))),
    _peer(
        "LogisticRegression",
        _grid("C", 10.0, 100.0, 1.0),
        partial(LogisticRegression, max_iter=300),
        _few_classes,
    ),
    Program(
        "HiClass, a LogisticRegression at each inner node",
        _grid("C", 100.0, 10.0, 1000.0),
        partial(hiclass_model, partial(LogisticRegression, max_iter=300)),
        trees_only,
    ),
    _peer("SGD, log loss", _grid("alpha", 1e-5, 1e-6, 1e-4), partial(SGDClassifier, loss="log_loss", random_state=0)),
    _peer("SGD, hinge", _grid("alpha", 1e-5, 1e-6, 1e-4), partial(SGDClassifier, loss="hinge", random_state=0)),
    _peer("ComplementNB", _grid("alpha", 0.1, 0.3, 0.03, 1.0, 0.01), ComplementNB, texts_only),
    Program("Omikuji, Parabel", _grid("linear_c", 1.0, 0.3, 3.0), partial(omikuji_model, {})),
    Program(
        "Omikuji, Bonsai",
        _grid("linear_c", 1.0, 0.3, 3.0),
        partial(omikuji_model, {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3}),
    ),
    Program(
        "fastText",
        [
            {"lr": 0.5, "epoch": 50, "wordNgrams": 1},
            {"lr": 1.0, "epoch": 50, "wordNgrams": 1},
            {"lr": 1.0, "epoch": 50, "wordNgrams": 2},
        ],
        fasttext_model,
        texts_only,
    ),
    _peer(
        "RandomForest",
        _grid("max_features", "sqrt", 0.3, n_estimators=300),
        partial(RandomForestClassifier, n_jobs=1, random_state=0),
        _dense_only,
        dense=True,
    ),
    _peer(
        "LightGBM",
        [
            {"n_estimators": 100, "learning_rate": 0.1, "num_leaves": 31},
            {"n_estimators": 300, "learning_rate": 0.05, "num_leaves": 31},
            {"n_estimators": 200, "learning_rate": 0.1, "num_leaves": 15},
        ],
        lightgbm_model,
        _dense_only,
        dense=True,
    ),
    _peer(
        "SVC, RBF kernel",
        [{"C": C, "gamma": gamma} for gamma in ("scale", 0.1, 0.03, 0.3) for C in (10.0, 1.0)],
        SVC,
        _dense_only,
        dense=True,
    ),
]
