"""The list of deliberate faults fits the code and the quick tests."""

import ast

from mutants import MUTANTS, ROOT, faults


def _quick_tests(file: str) -> set[str]:
    """The names of a file's tests that are not marked as slow with all their cases."""
    body = ast.parse((ROOT / file).read_text()).body
    marks = [
        ast.unparse(node.value) for node in body if isinstance(node, ast.Assign) and "pytestmark" in ast.dump(node)
    ]
    if any("mark.slow" in mark for mark in marks):
        return set()
    found = [node for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return {
        test.name for test in found if "pytest.mark.slow" not in [ast.unparse(each) for each in test.decorator_list]
    }


def test_every_fault_can_still_be_put_into_the_code() -> None:
    assert len(MUTANTS) >= 40
    assert faults(MUTANTS) == []


def test_every_fault_is_looked_for_by_tests_that_are_quick() -> None:
    for each in MUTANTS:
        for file, _, name in (test.partition("::") for test in each.tests):
            quick = _quick_tests(file)
            assert name in quick if name else quick, f"{each.name}: {file} {name}"
