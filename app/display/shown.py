"""The mixin of answers that show themselves: a short ``repr``, and HTML in notebooks."""

from typing import TypeVar

from pydantic import BaseModel

B = TypeVar("B", bound=BaseModel)


def kind_of(answer: object) -> str:
    """The name of an answer's class, without what it is a page of."""
    return type(answer).__name__.partition("[")[0]


class Shown:
    """An answer with a short ``repr`` and an HTML view; :mod:`app.display.cards` says what both have."""

    def __repr__(self) -> str:
        from app.display.cards import ask_nothing, card

        found = card(self, ask_nothing)
        return f"<{kind_of(self)} {': '.join(filter(None, [found.title, ', '.join(found.brief)]))}>"

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        from app.display.cards import card
        from app.display.html import html

        return html(kind_of(self), card(self, self._related))

    def _related(self, answer: type[B], path: str, **params: str | int) -> B | None:
        """A related answer of the service; None if it is not available, or if the answer has no connection."""
        transport = getattr(self, "_transport", None)
        found: B | None = None if transport is None else transport.glance(answer, path, **params)
        return found
