"""The commands of the page on thesauri do what it says, as they are pasted."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from running import running

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "thesaurus.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([\w.-]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes through /proc"),
]


def test_a_thesaurus_is_worked_with_and_gives_way_to_its_next_edition(tmp_path: Path) -> None:
    blocks = BLOCK.findall(PAGE.read_text())
    for _, title, text in blocks:
        if title:
            (tmp_path / title).write_text(text)
    commands = "".join(text for language, _, text in blocks if language == "sh")
    with running(tmp_path / "home") as service:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f'polymargin() {{ "{sys.executable}" -m app.cli "$@"; }}\n{commands}'],
            cwd=tmp_path,
            env=service.environment | {"COLUMNS": "200"},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    said = done.stdout
    assert re.search(r"^n_dropped +1 *$", said, re.MULTILINE)
    assert re.search(
        r"^https://example.org/crafts/bread +Bread making +https://example.org/crafts/baking *$", said, re.MULTILINE
    )
    assert re.search(r"^0 +https://example.org/crafts/baking +Backen +Baking ", said, re.MULTILINE)
    assert re.search(r"^0 +https://example.org/crafts/food +Essen +Food ", said, re.MULTILINE)
    assert "1 appeared, 1 went, 1 moved, 1 renamed, 0 deprecated" in said
    assert re.search(
        r"^moved +https://example.org/crafts/weaving +https://example.org/crafts/craft +https://", said, re.MULTILINE
    )
    assert re.search(r"^0 +https://example.org/crafts/pottery +Töpfern +Pottery ", said, re.MULTILINE)  # of version 1
