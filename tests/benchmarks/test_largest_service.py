"""What the benchmark of the largest collection says of the processes of a service."""

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from benchmarks.largest_service import Watch, descendants, own_bytes, processor_seconds

# works for half a processor second in a child of its own that ends, then holds 64 MB, says so, and waits
_PARENT = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.5: pass"])
held = bytearray(b"x" * (64 << 20))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def parent() -> Iterator[int]:
    command = [sys.executable, "-c", _PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_processor_seconds_count_children_that_have_ended(parent: int) -> None:
    assert descendants(parent) == [parent]
    assert processor_seconds(parent) >= 0.4


def test_memory_is_what_the_processes_hold(parent: int) -> None:
    assert own_bytes(parent) >= 64 << 20


def test_a_phase_ends_where_the_next_one_begins(parent: int) -> None:
    with Watch(parent) as watch:
        watch.begin("import")
        watch.phase("import")
        watch.report("10 rows")
        time.sleep(0.5)
        watch.phase("training")
        watch.report("of the first", "import")
        rows = watch.rows()
    assert [row[0] for row in rows] == ["import", "training"]
    assert [row[4] for row in rows] == ["of the first", ""]
    assert float(str(rows[0][1])) >= 0.5
    assert float(str(rows[0][3])) > 0.05
