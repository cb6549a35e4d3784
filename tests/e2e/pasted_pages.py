"""Pages of the documentation whose commands are run as they are pasted."""

import re
import subprocess
import sys
from pathlib import Path

from running import Running

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r'^```(\w+)(?: title="([\w.-]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
# a page means the installation that runs the tests
PROGRAMS = f'polymargin() {{ "{sys.executable}" -m app.cli "$@"; }}\npython() {{ "{sys.executable}" "$@"; }}\n'


def shell_blocks(page: str, folder: Path) -> list[str]:
    """The blocks of shell commands of a page below docs/; its titled blocks are written as files into the folder."""
    blocks = _BLOCK.findall((DOCS / page).read_text())
    for _, title, text in blocks:
        if title:
            (folder / title).write_text(text)
    return [text for language, _, text in blocks if language == "sh"]


def output_of(commands: str, folder: Path, service: Running) -> str:
    """What commands print that talk to a service; raises CalledProcessError at the first that fails."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env=service.environment | {"COLUMNS": "200"},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout
