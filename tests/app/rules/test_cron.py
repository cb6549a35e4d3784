"""Cron expressions: which moment comes next."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from app.errors import InvalidInput
from app.rules.cron import next_moment


def _next(expression: str, after: str, zone: str = "UTC") -> str:
    moment = next_moment(expression, zone, datetime.fromisoformat(after).replace(tzinfo=ZoneInfo(zone)).timestamp())
    return datetime.fromtimestamp(moment, ZoneInfo(zone)).isoformat(" ", "minutes")[:16]


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("30 2 * * *", "2026-03-01 02:29", "2026-03-01 02:30"),
        ("30 2 * * *", "2026-03-01 02:30", "2026-03-02 02:30"),
        ("*/20 * * * *", "2026-12-31 23:40", "2027-01-01 00:00"),
        ("0 9-17/4 * * mon-fri", "2026-11-27 17:30", "2026-11-30 09:00"),
        ("0 0 29 2 *", "2026-01-01 00:00", "2028-02-29 00:00"),
        ("0 0 31 jan,apr,MAY *", "2026-02-01 00:00", "2026-05-31 00:00"),
        ("0 12 13 * fri", "2026-11-01 00:00", "2026-11-06 12:00"),  # either day
        ("0 12 */2 * 1", "2026-11-01 13:00", "2026-11-09 12:00"),  # both: a step of all is no list of days
        ("0 0 * * 0", "2026-11-25 00:00", "2026-11-29 00:00"),
    ],
)
def test_the_next_moment_is_the_first_that_fits(expression: str, after: str, expected: str) -> None:
    assert _next(expression, after) == expected


def test_a_skipped_time_runs_right_after_the_change_and_a_repeated_one_runs_once() -> None:
    # Berlin: 02:30 is skipped on 29 March 2026, and comes twice on 25 October
    assert _next("30 2 * * *", "2026-03-28 03:00", "Europe/Berlin") == "2026-03-29 03:00"
    assert _next("30 2 * * *", "2026-03-29 03:00", "Europe/Berlin") == "2026-03-30 02:30"
    assert _next("30 2 * * *", "2026-10-24 03:00", "Europe/Berlin") == "2026-10-25 02:30"
    first = next_moment("30 2 * * *", "Europe/Berlin", datetime(2026, 10, 25, tzinfo=ZoneInfo("UTC")).timestamp())
    assert next_moment("30 2 * * *", "Europe/Berlin", first) - first == 25 * 3600


@pytest.mark.parametrize(
    ("expression", "zone", "pointer"),
    [
        ("* * * *", "UTC", "/cron"),
        ("60 * * * *", "UTC", "/cron"),
        ("* 24 * * *", "UTC", "/cron"),
        ("* * 0 * *", "UTC", "/cron"),
        ("* * * * 8", "UTC", "/cron"),
        ("* * * * * *", "UTC", "/cron"),
        ("mon * * * *", "UTC", "/cron"),
        ("1-2-3 * * * *", "UTC", "/cron"),
        ("*/0 * * * *", "UTC", "/cron"),
        ("1, * * * *", "UTC", "/cron"),
        ("0 0 31 2 *", "UTC", "/cron"),
        ("* * * * *", "Mars/Olympus", "/time_zone"),
        ("* * * * *", "../etc/passwd", "/time_zone"),
    ],
)
def test_invalid_schedules_are_refused(expression: str, zone: str, pointer: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        next_moment(expression, zone, 0.0)
    assert refused.value.errors[0].pointer == pointer
