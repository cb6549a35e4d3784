"""Fixtures of the tests of workers."""

from collections.abc import Callable, Iterator

import pytest

from workers.running import lanes


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """``interrupt(n)``: the n-th time that the worker asks whether it is to end, the answer is yes."""

    def after(asked: int) -> None:
        answers = iter([False] * (asked - 1))
        monkeypatch.setattr(lanes, "drain_requested", lambda: next(answers, True))

    yield after
    lanes.withdraw_drain()
