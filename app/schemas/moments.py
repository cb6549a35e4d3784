"""Times that clients write."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BeforeValidator


def _written(value: Any) -> Any:
    # A number would be taken for seconds since 1970, and bodies are checked strictly: JSON has no dates but as text.
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("a date and time with its zone was expected, as 2030-01-31T12:00:00Z") from None


Moment = Annotated[AwareDatetime, BeforeValidator(_written)]
