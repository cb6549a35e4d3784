"""Datasets of a remote service: upload, wait until ready, look inside, delete."""

import gzip
import io
import lzma
import re
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal, Self

from pydantic import PrivateAttr, TypeAdapter

from app.remote.errors import ConflictError, JobFailedError, NotFoundError, TimedOutError
from app.remote.files import is_large, send_file
from app.remote.jobs import POLL_SECONDS, Job, job_of
from app.remote.transport import Transport
from app.schemas.common.pages import Page
from app.schemas.common.problems import ProblemDocument
from app.schemas.datasets.datasets import Dataset as DatasetBody
from app.schemas.datasets.datasets import DatasetFormat, DatasetRows, DatasetVersion, ImportOptions, NewRows
from app.schemas.datasets.statistics import DatasetStatistics
from app.schemas.jobs.jobs import Job as JobBody
from app.schemas.jobs.previews import FeaturePreview

FORMATS: dict[str, DatasetFormat] = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".npz": "npz",
}
_VERSIONS = TypeAdapter(list[DatasetVersion])
COMPRESSED = (".gz", ".zst", ".xz")
_LONGEST_LINE = 1 << 20


def _opened(path: Path) -> IO[bytes]:
    return path.open("rb")


def _unzstded(path: Path) -> Any:
    # it takes a while to load, which a client without such a file need not wait for
    from pyarrow import CompressedInputStream, OSFile

    return io.BufferedReader(CompressedInputStream(OSFile(str(path)), "zstd"))


_OPENERS: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".xz": lzma.open, ".zst": _unzstded}


