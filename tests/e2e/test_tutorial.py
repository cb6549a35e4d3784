"""The tutorial's commands do what the page says, in its order, as they are pasted."""

import re
import sys
from pathlib import Path

import pytest
from pasted_pages import output_of, shell_blocks
from running import running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes through /proc"),
]


def test_the_tutorial_works_as_it_is_pasted(tmp_path: Path) -> None:
    (tmp_path / "venv").symlink_to(sys.prefix)
    # the service of this test is in place of the page's first block
    commands = [text for text in shell_blocks("tutorial.md", tmp_path) if "polymargin up" not in text]
    # the page's program, for no title and for more than one request takes
    extremes = "python code_titles.py </dev/null; echo none; cat more-*.csv more-*.csv |python code_titles.py | wc -l\n"
    commands.insert(-1, extremes)
    with running(tmp_path / "home") as service:
        said = output_of("".join(commands), tmp_path, service)
    errors = [float(error) for error in re.findall(r"^test error +(0\.\d+)", said, re.MULTILINE)]
    assert len(errors) == 2
    assert all(error < 0.2 for error in errors)
    assert re.search(r"^0 +2221 .*2221 \d\.\d+ *$", said, re.MULTILINE), "a nurse is coded"
    assert re.search(r"^2221\t[01]\.\d\d\tNurse, night shift$", said, re.MULTILINE)
    assert re.search(r"^\?\t0\.\d\d\temployee$", said, re.MULTILINE), "a vague title is left to people"
    assert re.search(r"^only b correct +\d+", said, re.MULTILINE)
    assert re.search(r"^none\n1802$", said, re.MULTILINE)
    assert re.findall(r"^version +(\d) *\nrevision", said, re.MULTILINE) == ["1", "2", "1"]
    assert re.search(r"^secret +pm_", said, re.MULTILINE)
    assert "Deleted titles" in said
