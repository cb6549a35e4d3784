"""Kills what a supervisor leaves behind: ``python process_reaper.py`` reads on stdin which process groups live.

The supervisor writes ``+N`` when it starts process group N and ``-N`` once that is gone. When the pipe closes, the
supervisor has ended, however it ended (SIGKILL included), and every group still on the list is killed. A group, and
not only a child, because a worker has children of its own.
"""

import os
import signal
import sys
from collections.abc import Iterable


def main(lines: Iterable[str]) -> None:
    """Keep the list until the lines end, then kill what is on it."""
    groups: set[int] = set()
    for line in lines:
        group = int(line[1:])
        if line.startswith("+"):
            groups.add(group)
        else:
            groups.discard(group)
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    # Ctrl-C and a closing terminal are the supervisor's to answer.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    main(sys.stdin)
