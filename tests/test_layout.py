"""Rules of the layout: subjects, names, and what solvers and models are asked for."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import solvers
from solvers.core.base import Solver
from solvers.core.model import Model
from solvers.core.stored_models import MODEL_KINDS
from solvers.registry import SOLVERS

ROOT = Path(__file__).parents[1]
MOST_CLASSES = 4
# words that the field has others for, with these
RETIRED = {
    "doorbell": "notify", "guardian": "process reaper", "ray": "scaling line search", "climb": "working-set loop",
    "crew": "thread pool", "tally": "statistics", "awake": "active", "venture": "first certificate",
    "parcels": "messages", "surveys": "pair statistics", "seat": "shard lease", "zero_sum": "sum to zero",
}  # fmt: skip
# plain English in a sentence, but no names: "reported", "converged" or "ended", "counters", "schedule"
NO_NAMES = {"solvers": {"settled", "clock", "pace"}, "workers": {"pace"}}

# files of a subject that only the application imports, by what they hold
SUBJECTS = (
    "access",
    "datasets",
    "evaluations",
    "exports",
    "figures",
    "hierarchies",
    "jobs",
    "models",
    "operation",
    "predictions",
    "reviews",
    "rules",
)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_subject_has_its_tests_in_a_folder_of_its_name(subject: str) -> None:
    assert (ROOT / "app" / subject / "__init__.py").exists()
    assert list((ROOT / "tests" / "app" / subject).glob("test_*.py"))


def test_a_method_stands_at_most_three_classes_below_the_solver() -> None:
    for name, method in SOLVERS.items():
        chain = [kind for kind in method.__mro__ if issubclass(kind, Solver)]
        assert len(chain) <= MOST_CLASSES, f"{name}: {[kind.__name__ for kind in chain]}"


def test_the_app_and_the_workers_ask_solvers_and_models_for_what_they_can_do_not_for_their_class() -> None:
    for module in pkgutil.walk_packages(solvers.__path__, "solvers."):
        importlib.import_module(module.name)
    kinds = {kind.__name__ for base in (Solver, Model) for kind in _below(base)}
    assert len(kinds) > len(SOLVERS) + len(MODEL_KINDS)
    asked = re.compile(rf"\b(?:isinstance|issubclass)\([^\n]*\b({'|'.join(sorted(kinds))})\b")
    for package in ("app", "workers"):
        for path in sorted((ROOT / package).rglob("*.py")):
            found = asked.search(path.read_text())
            assert found is None, f"{path.relative_to(ROOT)}: {found and found.group()}"


def _below(base: type) -> set[type]:
    return {base}.union(*(_below(kind) for kind in base.__subclasses__()))


def test_no_two_files_of_tests_have_one_name() -> None:
    # pytest could import only one of them
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py"]
    assert sorted(names) == sorted(set(names))


def test_words_that_the_field_has_others_for_do_not_return() -> None:
    retired = "|".join(RETIRED)
    pattern = re.compile(rf"(?<![A-Za-z])(?:{retired})(?![a-z])|(?:{retired.title()})(?![a-z])")
    for package in ("solvers", "app", "workers", "benchmarks", "tests"):
        for path in (ROOT / package).rglob("*.py"):
            found = pattern.search(path.read_text()) if path != Path(__file__) else None
            assert found is None, f"{path.relative_to(ROOT)}: {found and found.group()}"


def test_what_is_plain_english_in_a_sentence_names_nothing() -> None:
    for package, words in NO_NAMES.items():
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text()
            if any(word in text for word in words):
                named = {name for node in ast.walk(ast.parse(text)) for name in _names(node)} & words
                assert named == set(), path.relative_to(ROOT)


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.arg | ast.keyword):
        yield node.arg or ""
    elif isinstance(node, ast.Attribute):
        yield node.attr


def test_kernel_means_a_kernel_function_never_compiled_code() -> None:
    for folder in ("numerics", "linear", "boosting", "sharding"):
        for path in (ROOT / "solvers" / folder).rglob("*.py"):
            assert "kernel" not in path.read_text().lower(), path.relative_to(ROOT)
