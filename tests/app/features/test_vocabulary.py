"""An estimator that indexes texts by a vocabulary, without a service."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from polymargin import PolymarginClassifier, Vocabulary

NAMES = ["baking", "weaving", "pottery", "soup", "knitting", "carving", "dyeing", "brewing", "glazing", "tanning"]
UNSEEN = 8  # no text has the concepts from here on
WORDS = ["oven", "loom", "kiln", "pot", "needle", "chisel", "vat", "barrel"]
CSV = "uri,label_fi,label_en,notation\n" + "".join(f"u:{name},{name}-fi,{name},{n}\n" for n, name in enumerate(NAMES))


def rows(n: int = 48) -> tuple[list[str], list[list[str]]]:
    random, texts, sets = np.random.default_rng(0), [], []
    for i in range(n):
        own = random.choice(UNSEEN, 2, replace=False)
        texts.append("The " + " and ".join(f"{NAMES[c]} with a {random.choice(WORDS)}" for c in own) + f", day {i}")
        sets.append([f"u:{NAMES[c]}" for c in own])
    return texts, sets


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary({f"u:{name}": [name.title()] for name in NAMES}, "en")


def best(model: PolymarginClassifier, text: str) -> str:
    return str(model.classes_[model.decision_function([text]).argmax()])


@pytest.mark.parametrize(
    ("solver", "params"), [("subjects", {}), ("auto", {"candidates": [{"solver": "subjects"}], "folds": 1})]
)
def test_concepts_without_examples_are_found_by_name(vocabulary: Vocabulary, solver: str, params: Any) -> None:
    texts, sets = rows()
    model = clone(PolymarginClassifier(solver, vocabulary=vocabulary, seed=1, **params)).fit(texts, sets)
    assert model.vocabulary is vocabulary
    assert best(model, "Glazing, day 3") == "u:glazing"
    assert set(model.predict(["The weaving with a loom and soup with a pot"])[0]) >= {"u:weaving"}
    assert len(model.predict(texts[:3])) == 3


def test_methods_that_take_no_names_read_terms(vocabulary: Vocabulary) -> None:
    texts, sets = rows()
    model = PolymarginClassifier("node_svm", vocabulary=vocabulary).fit(texts, sets)
    assert best(model, "The weaving with a loom") == "u:weaving"
    assert model.score(texts, sets) > 0.5


def test_files_are_read_in_a_language(tmp_path: Path) -> None:
    (tmp_path / "crafts.csv").write_text(CSV)
    (tmp_path / "crafts.tsv.gz").write_bytes(gzip.compress(b"<u:1>\tbaking\n<u:2>\tweaving\n"))
    assert Vocabulary.read(tmp_path / "crafts.csv", "fi").names["u:soup"] == ("soup-fi",)
    assert Vocabulary.read(tmp_path / "crafts.csv").names["u:soup"] == ("soup-fi", "soup")
    found = Vocabulary.read(str(tmp_path / "crafts.tsv.gz"), "en")
    assert found.names == {"u:1": ("baking",), "u:2": ("weaving",)}
    assert repr(found) == "<Vocabulary of 2 concepts in en>"
    with pytest.raises(ValueError, match=r"the extension of 'crafts\.bin' does not determine a format"):
        Vocabulary.read(tmp_path / "crafts.bin")


def test_what_is_no_text_or_no_set_is_refused(vocabulary: Vocabulary) -> None:
    texts, sets = rows(12)
    model = PolymarginClassifier("subjects", vocabulary=vocabulary)
    for wrong in ("one text", [1, 2]):
        with pytest.raises(ValueError, match="X must be a sequence of texts"):
            model.fit(wrong, sets[: len(wrong)])
    with pytest.raises(ValueError, match="y has 11 lists of labels; X has 12 rows"):
        model.fit(texts, sets[:11])
    with pytest.raises(ValueError, match="a vocabulary needs a method over sets of labels"):
        PolymarginClassifier("crammer_singer", vocabulary=vocabulary).fit(texts, [some[0] for some in sets])
