"""Every promise of the documentation names a test that exists."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "promises.md"


def test_every_promise_is_proved_by_a_test_that_exists() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    promises = [row for row in rows if row != "| promise | test |"]
    assert len(promises) >= 30
    for row in promises:
        named = re.search(r"`(tests/[\w/]+\.py)::(test_\w+)` \|$", row)
        assert named is not None, row
        file = ROOT / named[1]
        assert file.is_file(), row
        functions = {node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)}
        assert named[2] in functions, row
