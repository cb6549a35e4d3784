"""Times that clients write."""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BeforeValidator


def _written(value: Any) -> Any:
    # A number would be taken for seconds since 1970, and bodies are checked strictly: JSON has no dates but as text.
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("a date and time with its zone was expected, as 2030-01-31T12:00:00Z") from None


def _kept(value: datetime) -> datetime:
    # It is kept as seconds, and shown in UTC: there the last day may be in the year 10000, which is none.
    try:
        datetime.fromtimestamp(value.timestamp(), UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError("a time in the years 1 to 9999 of UTC was expected") from None
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_written), AfterValidator(_kept)]
