"""What is compiled ahead of the first job."""

import subprocess
import sys
from pathlib import Path

import pytest

from app.operation import warm
from solvers.registry import SOLVERS


@pytest.mark.slow
def test_no_training_calls_a_loop_that_was_not_compiled_ahead() -> None:
    script = Path(__file__).with_name("loops_after_warm.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("NEW")] == []


def test_every_method_that_has_shards_is_compiled_in_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[str] = []
    monkeypatch.setattr(warm, "_shard", lambda machine, *_: trained.append(machine.solver.name))
    sharded = {name: kind for name, kind in SOLVERS.items() if kind.handles.shards}
    for kind in sharded.values():
        warm.train_in_shards(kind(kind.Params()), warm.problems()[0])
    assert set(trained) == set(sharded)


def test_options_that_lead_to_other_loops_are_listed_and_are_parameters() -> None:
    for kind in SOLVERS.values():
        for params in warm.options(kind):
            kind.Params(**params)
    assert {"loss": "squared_hinge", "algorithm": "newton", "max_epochs": 60} in list(
        warm.options(SOLVERS["one_vs_rest"])
    )
