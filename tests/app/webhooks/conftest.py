from collections.abc import Callable, Iterator

import pytest
from receiving import Receiver


@pytest.fixture
def receiver(configure: Callable[..., None]) -> Iterator[Receiver]:
    """A receiver that the settings allow."""
    configure(
        log_level="error", failed_keys_per_minute=0, webhook_hosts="localhost, .example.org", webhook_private=True
    )
    server = Receiver()
    yield server
    server.shutdown()
    server.server_close()
