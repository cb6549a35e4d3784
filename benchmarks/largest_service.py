"""The largest collection through the service: an upload over HTTP, its import, a training job, answers.

``polymargin up`` on a data folder of its own, with a client on the same machine. Processor seconds are of all
processes of the service together, those that have ended included; memory is their own pages, without those of mapped
files.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from benchmarks.largest_peers import HELD_OUT, ROWS
from benchmarks.processes import children

GB = 1e9
HEADER = ("phase", "s", "processor s", "GB at most", "what")
ANSWERS = 100
# between two looks at memory, and two requests for how far a job is, whose answers count among the processor seconds
LOOK_SECONDS, ASK_SECONDS = 0.2, 2.0
_TICKS = os.sysconf("SC_CLK_TCK")
Row = list[object]


def measured(folder: Path, small: Sequence[Path], machine: str, params: dict[str, Any], shards: int) -> list[Row]:
    """A row for each phase from the files in ``folder`` to answers, behind all phases of the ``small`` ones."""
    with tempfile.TemporaryDirectory() as home, serving(Path(home, "home"), shards) as (client, pid):
        for number, one in enumerate(small):
            phases(client, pid, f"small-{number}", one, machine, params, shards)
        return phases(client, pid, "largest", folder, machine, params, shards)


def phases(
    client: Any, pid: int, name: str, folder: Path, machine: str, params: dict[str, Any], shards: int
) -> list[Row]:
    """The phases of the files of one folder; datasets and the model get that name."""
    held_out, n_bytes = f"{name}-held-out", (folder / ROWS).stat().st_size
    options = {"shards": shards} if shards else {}
    with Watch(pid) as watch:
        watch.begin("upload", f"{n_bytes / GB:.3g} GB")
        dataset = client.datasets.upload(folder / ROWS, name)
        watch.begin("import")
        dataset.wait()
        watch.report(f"{dataset.n_rows:,} rows")
        watch.begin("queued")
        job = client.train(name, name, machine, params, test_fraction=0.0, **options)
        while not job.refresh().finished:
            watch.phase(None if job.progress is None else job.progress.phase)
            time.sleep(ASK_SECONDS if watch.seconds > 10 * ASK_SECONDS else LOOK_SECONDS)
        version = client.models.versions(job.wait().result.model).items[0]
        watch.report(f"{version.size_bytes / GB:.2f} GB")
        watch.report(f"{version.epochs} epochs, gap {version.gap:.3f}", "training")
        asked = _instances(folder / HELD_OUT, ANSWERS)
        watch.begin("first answer", "loads the model")
        client.predict(name, asked[:1])
        watch.begin(f"{len(asked)} answers", "a request each")
        for one in asked:
            client.predict(name, [one])
        watch.begin("evaluation")
        client.datasets.upload(folder / HELD_OUT, held_out).wait()
        found = client.evaluations.get(client.evaluate(name, held_out, part="all", resamples=0).wait().id)
        right = next(one.value for one in found.measures if one.name == "precision@1")
        watch.report(f"upload, import and job: {found.n_rows:,} rows, P@1 {100 * right:.1f} %")
        return watch.rows()


class Watch:
    """Times, processor seconds and memory of a service's processes by phase; a thread looks at them meanwhile.

    Parameters
    ----------
    pid : int
        Of the process that has started all others.
    """

    def __init__(self, pid: int) -> None:
        self._pid, self._ended, self._lock = pid, threading.Event(), threading.Lock()
        self._rows: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def begin(self, name: str, what: str = "") -> None:
        """End the phase before, and begin one."""
        held, processor, wall = own_bytes(self._pid), processor_seconds(self._pid), time.perf_counter()
        with self._lock:
            self._end(processor, wall)
            self._rows.append({"name": name, "began": (processor, wall), "bytes": held, "what": what})

    @property
    def seconds(self) -> float:
        """Since the phase began."""
        return time.perf_counter() - float(self._rows[-1]["began"][1])

    def phase(self, name: str | None) -> None:
        """Begin a phase of a job, unless it is the one that is going on."""
        if name is not None and name != self._rows[-1]["name"]:
            self.begin(name)

    def report(self, what: str, of: str | None = None) -> None:
        """What is said of the last phase, or of the last of such a name."""
        next(row for row in reversed(self._rows) if of in (None, row["name"]))["what"] = what

    def rows(self) -> list[Row]:
        """A row of the table for each phase; the last one ends."""
        with self._lock:
            self._end(processor_seconds(self._pid), time.perf_counter())
        return [
            [row["name"], f"{row['wall']:.1f}", f"{row['processor']:.1f}", f"{row['bytes'] / GB:.2f}", row["what"]]
            for row in self._rows
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        self._thread.join()

    def _end(self, processor: float, wall: float) -> None:
        if self._rows:
            row = self._rows[-1]
            row["processor"], row["wall"] = processor - row["began"][0], wall - row["began"][1]

    def _look(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            held = own_bytes(self._pid)
            with self._lock:
                for row in self._rows[-1:]:
                    row["bytes"] = max(row["bytes"], held)


def processor_seconds(pid: int) -> float:
    """Of a process and all that it has started; of those that ended, as their parents know it. Linux only."""
    ticks = 0
    for process in descendants(pid):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS


def own_bytes(pid: int) -> int:
    """The memory of a process and of all that it has started, without mapped files; shared pages count once."""
    total = 0
    for process in descendants(pid):
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
    return total << 10


def descendants(pid: int) -> list[int]:
    """A process and all that it has started, and these. Linux only."""
    try:
        return [pid, *(one for child in children(pid) for one in descendants(child))]
    except OSError:
        return []


@contextmanager
def serving(home: Path, shards: int) -> Iterator[tuple[Any, int]]:
    """A service in the folder ``home``, a client of it, and the process that has started all others."""
    from app.client import Client

    environment = {name: value for name, value in os.environ.items() if not name.startswith("POLYMARGIN_")}
    environment |= {"POLYMARGIN_HOME": str(home), "POLYMARGIN_COMPILE_AHEAD": "0", "POLYMARGIN_WORKER_NICENESS": "0"}
    command = [sys.executable, "-m", "app.cli", "up", "--port", "0", "--shards", str(shards)]
    log = home.with_suffix(".out")
    with log.open("w") as output:
        service = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        while "Ctrl-C" not in log.read_text():
            assert service.poll() is None, log.read_text()
            time.sleep(0.1)
        url = next(word for word in log.read_text().split() if word.endswith("/api/v1")).removesuffix("/api/v1")
        with Client(url, (home / "admin.key").read_text().strip()) as client:
            yield client, service.pid
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait()


def _instances(path: Path, n: int) -> list[dict[str, Any]]:
    """The first rows of a file, as requests have them."""
    found = []
    with path.open() as file:
        for line, _ in zip(file, range(n), strict=False):
            pairs = [pair.split(":") for pair in line.split()[1:]]
            indices, values = [int(index) - 1 for index, _ in pairs], [float(value) for _, value in pairs]
            found.append({"indices": indices, "values": values})
    return found
