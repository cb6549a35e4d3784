"""Objects of buckets of Google Cloud Storage from which datasets are imported and to which predictions are written."""

import contextlib
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.store.buckets import SHA256, StorageAway, StorageRefused

# of one request; a multiple of 256 KiB
_READ_BYTES = 8 << 20
_RETRY_SECONDS = 60.0


class GoogleBucket:
    """The objects of a bucket of Google Cloud Storage.

    Parameters
    ----------
    name : str

    Notes
    -----
    Every method raises StorageAway where the storage does not answer after the client's own retries.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def put(self, path: str, source: Path, sha256: str) -> None:
        """Upload a file; it appears whole, and its SHA-256 is kept with it."""
        from google.cloud.storage.retry import DEFAULT_RETRY

        with _answering():
            blob = self._bucket.blob(path)
            blob.metadata = {SHA256: sha256}
            blob.upload_from_filename(
                str(source),
                content_type="application/octet-stream",
                checksum="crc32c",
                retry=DEFAULT_RETRY.with_timeout(_RETRY_SECONDS),
            )

    def blocks(self, path: str, size: int) -> Iterator[bytes]:
        """The content of an object in blocks of ``size`` bytes; raises FileNotFoundError.

        An object that is replaced meanwhile raises StorageAway: its blocks are of one generation.
        """
        from google.cloud.storage.retry import DEFAULT_RETRY

        retry = DEFAULT_RETRY.with_timeout(_RETRY_SECONDS)
        with _answering():
            found = self._bucket.get_blob(path, retry=retry)
            if found is None:
                raise FileNotFoundError(f"{path} is not in the bucket")
            blob, n = self._bucket.blob(path, generation=found.generation), 0
            with blob.open("rb", chunk_size=_READ_BYTES, raw_download=True, retry=retry) as content:
                while block := content.read(size):
                    n += len(block)
                    yield block
        if n != found.size:  # the reader takes a range that there is not for the end
            raise StorageAway("The object was replaced while it was read: retry later.")

    @property
    def _bucket(self) -> Any:
        # A client's connections do not survive a fork, and workers fork.
        return _client(os.getpid()).bucket(self.name)


@lru_cache(maxsize=4)
def _client(_pid: int) -> Any:
    from google.cloud import storage

    return storage.Client()


@contextlib.contextmanager
def _answering() -> Iterator[None]:
    """Raise StorageAway for whatever fails."""
    from google.api_core.exceptions import GoogleAPICallError, GoogleAPIError
    from google.auth.exceptions import GoogleAuthError
    from google.cloud.storage.exceptions import DataCorruption, InvalidResponse
    from requests import RequestException

    try:
        yield
    except GoogleAPICallError as error:
        if error.code in (401, 403, 404):
            raise StorageRefused(
                f"The object storage answered {error.code}: check the bucket and its credentials."
            ) from error
        raise StorageAway(
            f"The object storage answered {error.code}: check the bucket and its credentials, or retry later."
        ) from error
    except GoogleAuthError as error:
        raise StorageAway(f"Google Cloud Storage needs valid credentials ({type(error).__name__}).") from error
    except (GoogleAPIError, DataCorruption, InvalidResponse, RequestException) as error:
        raise StorageAway(f"The object storage does not answer ({type(error).__name__}): retry later.") from error
