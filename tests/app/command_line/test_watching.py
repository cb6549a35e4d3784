"""What the live view of a job says of a step."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from app.command_line.watching import watch

SIZES = {"epoch": 12, "gap": 0.25}


class _Followed:
    """A job that has taken one step."""

    def __init__(self, step: dict[str, Any]) -> None:
        self.kind, self.state, self._step = "train", "succeeded", step

    def events(self) -> list[Any]:
        event = type("Event", (), {"kind": "step", "data": self._step})
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
