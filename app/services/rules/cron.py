"""Cron expressions of five fields: which moment comes next, in a time zone."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from celery.schedules import ParseException, crontab_parser

from app.errors import InvalidInput, Item
from app.plurals import counted

# how many values each field has, from which on, and whether they have names
_FIELDS = {
    "minute": (60, 0, False),
    "hour": (24, 0, False),
    "day of the month": (31, 1, False),
    "month": (12, 1, True),
    "day of the week": (7, 0, True),
}
_PART = r"(\*|[0-9]+(-[0-9]+)?)(/[0-9]+)?"
_NAMED_PART = r"(\*|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?"
# 29 February of a leap year is at most eight years away
_MOST_DAYS = 366 * 8


def next_moment(expression: str, time_zone: str, after: float) -> float:
    """The first moment that an expression names after another.

    As cron has it, a day must fit both of its fields, or one of them where neither is ``*``. A time that a change of
    the clocks leaves out does not come on that day; one that it repeats comes once.

    Parameters
    ----------
    expression : str
        Minute, hour, day of the month, month and day of the week (0 or sun: Sunday), as ``30 2 * * mon-fri``.
    time_zone : str
        Its IANA name.
    after : float
        Seconds since 1970.

    Returns
    -------
    float
        Seconds since 1970.

    Raises
    ------
    InvalidInput
        It is no such expression or zone, or no day ever fits.
    """
    minutes, hours, days, months, weekdays = (sorted(found) for found in _read(expression))
    fields = expression.split()
    zone = _zone(time_zone)
    start = datetime.fromtimestamp(after, zone)

    def fits(day: date) -> bool:
        by_month, by_week = day.day in days, day.isoweekday() % 7 in weekdays
        either = not fields[2].startswith("*") and not fields[4].startswith("*")
        return day.month in months and (by_month or by_week if either else by_month and by_week)

    for day in _days_from(start.date()):
        if not fits(day):
            continue
        for hour in hours:
            for minute in minutes:
                local = datetime.combine(day, time(hour, minute), zone)
                moment = local.timestamp()
                exists = datetime.fromtimestamp(moment, zone).replace(tzinfo=None) == local.replace(tzinfo=None)
                if moment > after and exists:
                    return moment
    raise InvalidInput("the schedule is not one", [Item(f"no day ever fits {expression!r}", "/cron")])


def _days_from(first: date) -> Iterator[date]:
    return (first + timedelta(days=number) for number in range(_MOST_DAYS))


def _read(expression: str) -> Iterator[set[int]]:
    parts = expression.split()
    if len(parts) != len(_FIELDS):
        detail = f"{counted(len(parts), 'field')} given; {', '.join(_FIELDS)} were expected"
        raise InvalidInput("the schedule is not one", [Item(detail, "/cron")])
    for given, (name, (count, first, named)) in zip(parts, _FIELDS.items(), strict=True):
        part = _NAMED_PART if named else _PART
        try:
            if not re.fullmatch(f"{part}(,{part})*", given):
                raise ValueError("no number, range, list or step")
            found = crontab_parser(count, first).parse(given.lower())
        except (ValueError, ParseException) as error:
            detail = f"{given!r:.80} is no {name}: {error}"
            raise InvalidInput("the schedule is not one", [Item(detail, "/cron")]) from None
        yield found


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        detail = f"no time zone is called {name!r:.80}"
        raise InvalidInput("the time zone is not known", [Item(detail, "/time_zone")]) from None
