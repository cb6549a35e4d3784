"""What the live view of a job says of a step."""

from io import StringIO
from typing import Any

import pytest
from canned import JOB
from rich.console import Console

from app.command_line.watching import watch
from app.display.cards import stage
from app.jobs.schemas import Job as JobBody

SIZES = {"epoch": 12, "gap": 0.25}


def test_a_queued_job_says_which_kinds_of_jobs_run_before_it() -> None:
    place = {"position": 2, "starts_in_seconds": None, "running": ["train"]}
    job = JobBody.model_validate(JOB | {"kind": "predict", "state": "queued", "queue": place})
    out = StringIO()
    followed = _Followed(job.model_dump(mode="json"), "state")
    watch(followed, Console(file=out, width=200))  # type: ignore[arg-type]
    assert out.getvalue() == "predict queued at place 2 while train is running\n"
    assert stage(job) == "queued at place 2 while train is running"
    place["running"] = []
    assert stage(JobBody.model_validate(JOB | {"state": "queued", "queue": place})) == "queued at place 2"
    assert stage(JobBody.model_validate(JOB | {"state": "cancelled"})) == "cancelled"


class _Followed:
    """A job of which one event is there."""

    def __init__(self, data: dict[str, Any], event: str = "step") -> None:
        self.kind, self.state, self._data, self._event = "train", "succeeded", data, event

    def events(self) -> list[Any]:
        event = type("Event", (), {"kind": self._event, "data": self._data})
        return [event]

    def refresh(self) -> "_Followed":
        return self


@pytest.mark.parametrize(
    ("step", "shown"),
    [
        ({**SIZES, "measures": {"error": 0.5}}, "epoch 12, gap 2.5e-01, error 0.5"),
        ({**SIZES, "gap": None}, "epoch 12, gap not measured"),
        (
            {**SIZES, "setting": "softmax, C 10", "measures": {"trial": 2.0, "accuracy": 0.75, "seconds": 1.0}},
            "softmax, C 10: epoch 12, trial 3, accuracy 0.75",
        ),
    ],
)
def test_a_step_is_shown_in_a_line_and_trials_are_counted_from_1(step: dict[str, Any], shown: str) -> None:
    out = StringIO()
    watch(_Followed(step), Console(file=out, width=200, force_terminal=True))  # type: ignore[arg-type]
    assert shown in out.getvalue()
    assert f"{shown}," not in out.getvalue()
