"""The rules of the house, by which its folders, functions and classes stay small."""

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
MOST_ENTRIES, MOST_LINES, MOST_PARAMETERS, MOST_CLASSES = 15, 80, 12, 4
# compiled loops that lose speed where they are cut
LONG = {"solvers/linear/steps/joint.py:visit"}
# words that the field has others for, which stand behind them
RETIRED = {
    "doorbell": "notify", "guardian": "process reaper", "ray": "scaling line search", "climb": "working-set loop",
    "crew": "thread pool", "tally": "statistics", "awake": "active", "venture": "first certificate",
    "parcels": "messages", "surveys": "pair statistics", "seat": "shard lease", "zero_sum": "sum to zero",
}  # fmt: skip
# plain English in a sentence, but no names: "reported", "converged" or "ended", "counters", "schedule"
NO_NAMES = {"solvers": {"told", "settled", "clock", "pace"}, "workers": {"pace"}}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions() -> Iterator[tuple[str, Function]]:
    for package in ("solvers", "app", "workers"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, Function):
                    yield f"{path.relative_to(ROOT).as_posix()}:{node.name}", node


def _n_parameters(function: Function) -> int:
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def _n_lines(function: Function) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


@pytest.mark.parametrize(
    "part",
    [
        "solvers", "app/services", "app/api", "app/schemas", "app/commands", "workers",
        "tests/app/api", "tests/app/services", "tests/app/commands",
    ],
)  # fmt: skip
def test_every_folder_can_be_taken_in_at_a_glance(part: str) -> None:
    folders = [ROOT / part, *(path for path in (ROOT / part).rglob("*") if path.is_dir())]
    for folder in folders:
        if "__pycache__" in folder.parts or folder.name == "methods":
            continue
        entries = [
            path
            for path in folder.iterdir()
            if (path.suffix == ".py" and path.name not in ("__init__.py", "conftest.py")) or any(path.glob("*.py"))
        ]
        name = folder.relative_to(ROOT).as_posix()
        assert len(entries) <= MOST_ENTRIES, f"{name} has {len(entries)} entries"


def test_what_is_about_one_thing_lies_in_folders_of_one_name() -> None:
    services = {path.name for path in (ROOT / "app/services").iterdir()}
    folders: dict[str, set[str]] = {}
    for part in ("services", "api", "schemas", "commands"):
        for path in (ROOT / "app" / part).rglob("*.py"):
            if path.name != "__init__.py":
                folder = path.relative_to(ROOT / "app" / part).with_suffix("").parts[0]
                assert folder in services or (part, folder) == ("api", "middleware"), path
                folders.setdefault(path.stem, set()).add(folder)
    assert {name: found for name, found in folders.items() if len(found) > 1} == {}


def test_no_function_is_long_or_has_many_parameters() -> None:
    found = {
        name: (_n_lines(function), _n_parameters(function))
        for name, function in _functions()
        if _n_lines(function) > MOST_LINES or _n_parameters(function) > MOST_PARAMETERS
    }
    assert len(LONG) <= 3
    assert {name: size for name, size in found.items() if name not in LONG} == {}


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
