"""Settings: read from the environment, by their former names, too."""

from collections.abc import Callable

import pytest

from app.config import settings


@pytest.mark.parametrize("name", ["notify_again_seconds", "ring_again_seconds"])
def test_a_setting_that_was_renamed_is_read_by_both_names(configure: Callable[..., None], name: str) -> None:
    configure(**{name: 7})
    assert settings().notify_again_seconds == 7.0
