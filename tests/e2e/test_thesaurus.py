"""The commands of the page on thesauri do what it says, as they are pasted."""

import re
import sys
from pathlib import Path

import pytest
from pasted_pages import PROGRAMS, output_of, shell_blocks
from running import running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes through /proc"),
]


def test_a_thesaurus_is_worked_with_and_gives_way_to_its_next_edition(tmp_path: Path) -> None:
    commands = "".join(shell_blocks("how-to/thesaurus.md", tmp_path))
    with running(tmp_path / "home") as service:
        said = output_of(PROGRAMS + commands, tmp_path, service)
    assert re.search(r"^n_dropped +1 *$", said, re.MULTILINE)
    assert re.search(
        r"^https://example.org/crafts/bread +Bread making +deprecated +https://example.org/crafts/baking *$",
        said,
        re.MULTILINE,
    )
    assert re.search(r"^0 +https://example.org/crafts/baking +Backen +Baking ", said, re.MULTILINE)
    assert re.search(r"^0 +https://example.org/crafts/food +Essen +Food ", said, re.MULTILINE)
    assert "1 appeared, 1 went, 1 moved, 1 renamed, 0 deprecated" in said
    assert re.search(
        r"^moved +https://example.org/crafts/weaving +https://example.org/crafts/craft +https://", said, re.MULTILINE
    )
    assert re.search(r"^0 +https://example.org/crafts/pottery +Töpfern +Pottery ", said, re.MULTILINE)  # of version 1
