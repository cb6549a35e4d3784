"""Jobs whose solver waits for a process: cancelling does not wait for it, and the lease is kept."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session, sessionmaker

from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from solvers.output_codes.design import highs_process, linear_programs
from workers.tasks import run


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_job_whose_linear_program_takes_for_ever_is_cancelled_at_once_and_its_process_ended(
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    configure: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    configure(heartbeat_seconds=0.05)
    dataset()
    (tmp_path / "endless.py").write_text("import time\ntime.sleep(600)\n")
    params = {"norm": "l1", "tol": 1e-2, "base_params": {"tol": 0.5}}
    with database() as session:
        request = TrainRequest(dataset="digits", model="m", solver="continuous_code", params=params)
        job_id = jobs.submit(session, request).id
    begun: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def start_and_cancel(*arguments: Any, **named: Any) -> subprocess.Popen[bytes]:
        begun.append(start(*arguments, **named))
        with database() as session:
            jobs.cancel(session, job_id)
        return begun[-1]

    monkeypatch.setattr(highs_process, "__file__", str(tmp_path / "endless.py"))
    monkeypatch.setattr(linear_programs, "OWN_PROCESS_ENTRIES", 0)
    monkeypatch.setattr(linear_programs, "WAIT_SECONDS", 0.02)
    monkeypatch.setattr(subprocess, "Popen", start_and_cancel)
    began = time.monotonic()
    run(job_id)
    assert time.monotonic() - began < 300
    with database() as session:
        assert jobs.get(session, job_id).state == "cancelled"
    assert len(begun) == 1
    assert begun[0].poll() is not None
