"""The sure node above a label that is not sure, along all parents of a label graph."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import scipy.sparse as sp

from app.hierarchies.version_labels import VersionLabels
from app.predictions.answers import labels_of_set, labels_of_sets
from app.predictions.model_cache import LoadedModel
from app.predictions.sure_answers import Used
from solvers.labels.taxonomy import ROOT, Taxonomy
from solvers.metrics.ranking import Ranking

EDGES = [(ROOT, "food"), (ROOT, "green"), ("food", "leaf"), ("food", "fruit")]
GRAPH = Taxonomy.from_graph([*EDGES, ("green", "leaf")])
TREE = Taxonomy.from_graph(EDGES)


def _loaded(tree: Taxonomy, other_parents: dict[str, list[str]]) -> LoadedModel:
    model = SimpleNamespace(tree=tree, classes=tree.names, set_reliability=object(), back_off=None, learnt=None)
    labels = VersionLabels(other_parents=other_parents)
    return LoadedModel(cast(Any, None), cast(Any, model), cast(Any, None), 0, labels)


@pytest.mark.parametrize(
    "loaded", [_loaded(GRAPH, {"leaf": ["green"]}), _loaded(GRAPH, {}), _loaded(TREE, {"leaf": ["green"]})]
)
@pytest.mark.parametrize(
    ("probable", "allowed", "found"),
    [
        ({"food": 0.5, "green": 0.9}, None, "green"),
        ({"food": 0.85, "green": 0.9}, None, "food"),
        ({"food": 0.5, "green": 0.6}, None, None),
        ({"food": 0.5, "green": 0.9}, ["food", "leaf"], None),
    ],
)
def test_the_sure_node_above_a_label_may_be_any_of_its_parents(
    loaded: LoadedModel, probable: dict[str, float], allowed: list[str] | None, found: str | None
) -> None:
    names = list(loaded.model.classes)
    probabilities = np.array([{"leaf": 0.4, "fruit": 0.01, **probable}[name] for name in names])
    scores = np.log(probabilities / (1 - probabilities))
    sets = sp.csr_matrix(np.array([[name != "fruit" for name in names]]))
    may = None if allowed is None else np.array([name in allowed for name in names])
    used = Used(0.8, {}, "any")
    of_file = labels_of_sets(loaded, Ranking(scores[None], sets=sets), used, may)
    above = [None if at < 0 else names[at] for at in of_file.sure_ancestors.tolist()]
    nodes = [("food", None), ("green", None), ("leaf", "food")]
    of_row = {one["label"]: one for one in labels_of_set(loaded, nodes, scores, used, {}, may)}
    answered = dict(zip([names[at] for at in of_file.nodes.tolist()], above, strict=True))
    assert answered["leaf"] == of_row["leaf"].get("sure_ancestor") == found
