"""The tests' own browser: one that hangs is ended, and the next test has another."""

import os
import signal
from typing import Any

import pytest

pytestmark = pytest.mark.slow


def test_a_browser_that_hangs_is_ended_and_launched_again(chromium: Any) -> None:
    context = chromium.new_context()
    context.new_page().goto("about:blank")
    hung = chromium.process
    os.kill(hung, signal.SIGSTOP)
    chromium.close(context, seconds=1.0)
    page = chromium.new_context().new_page()
    page.goto("data:text/html,<h1>again</h1>")
    assert (page.text_content("h1"), chromium.process != hung) == ("again", True)
