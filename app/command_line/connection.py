"""The service that a command speaks to."""

from contextlib import ExitStack

from app.client import Client

_opened = ExitStack()


def connect() -> Client:
    """A client of the service that the environment names, until the command ends."""
    return _opened.enter_context(Client())


def disconnect() -> None:
    """Close the command's clients."""
    _opened.close()
