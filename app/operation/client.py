"""What takes room on a remote service's disk; only an administrator's key may ask."""

from app.models.schemas import Storage as StorageReport
from app.remote.transport import Resource


class Storage(Resource):
    """The service's files."""

    def report(self) -> StorageReport:
        """What the next collection removes."""
        return self._transport.get(StorageReport, "/storage")

    def collect(self, deleted: bool = False) -> StorageReport:
        """Remove it now; with ``deleted`` also versions that could still be restored."""
        return self._transport.post(StorageReport, "/storage/collect", deleted=deleted or None)
