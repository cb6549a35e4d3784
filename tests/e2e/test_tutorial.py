"""The tutorial's commands do what the page says, in its order, as they are pasted."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from running import running

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([\w.]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes through /proc"),
]


def test_the_tutorial_works_as_it_is_pasted(tmp_path: Path) -> None:
    blocks = BLOCK.findall(TUTORIAL.read_text())
    for _, title, text in blocks:
        if title:
            (tmp_path / title).write_text(text)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    commands = [text for language, _, text in blocks if language == "sh" and "make serve" not in text]
    with running(tmp_path / "home") as service:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "".join(commands)],
            cwd=tmp_path,
            env=service.environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    said = done.stdout
    assert "production is version 4" in said
    assert "topics  4" in said
    assert re.search(r"^test error +0\.0\d", said, re.MULTILINE)
    assert re.search(r"^numpy\.random\tDraw samples from a gamma distribution\.$", said, re.MULTILINE)
    assert '"label":"numpy.random"' in said
    assert re.search(r"^secret +pm_", said, re.MULTILINE)
