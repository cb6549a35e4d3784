"""Lists, one page at a time."""

from typing import Generic, TypeVar

from pydantic import BaseModel, Field

T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    """Up to ``page_size`` items, newest first; ``next_page_token`` asks for the following ones."""

    items: list[T]
    next_page_token: str | None = Field(default=None, description="Opaque; absent on the last page.")
