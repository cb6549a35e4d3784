"""The mixin of answers that show themselves: a short ``repr``, and HTML in notebooks."""

from typing import TypeVar

from pydantic import BaseModel

B = TypeVar("B", bound=BaseModel)


class Shown:
    """An answer with a short ``repr`` and an HTML view; :mod:`app.display.cards` says what both have."""

    def __repr__(self) -> str:
        from app.display.cards import card

        found = card(self)
        return f"<{type(self).__name__} {': '.join(filter(None, [found.title, ', '.join(found.brief)]))}>"

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        from app.display.cards import card
        from app.display.html import html

        return html(type(self).__name__, card(self))

    def _related(self, answer: type[B], path: str, **params: str | int) -> B | None:
        """A related answer of the service; None if it is not available, or if the answer has no connection."""
        transport = getattr(self, "_transport", None)
        found: B | None = None if transport is None else transport.glance(answer, path, **params)
        return found
