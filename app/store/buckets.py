"""Objects of a bucket that speaks S3: put, read, listed and deleted, with errors that say what to do."""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from app.config import NO_CLIENT
from app.errors import SettingsError, Unavailable
from app.store.files import MANIFEST
from app.store.storage_counts import COUNTS
from solvers.core.artefact_files import file_digest

# how long a request to the storage may wait for a connection and for the next bytes, and how often it is repeated;
# writing takes longer, as storage may answer only once it has put the parts of a large object together
_PATIENT = {"reads": (5.0, 60.0, 6), "writes": (5.0, 60.0, 6)}
_SOON = {"reads": (2.0, 4.0, 2), "writes": (2.0, 20.0, 2)}
_limits = _PATIENT
# of one folder at the same time
TRANSFERS = 8
# metadata of an object
SHA256 = "sha256"
_REFUSALS = ("NoSuchBucket", "AccessDenied", "403")


def answer_soon() -> None:
    """Let this process know after seconds, not minutes, that the storage does not answer: people wait for it."""
    global _limits
    _limits = _SOON


class StorageAway(Unavailable, OSError):
    """Object storage does not answer, or refuses the credentials."""


class StorageRefused(StorageAway):
    """The bucket does not exist, or the credentials lack the rights; waiting does not change that."""


class Bucket:
    """The objects below a prefix of a bucket.

    Parameters
    ----------
    address : str
        ``s3://bucket/prefix``.
    endpoint : str or None
        URL of a server other than AWS.

    Notes
    -----
    Every method raises StorageAway where the storage does not answer after the client's own retries.
    """

    def __init__(self, address: str, endpoint: str | None = None) -> None:
        parts = urlsplit(address)
        if parts.scheme != "s3" or not parts.netloc or parts.query or parts.fragment:
            raise SettingsError(f"expected s3://bucket/prefix, got {address!r:.200}")
        if find_spec("boto3") is None:
            raise SettingsError(NO_CLIENT)
        self.name, self._endpoint = parts.netloc, endpoint
        prefix = parts.path.strip("/")
        self._prefix = f"{prefix}/" if prefix else ""

    def put(self, path: str, source: Path, sha256: str) -> None:
        """Upload a file; it appears whole, and its SHA-256 is kept with it."""
        with _answering():
            self._client.upload_file(
                str(source), self.name, self._prefix + path, ExtraArgs={"Metadata": {SHA256: sha256}}
            )

    def put_bytes(self, path: str, content: bytes) -> None:
        """Upload a short content."""
        digest = hashlib.sha256(content).hexdigest()
        with _answering():
            self._client.put_object(Bucket=self.name, Key=self._prefix + path, Body=content, Metadata={SHA256: digest})

    def put_new(self, path: str, content: bytes) -> None:
        """Upload a short content; raises FileExistsError where there is an object of that path."""
        with _answering(path):
            self._client.put_object(Bucket=self.name, Key=self._prefix + path, Body=content, IfNoneMatch="*")

    def copy(self, source: str, path: str) -> None:
        """Copy an object within the storage; raises FileNotFoundError."""
        with _answering(source):
            self._client.copy({"Bucket": self.name, "Key": self._prefix + source}, self.name, self._prefix + path)

    def get(self, path: str, target: Path, sha256: str | None = None) -> None:
        """Download to a file and compare its SHA-256 with ``sha256``, or else with the one that was kept.

        Raises
        ------
        FileNotFoundError
            There is no such object.
        ValueError
            It is damaged.
        """
        if sha256 is None:
            sha256 = self._head(path)["Metadata"].get(SHA256)
        with _answering(path):
            self._reader.download_file(self.name, self._prefix + path, str(target))
        if sha256 is not None and file_digest(target) != sha256:
            raise ValueError(f"{path} is damaged")

    def get_bytes(self, path: str) -> bytes:
        """The content of an object; raises FileNotFoundError."""
        with _answering(path):
            found: bytes = self._reader.get_object(Bucket=self.name, Key=self._prefix + path)["Body"].read()
        return found

    def get_range(self, path: str, begin: int, end: int) -> bytes:
        """Bytes of an object from ``begin`` to before ``end`` or its end; raises FileNotFoundError."""
        with _answering(path):
            answer = self._reader.get_object(
                Bucket=self.name, Key=self._prefix + path, Range=f"bytes={begin}-{end - 1}"
            )
            found: bytes = answer["Body"].read()
        return found

    def blocks(self, path: str, size: int) -> Iterator[bytes]:
        """The content of an object in blocks of ``size`` bytes; raises FileNotFoundError."""
        with _answering(path):
            body = self._reader.get_object(Bucket=self.name, Key=self._prefix + path)["Body"]
            with contextlib.closing(body):
                yield from body.iter_chunks(size)

    def sha256(self, path: str) -> str | None:
        """The SHA-256 that was kept with an object; None where there is no such object."""
        try:
            found: str | None = self._head(path)["Metadata"].get(SHA256)
        except FileNotFoundError:
            return None
        return found

    def exists(self, path: str) -> bool:
        """Whether there is an object of that path."""
        try:
            self._head(path)
        except FileNotFoundError:
            return False
        return True

    def modified(self, path: str) -> float:
        """When the object was written, by the clock of the storage, in seconds since 1970; raises FileNotFoundError."""
        written: float = self._head(path)["LastModified"].timestamp()
        return written

    def listed(self, folder: str) -> Iterator[tuple[str, int, float]]:
        """Path, size in bytes and time of all objects below a folder."""
        with _answering():
            pages = self._reader.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self.name, Prefix=self._below(folder)):
                for each in page.get("Contents", ()):
                    path = each["Key"].removeprefix(self._prefix)
                    yield path, each["Size"], each["LastModified"].timestamp()

    def names(self, folder: str) -> list[str]:
        """Names of the files and folders directly in a folder, sorted."""
        found: set[str] = set()
        with _answering():
            pages = self._reader.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self.name, Prefix=self._below(folder), Delimiter="/"):
                found.update(each["Key"] for each in page.get("Contents", ()))
                found.update(each["Prefix"].rstrip("/") for each in page.get("CommonPrefixes", ()))
        return sorted(key.rpartition("/")[2] for key in found)

    def delete(self, path: str) -> None:
        """Remove an object, or all objects below a folder: manifests first, so that no folder looks complete."""
        keys = [found for found, _, _ in self.listed(path)]
        keys.sort(key=lambda key: not key.endswith(f"/{MANIFEST}"))
        with _answering():
            for key in (path, *keys):
                self._client.delete_object(Bucket=self.name, Key=self._prefix + key)

    def _below(self, folder: str) -> str:
        return f"{self._prefix}{folder}/" if folder else self._prefix

    def _head(self, path: str) -> dict[str, Any]:
        with _answering(path):
            found: dict[str, Any] = self._reader.head_object(Bucket=self.name, Key=self._prefix + path)
        return found

    @property
    def _client(self) -> Any:
        # A client's connections do not survive a fork, and workers fork.
        return _client(os.getpid(), self._endpoint, *_limits["writes"])

    @property
    def _reader(self) -> Any:
        return _client(os.getpid(), self._endpoint, *_limits["reads"])