class Dataset(DatasetBody):
    """A dataset as it was when last asked for; ``refresh`` and ``wait`` bring it up to date."""

    _transport: Transport = PrivateAttr()

    def refresh(self) -> Self:
        body = self._transport.get(DatasetBody, f"/datasets/{self.id}")
        for name in DatasetBody.model_fields:
            setattr(self, name, getattr(body, name))
        return self

    def wait(self, timeout: float | None = None) -> Self:
        """Wait until the service has imported the file.

        Raises
        ------
        TimedOutError
            ``timeout`` seconds have passed; the import goes on.
        JobFailedError
            The file is not valid; ``errors`` names the first faulty rows.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.refresh().state == "importing":
            if deadline is not None and time.monotonic() >= deadline:
                raise TimedOutError(f"Dataset {self.name} is still importing after {timeout:g} seconds")
            self._transport.sleep(POLL_SECONDS)
        if self.state == "ready":
            return self
        if self.error is None:
            raise JobFailedError(f"The import of dataset {self.name} did not succeed")
        raise JobFailedError(f"The import of dataset {self.name} failed: {self.error.detail}", self.error.errors)


class Datasets:
    """The service's datasets."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def upload(
        self,
        path: str | Path,
        name: str,
        format: DatasetFormat | None = None,
        **options: str | bool | Sequence[str] | None,
    ) -> Dataset:
        """Send a file, read from disk piece by piece.

        Parameters
        ----------
        path : str or Path
        name : str
            Under which jobs will find it.
        format : name of a format, or None
            None: told by the file's ending, or else by the service from its content.
        **options
            The fields of app.schemas.datasets.datasets.ImportOptions, as label_column, text_columns, encoding; and
            ``resume``, the id of an upload of this file that broke off, as the error told it.

        Raises
        ------
        UploadInterruptedError
            A large file's upload broke off.
        InvalidInputError
            Neither ending nor content tells the format, or it does not have what the options say of it.
        ConflictError
            The name is taken, of which a large file is told before anything is sent.
        """
        file = Path(path)
        if options.get("resume") is None and is_large(file):
            self._require_free(name)
        chosen = format or format_of(file)
        body = send_file(self._transport, "/datasets", file, ImportOptions, options | {"name": name, "format": chosen})
        return self._dataset(DatasetBody.model_validate_json(body))

    def _require_free(self, name: str) -> None:
        try:
            found = self.get(name)
        except NotFoundError:
            return
        if found.state != "failed":
            detail = f"a dataset is called {name!r} already: give this one another name, or append to that one"
            what = {"type": "urn:polymargin:problem:conflict", "title": "The name is taken", "code": "conflict"}
            raise ConflictError(ProblemDocument(status=409, detail=detail, **what))

    def append(
        self,
        dataset: str,
        path: str | Path,
        part: Literal["train", "test", "validation"] | None = None,
        format: DatasetFormat | None = None,
        **options: str | bool | Sequence[str] | None,
    ) -> Job:
        """Append a file's rows; the job makes the dataset's next version.

        Parameters
        ----------
        dataset : str
            Id or name.
        path : str or Path
        part : {"train", "test", "validation"} or None
            Where rows without a split of their own belong; None: to training, if the dataset has parts.
        format, **options
            As for ``upload``; what is not given is what was said of the dataset's first file.

        Raises
        ------
        ConflictError
            The dataset is not ready, or other rows are being appended.
        """
        file = Path(path)
        query = options | {"part": part, "format": format or format_of(file)}
        body = send_file(self._transport, f"/datasets/{dataset}/rows", file, NewRows, query)
        return job_of(JobBody.model_validate_json(body), self._transport)

    def preview(
        self,
        dataset: str,
        row: int = 0,
        text: Mapping[str, Any] | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> FeaturePreview:
        """The features that a job's recipe makes of one row, fitted on a sample of the training rows.

        Parameters
        ----------
        dataset : str
            Id or name.
        row : int
            Counted from 0.
        text, columns : mapping, optional
            As in a job's request.
        """
        body: dict[str, Any] = {"row": row}
        body |= {name: recipe for name, recipe in (("text", text), ("columns", columns)) if recipe is not None}
        return self._transport.post(FeaturePreview, f"/datasets/{dataset}/preview", body)

    def correct(
        self,
        dataset: str,
        labels: Mapping[int, str | Sequence[str]],
        before: Mapping[int, str | Sequence[str]] | None = None,
    ) -> Job:
        """Give rows the labels that are right; the job makes the dataset's next version.

        Parameters
        ----------
        dataset : str
            Id or name.
        labels : mapping of int to str or sequence of str
            By the number of the row: its label, or all its labels.
        before : mapping of int to str or sequence of str, optional
            What is corrected: where such a row has other labels by now, all is refused.

        Raises
        ------
        InvalidInputError
            There is no such row, or it could not have these labels.
        ConflictError
            The dataset is not ready, its next version is being made, or the rows have these labels already.
        """
        given: dict[int, dict[str, object]] = {
            row: {"row": row, "labels": _listed(reported)} for row, reported in labels.items()
        }
        for row, reported in (before or {}).items():
            given[row]["before"] = _listed(reported)
        body = {"corrections": list(given.values())}
        return job_of(self._transport.post(JobBody, f"/datasets/{dataset}/corrections", body), self._transport)

    def versions(self, dataset: str) -> Sequence[DatasetVersion]:
        """All versions of a dataset, newest first."""
        answer = self._transport.send("GET", f"/datasets/{dataset}/versions")
        return _VERSIONS.validate_json(answer.content)

    def example(self) -> Dataset:
        """The example to begin with, ``docstrings``: made where it is not there, and beside it a hierarchy."""
        return self._dataset(self._transport.post(DatasetBody, "/datasets/example"))

    def get(self, dataset: str) -> Dataset:
        return self._dataset(self._transport.get(DatasetBody, f"/datasets/{dataset}"))

    def list(self, page_size: int = 50, page_token: str | None = None) -> Page[DatasetBody]:
        """One page, newest first."""
        return self._transport.get(Page[DatasetBody], "/datasets", page_size=page_size, page_token=page_token)

    def statistics(self, dataset: str, offset: int = 0, limit: int = 1000) -> DatasetStatistics:
        """Counts over a dataset, with a page of its classes."""
        return self._transport.get(DatasetStatistics, f"/datasets/{dataset}/statistics", offset=offset, limit=limit)

    def rows(self, dataset: str, offset: int = 0, limit: int = 20, whole: bool = False) -> DatasetRows:
        """Rows of a dataset from ``offset`` on, shortened for reading; up to 20 of them ``whole``."""
        path = f"/datasets/{dataset}/rows"
        return self._transport.get(DatasetRows, path, offset=offset, limit=limit, whole=whole or None)

    def error_report(self, dataset: str) -> bytes:
        """Line, column and fault of the rows that kept a dataset from being imported, as CSV; at most 100,000."""
        return self._transport.send("GET", f"/datasets/{dataset}/errors").content

    def delete(self, dataset: str, force: bool = False) -> None:
        """Delete a dataset; one that a model was trained on only with ``force``."""
        self._transport.send("DELETE", f"/datasets/{dataset}", params={"force": "true"} if force else None)

    def _dataset(self, body: DatasetBody) -> Dataset:
        dataset = Dataset.model_validate(body.model_dump())
        dataset._transport = self._transport
        return dataset


def format_of(path: Path) -> DatasetFormat | None:
    """The format that a file's ending tells; None where its content is to tell, as Annif's corpora end in .tsv, too."""
    found = FORMATS.get(path.with_name(plain_name(path)).suffix.lower())
    return None if found == "tsv" and b"\t<" in _first_line(path) else found


def _first_line(path: Path) -> bytes:
    """The beginning of a file, unpacked; empty where it is damaged, which the service then says."""
    try:
        with _OPENERS.get(path.suffix.lower(), _opened)(path) as file:
            return bytes(file.readline(_LONGEST_LINE))
    except (EOFError, OSError, lzma.LZMAError, zlib.error):
        return b""


def plain_name(path: Path) -> str:
    """A file's name without the ending that says how it is compressed."""
    return path.stem if path.suffix.lower() in COMPRESSED else path.name


def name_of(path: Path) -> str:
    """What a file's dataset or hierarchy is called where nothing is said: the file's name, as names may be written."""
    return re.sub(r"^[^A-Za-z0-9]+", "", re.sub(r"[^A-Za-z0-9._-]+", "-", Path(plain_name(path)).stem))[:128]


def _listed(labels: str | Sequence[str]) -> list[str]:
    return [labels] if isinstance(labels, str) else list(labels)
