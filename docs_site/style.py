"""``python -m docs_site.style``: find words that the style page retires, in code, templates, scripts and pages.

Exits with 1 and a line for each place where it finds one. ``docs/explanation/style.md`` has what to write instead.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORDS = (
    *("told", "tells?", "stands?", "stood", "mends?", "mended", "meant", "anew", "shall"),
    *("whoever", "somebody", "broke off", "look after", "in vain", "in the way"),
    *("for ever", "the way of", "none of it", "handed back", "truth about", "spoken"),
    *("whence", "lest", "hitherto", "thereof", "of_state", "with_room", "take_back", "take_labels"),
)
RETIRED = re.compile(rf"(?<![\w-])(?:{'|'.join(WORDS)})(?![\w-])", re.IGNORECASE)
ENDINGS = (".py", ".md", ".html", ".js")
# history and measurements keep the words that they were written in; the style page names what it retires
LEFT_OUT = re.compile(
    r"CHANGELOG\.md|docs/(adr|notes)/|benchmarks/(results|history|data)/|docs/explanation/style\.md|docs_site/style\.py"
)


def found() -> Iterator[str]:
    """Every place of a retired word: file, line, and the line's text."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in listed.split("\0"):
        path = ROOT / name
        if not name.endswith(ENDINGS) or LEFT_OUT.match(name) or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if RETIRED.search(line):
                yield f"{name}:{number}: {line.strip()}"


if __name__ == "__main__":
    places = list(found())
    print("\n".join(places), end="\n" if places else "")
    sys.exit(bool(places))
