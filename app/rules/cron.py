"""Cron expressions of five fields: the next moment that one names, in a time zone."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from app.errors import InvalidInput, Item
from app.plurals import counted

_FIELDS = ("minute", "hour", "day of the month", "month", "day of the week")


def next_moment(expression: str, time_zone: str, after: float) -> float:
    """The first moment that an expression names after another.

    Days and changes of the clock are treated as in Debian's cron. Where neither field of the day is ``*``, a day fits
    one of them. A time that is skipped comes right after the change, and one that repeats comes once.

    Parameters
    ----------
    expression : str
        Minute, hour, day of the month, month and day of the week (0, 7 or sun: Sunday), as ``30 2 * * mon-fri``.
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
        If the expression or the zone is invalid, or no day ever fits.
    """
    start = datetime.fromtimestamp(after, _zone(time_zone))
    n_fields = len(expression.split())
    if n_fields != len(_FIELDS):
        raise _invalid(f"{counted(n_fields, 'field')} given; expected {', '.join(_FIELDS)}")
    try:
        return next(CronSim(expression, start)).timestamp()
    except CronSimError as error:
        raise _invalid(f"{expression!r:.80}: {error}") from None
    except StopIteration:
        raise _invalid(f"no date matches {expression!r:.80}") from None


def _invalid(detail: str) -> InvalidInput:
    return InvalidInput("Invalid schedule", [Item(detail, "/cron")])


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        raise InvalidInput(
            "Unknown time zone", [Item(f"there is no time zone named {name!r:.80}", "/time_zone")]
        ) from None
