"""Labels are found by words of their names, the best first."""

from types import SimpleNamespace
from typing import Any

from app.hierarchies.version_labels import VersionLabels
from app.reviews.label_search import LabelIndex, folded

NAMES = {
    "7411": "Building electricians",
    "7412": "Electrical mechanics",
    "2151": "Electrical engineers",
    "3113": "Électrotechniciens",
    "5120": "Cooks",
    "9412": "Kitchen helpers (cooks)",
}


def index(names: dict[str, str]) -> LabelIndex:
    shown = {label: {"names": {"en": name}, "notation": f"ISCO {label}"} for label, name in names.items()}
    loaded: Any = SimpleNamespace(
        model=SimpleNamespace(classes=tuple(names)), tree=None, labels=VersionLabels(shown=shown)
    )
    return LabelIndex(loaded)


def test_equal_names_come_first_then_beginnings_then_words() -> None:
    labels = index(NAMES)
    assert labels.search("cooks", 10) == (["5120", "9412"], 2)
    assert labels.search("electric", 10) == (["7412", "2151", "7411"], 3)
    assert labels.search("ENGIN electr", 10) == (["2151"], 1)
    assert labels.search("741", 10) == (["7411", "7412"], 2)
    assert labels.search("isco 51", 10) == (["5120", "2151"], 2)
    assert labels.search("nothing", 10) == ([], 0)
    assert labels.search("e", 2)[1] == 5


def test_case_and_accents_do_not_count() -> None:
    assert folded("  Électro\tTechnique ") == "electro technique"
    assert index(NAMES).search("electrotech", 10) == (["3113"], 1)


def test_one_name_means_one_label() -> None:
    labels = index(NAMES | {"5129": "cooks"})
    assert labels.named("building ELECTRICIANS") == "7411"
    assert labels.named("isco 3113") == "3113"
    assert labels.named("Cooks") is None
    assert labels.named("driver") is None