@lru_cache(maxsize=8)
def _client(_pid: int, endpoint: str | None, connect_seconds: float, read_seconds: float, retries: int) -> Any:
    import boto3
    from botocore.config import Config

    config = Config(
        retries={"mode": "standard", "max_attempts": retries},
        connect_timeout=connect_seconds,
        read_timeout=read_seconds,
        max_pool_connections=4 * TRANSFERS,
        # what other servers than AWS understand
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    # by a session of its own: the default one is not made to be shared by threads
    client = boto3.session.Session().client("s3", endpoint_url=endpoint, config=config)
    COUNTS.watch(client)
    return client


@contextlib.contextmanager
def _answering(path: str = "") -> Iterator[None]:
    """Raise FileNotFoundError or FileExistsError where that is the answer, and StorageAway for whatever else fails."""
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, Boto3Error, ClientError) as error:
        # uploads of files wrap what the storage has answered
        answer = error if isinstance(error, ClientError) else error.__context__
        if not isinstance(answer, ClientError):
            raise StorageAway(f"The object storage does not answer ({type(error).__name__}): retry later.") from error
        code = str(answer.response.get("Error", {}).get("Code", ""))
        if code in ("404", "NoSuchKey", "NotFound"):
            raise FileNotFoundError(f"{path} is not in the bucket") from error
        if code in ("412", "PreconditionFailed", "ConditionalRequestConflict"):
            raise FileExistsError(f"{path} is in the bucket already") from error
        if code in _REFUSALS:
            raise StorageRefused(
                f"The object storage answered {code}: check the bucket and its credentials."
            ) from error
        raise StorageAway(
            f"The object storage answered {code}: check the bucket and its credentials, or retry later."
        ) from error
