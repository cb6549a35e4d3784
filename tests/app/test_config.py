"""Settings: read from the environment, by their former names, too."""

from collections.abc import Callable

import pytest

from app.config import Settings, misspelt, settings
from app.errors import SettingsError


@pytest.mark.parametrize("name", ["notify_again_seconds", "ring_again_seconds"])
def test_a_setting_that_was_renamed_is_read_by_both_names(configure: Callable[..., None], name: str) -> None:
    configure(**{name: 7})
    assert settings().notify_again_seconds == 7.0


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("lease_seconds", "-1", "POLYMARGIN_LEASE_SECONDS: Input should be greater than 0"),
        ("keep_audit_seconds", "30d", "POLYMARGIN_KEEP_AUDIT_SECONDS: Input should be a valid number"),
        ("log_level", "loud", "POLYMARGIN_LOG_LEVEL: expected debug, info, warning or error"),
        ("database_url", "mysql://u:secret@h/d", "POLYMARGIN_DATABASE_URL: expected a URL of PostgreSQL or SQLite"),
    ],
)
def test_a_setting_that_cannot_be_is_told_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(f"POLYMARGIN_{name.upper()}", value)
    settings.cache_clear()
    with pytest.raises(SettingsError) as refused:
        settings()
    assert str(refused.value).startswith(said)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("lease", [2, 5, 14.9])
def test_a_lease_outlives_a_heartbeat_that_fails(configure: Callable[..., None], lease: float) -> None:
    configure(lease_seconds=lease, heartbeat_seconds=5)
    expected = rf"LEASE_SECONDS \({lease}\) must be at least 3 times POLYMARGIN_HEARTBEAT_SECONDS \(5\)"
    with pytest.raises(SettingsError, match=expected):
        settings()
    configure(lease_seconds=15)
    assert settings().lease_seconds == 15


@pytest.mark.parametrize("value", ["INFO", "critical"])
def test_levels_of_the_log_are_in_letters_of_any_size(configure: Callable[..., None], value: str) -> None:
    configure(log_level=value)
    assert settings().log_level == value


def test_variables_that_are_nearly_settings_are_named_and_those_of_others_are_not() -> None:
    given = ["POLYMARGIN_MAX_CLASES", "POLYMARGIN_HOME", "POLYMARGIN_URL", "POLYMARGIN_SERVICE_PORT", "HOMES"]
    others = ["POLYMARGIN_TEST_REDIS_URL", "POLYMARGIN_PORT_8000_TCP_PORT", "POLYMARGIN_RING_AGAIN_SECONDS"]
    assert misspelt(given + others) == ["POLYMARGIN_MAX_CLASES is not a setting; did you mean POLYMARGIN_MAX_CLASSES?"]


def test_a_variable_without_a_value_is_as_one_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYMARGIN_REDIS_URL", "")
    monkeypatch.setenv("POLYMARGIN_LEASE_SECONDS", "")
    settings.cache_clear()
    assert settings().lease_seconds == Settings.model_fields["lease_seconds"].default
    assert settings().redis_url == Settings.model_fields["redis_url"].default
