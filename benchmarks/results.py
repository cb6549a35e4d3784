"""RESULTS.md: each benchmark replaces its own section, with the machine, commit and command that made it."""

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

FOLDER = Path(__file__).parent
# a trial writes elsewhere, so that the tables stay those of whole runs
PATH = Path(os.environ.get("POLYMARGIN_BENCH_RESULTS") or FOLDER / "RESULTS.md")
HEAD = (
    "# Results\n\nEvery table is written by the benchmark named above it; figures of different runs do not compare.\n"
)


def write(title: str, header: Sequence[str], rows: Sequence[Sequence[object]], note: str = "") -> None:
    """Print a table and put it into RESULTS.md in place of the section of the same title."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (header, ["---"] * len(header), *rows)]
    section = f"## {title}\n\n{_origin()}\n\n" + (f"{note}\n\n" if note else "") + "\n".join(lines) + "\n"
    print(section)
    text = PATH.read_text() if PATH.exists() else HEAD
    before, _, rest = text.partition(f"## {title}\n")
    _, mark, after = rest.partition("\n## ")
    PATH.write_text(before.rstrip() + "\n\n" + section + ("\n## " + after if mark else ""))


def _origin() -> str:
    git = ["git", "-C", str(FOLDER)]
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    dirty = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True).stdout.strip()
    command = "python -m " + Path(sys.argv[0]).with_suffix("").relative_to(FOLDER.parent).as_posix().replace("/", ".")
    load = "/".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"`{' '.join([command, *sys.argv[1:]])}`, commit {commit or 'unknown'}{' with changes' if dirty else ''}, "
        f"{datetime.now(UTC):%Y-%m-%d}, {_processor()}, {os.cpu_count()} cores, load {load}, Python "
        f"{platform.python_version()}."
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
