"""What takes room on a remote service's disk; only an administrator's key may ask."""

from app.models.schemas import Storage as StorageReport
from app.remote.transport import Transport


class Storage:
    """The service's files."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def report(self) -> StorageReport:
        """What the next collection removes."""
        return self._transport.get(StorageReport, "/storage")

    def collect(self, deleted: bool = False) -> StorageReport:
        """Remove it now; with ``deleted`` also versions that could still be restored."""
        return self._transport.post(StorageReport, "/storage/collect", deleted=deleted or None)
