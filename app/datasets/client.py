"""Datasets of a remote service: upload, wait until ready, inspect, delete."""

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import PrivateAttr, TypeAdapter

from app.datasets.formats import EXTENSIONS, FORMATS
from app.datasets.schemas import (
    MOST_SAMPLE_BYTES,
    SAMPLE_BYTES,
    DatasetFormat,
    DatasetRows,
    DatasetVersion,
    ImportOptions,
    NewRows,
    ProposedColumns,
)
from app.datasets.schemas import Dataset as DatasetBody
from app.datasets.statistics_schemas import DatasetStatistics
from app.datasets.table_columns import require_columns
from app.jobs.client import Job, job_of
from app.jobs.plan_schemas import FeaturePreview
from app.jobs.schemas import Job as JobBody
from app.remote.errors import ClientError, ConflictError, JobFailedError, NotFoundError
from app.remote.files import is_address, is_large, send_address, send_file
from app.remote.progress import progress_bar
from app.remote.tables import Data, as_file, is_path, with_labels
from app.remote.transport import Resource, Transport
from app.schemas import Page, ProblemDocument

_VERSIONS = TypeAdapter(list[DatasetVersion])
COMPRESSED = (".gz", ".bz2", ".zst", ".xz")
_HEAD_BYTES = 1 << 18
_LABELS = frozenset({ImportOptions().label_column})


def _opened(path: Path) -> IO[bytes]:
    return path.open("rb")


def _unzstded(path: Path) -> Any:
    # it takes a while to load, which a client without such a file need not wait for
    from pyarrow import CompressedInputStream, OSFile

    return io.BufferedReader(CompressedInputStream(OSFile(str(path)), "zstd"))


_OPENERS: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open, ".zst": _unzstded}


class Dataset(DatasetBody):
    """A dataset as last fetched; ``refresh`` and ``wait`` update it."""

    _transport: Transport = PrivateAttr()

    def refresh(self) -> Self:
        body = self._transport.get(DatasetBody, f"/datasets/{self.id}")
        for name in DatasetBody.model_fields:
            setattr(self, name, getattr(body, name))
        return self

    def wait(self, timeout: float | None = None, progress: bool | None = None) -> Self:
        """Wait until the service has imported the file.

        Parameters
        ----------
        timeout : float or None
            Seconds to wait at most.
        progress : bool or None
            False: no progress bar; None: a bar in notebooks and terminals.

        Raises
        ------
        TimedOutError
            ``timeout`` seconds have passed; the import goes on.
        JobFailedError
            The file is not valid; ``errors`` lists the first faulty rows.
        """
        with progress_bar(progress, f"Importing {self.name}", None) as update:
            for _ in self._transport.looks(timeout, lambda: f"Dataset {self.name} is still importing"):
                if self.refresh().state != "importing":
                    break
                update(0, "")
        if self.state == "ready":
            return self
        if self.error is None:
            raise JobFailedError(f"The import of dataset {self.name} did not succeed")
        raise JobFailedError(f"The import of dataset {self.name} failed: {self.error.detail}", self.error.errors)


class Datasets(Resource):
    """The service's datasets."""

    def upload(
        self,
        data: Data,
        name: str | None = None,
        format: DatasetFormat | None = None,
        *,
        labels: str | Path | None = None,
        label_names: str | Path | None = None,
        progress: bool | None = None,
        **options: str | bool | Sequence[str] | None,
    ) -> Dataset:
        """Send a file, read from disk piece by piece, or a table.

        Parameters
        ----------
        data : path, address, DataFrame of pandas or polars, Arrow table, or list of dicts
            The service fetches an address itself: ``https://...``, ``s3://bucket/key`` or ``gs://bucket/key``, where
            its administrator allows it. Tables are sent as Parquet, without the index of pandas, and dicts as JSON
            lines.
        name : str, optional
            Name of the dataset; default: the file's name up to its first dot. Tables have no name of their own.
        format : name of a format, or None
            Default: detected from the file's extension, or by the service from its content.
        labels, label_names : path, optional
            Files with the labels of the rows and with the names of the labels, where the file of rows has features
            alone, as PECOS's ``X.trn.npz`` and ``Y.trn.npz``. They are sent together in an archive.
        progress : bool or None
            False: no progress bar; None: a bar in notebooks and terminals.
        **options
            The fields of app.datasets.schemas.ImportOptions, as label_column, text_columns, encoding; ``for_model``, a
            model that will predict these rows; and ``resume``, the id of an interrupted upload of this file, which
            the error names.

        Raises
        ------
        ClientError
            A table has no rows, no name, or no column that an option names; or labels are given for an address, or
            together with a format.
        UploadInterruptedError
            The upload of a large file was interrupted.
        InvalidInputError
            The format cannot be detected, or does not support one of the options.
        ConflictError
            The name is taken; for large files this is checked before anything is sent.
        """
        if name is None and not is_path(data):
            raise ClientError("A table has no name of its own: give the dataset one, as in upload(table, 'papers')")
        separate = labels is not None or label_names is not None
        if separate and (is_address(data) or format is not None):
            raise ClientError("labels and label_names need a file of rows on this machine, and no format")
        if is_address(data):
            address = PurePosixPath(urlsplit(str(data)).path)
            query = options | {"name": name or address.name.partition(".")[0], "format": format}
            body = send_address(self._transport, "/datasets", str(data), ImportOptions, query)
            return self._dataset(self._transport.parsed(DatasetBody, body))
        require_columns(data, options)
        label_files = [None if path is None else Path(path) for path in (labels, label_names)]
        with as_file(data) as rows, with_labels(rows, *label_files) as file:
            name = name or file.name.partition(".")[0]
            if options.get("resume") is None and is_large(file):
                self._require_free(name)
            query = options | {"name": name, "format": format or format_of(file)}
            body = send_file(self._transport, "/datasets", file, ImportOptions, query, progress)
        return self._dataset(self._transport.parsed(DatasetBody, body))

    def propose_columns(
        self, path: str | Path, format: DatasetFormat | None = None, **options: str | bool | Sequence[str] | None
    ) -> ProposedColumns:
        """Propose a role for each column of a table, from the beginning of its file; nothing is stored.

        Parameters
        ----------
        path : path
            A CSV, TSV or JSON lines file, compressed or not, or a Parquet file, an Arrow file or a workbook of at most
            4 MiB.
        format : name of a format, or None
            Default: that of the file's extension, or of the content.
        **options
            The fields of app.datasets.schemas.ImportOptions; columns that they name keep their roles.

        Raises
        ------
        ClientError
            The file is larger than 4 MiB and its format needs the whole file.
        InvalidInputError
            The file is no table.
        """
        file = Path(path)
        n_bytes = SAMPLE_BYTES
        known = format or EXTENSIONS.get(file.suffix.lower().removeprefix("."))
        if known is not None and not FORMATS[known].is_text:
            n_bytes = MOST_SAMPLE_BYTES
            if file.stat().st_size > n_bytes:
                detail = f"{file.name} is larger than {n_bytes >> 20} MiB: name its columns by options"
                raise ClientError(detail)
        with file.open("rb") as opened:
            content = opened.read(n_bytes)
        query = options | {"file": file.name[-255:], "format": format}
        headers = {"Content-Type": "application/octet-stream"}
        answer = self._transport.send("POST", "/datasets/columns", params=query, content=content, headers=headers)
        return self._transport.parsed(ProposedColumns, answer.content)

    def _require_free(self, name: str) -> None:
        try:
            found = self.get(name)
        except NotFoundError:
            return
        if found.state != "failed":
            detail = f"a dataset named {name!r} already exists: choose another name, or append to that dataset"
            what = {"type": "urn:polymargin:problem:conflict", "title": "The name is taken", "code": "conflict"}
            raise ConflictError(ProblemDocument(status=409, detail=detail, **what))

    def append(
        self,
        dataset: str,
        data: Data,
        part: Literal["train", "test", "validation"] | None = None,
        format: DatasetFormat | None = None,
        *,
        progress: bool | None = None,
        **options: str | bool | Sequence[str] | None,
    ) -> Job:
        """Append the rows of a file or table; the job makes the dataset's next version.

        Parameters
        ----------
        dataset : str
            Id or name.
        data : path, address, DataFrame of pandas or polars, Arrow table, or list of dicts
            As for ``upload``.
        part : {"train", "test", "validation"} or None
            Part of the rows without a split of their own; default: train, if the dataset has parts.
        format, progress, **options
            As for ``upload``; options that are not given are those of the dataset's first file.

        Raises
        ------
        ConflictError
            The dataset is not ready, or other rows are being appended.
        """
        route = f"/datasets/{dataset}/rows"
        if is_address(data):
            body = send_address(self._transport, route, str(data), NewRows, options | {"part": part, "format": format})
        else:
            with as_file(data) as file:
                query = options | {"part": part, "format": format or format_of(file)}
                body = send_file(self._transport, route, file, NewRows, query, progress)
        return job_of(self._transport.parsed(JobBody, body), self._transport)

    def preview(
        self,
        dataset: str,
        row: int = 0,
        text: Mapping[str, Any] | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> FeaturePreview:
        """Preview the features of one row under a job's recipe, fitted on a sample of the training rows.

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
        labels: Mapping[int, str | Sequence[str]] | Mapping[str, str | Sequence[str]],
        before: Mapping[int, str | Sequence[str]] | Mapping[str, str | Sequence[str]] | None = None,
        by: Literal["row", "id", "text"] = "row",
    ) -> Job:
        """Correct the labels of rows; the job makes the dataset's next version.

        After ``wait``, the ``result.warning`` of the job names labels that the dataset did not have before.

        Parameters
        ----------
        dataset : str
            Id or name.
        labels : mapping of int or str to str or sequence of str
            Labels by row number, id or text: one label, or all labels.
        before : mapping of int or str to str or sequence of str, optional
            The labels being corrected; if a row has other labels by now, the whole request is rejected.
        by : "row", "id" or "text"
            What the keys are. All rows with an id or a text are corrected.

        Raises
        ------
        InvalidInputError
            A row does not exist, or cannot have these labels.
        ConflictError
            The dataset is not ready, its next version is being made, or the rows already have these labels.
        """
        given: dict[int | str, dict[str, object]] = {
            row: {by: row, "labels": _listed(reported)} for row, reported in labels.items()
        }
        for row, reported in (before or {}).items():
            given[row]["before"] = _listed(reported)
        return self.correct_rows(dataset, list(given.values()))

    def delete_rows(self, dataset: str, rows: Iterable[int | str], by: Literal["row", "id", "text"] = "row") -> Job:
        """Delete rows by number, id or text; the job makes the next version, and earlier versions keep the rows.

        Raises
        ------
        InvalidInputError
            A row does not exist, or none would be left.
        ConflictError
            The dataset is not ready, or its next version is being made.
        """
        return self.correct_rows(dataset, [{by: row, "delete": True} for row in rows])

    def correct_rows(self, dataset: str, corrections: Sequence[Mapping[str, object]]) -> Job:
        """As :meth:`correct`, by bodies with ``row``, ``id`` or ``text``, and ``labels`` or ``delete``."""
        body = {"corrections": list(corrections)}
        return job_of(self._transport.post(JobBody, f"/datasets/{dataset}/corrections", body), self._transport)

    def versions(self, dataset: str) -> Sequence[DatasetVersion]:
        """List all versions of a dataset, newest first."""
        answer = self._transport.send("GET", f"/datasets/{dataset}/versions")
        return _VERSIONS.validate_json(answer.content)

    def example(self) -> Dataset:
        """The example dataset ``docstrings``, created with its hierarchy if missing."""
        return self._dataset(self._transport.post(DatasetBody, "/datasets/example"))

    def get(self, dataset: str) -> Dataset:
        return self._dataset(self._transport.get(DatasetBody, f"/datasets/{dataset}"))

    def list(self, page_size: int = 50, page_token: str | None = None, old_failures: bool = False) -> Page[DatasetBody]:
        """One page, newest first; ``old_failures`` includes imports that failed more than a day ago."""
        query = {"page_size": page_size, "page_token": page_token, "old_failures": old_failures or None}
        return self._transport.get(Page[DatasetBody], "/datasets", **query)

    def statistics(self, dataset: str, offset: int = 0, limit: int = 1000) -> DatasetStatistics:
        """Statistics of a dataset, with a page of its classes."""
        return self._transport.get(DatasetStatistics, f"/datasets/{dataset}/statistics", offset=offset, limit=limit)

    def rows(self, dataset: str, offset: int = 0, limit: int = 20, whole: bool = False) -> DatasetRows:
        """Rows of a dataset starting at ``offset``, shortened, or up to 20 ``whole`` rows."""
        path = f"/datasets/{dataset}/rows"
        return self._transport.get(DatasetRows, path, offset=offset, limit=limit, whole=whole or None)

    def error_report(self, dataset: str) -> bytes:
        """Faulty rows of a failed import as CSV: line, column, fault; at most 100,000."""
        return self._transport.send("GET", f"/datasets/{dataset}/errors").content

    def delete(self, dataset: str, force: bool = False) -> None:
        """Delete a dataset; ``force`` is required if a model was trained on it."""
        self._transport.send("DELETE", f"/datasets/{dataset}", params={"force": "true"} if force else None)

    def _dataset(self, body: DatasetBody) -> Dataset:
        dataset = Dataset.model_validate(body.model_dump())
        dataset._transport = self._transport
        return dataset


def format_of(path: Path) -> DatasetFormat | None:
    """The format of a file by its extension; None if the content must decide, as for Annif's .tsv corpora."""
    found = EXTENSIONS.get(path.with_name(plain_name(path)).suffix.lower().removeprefix("."))
    if found is None or FORMATS[found].columns is None or not FORMATS[found].is_text:
        return found
    lines = [line for line in beginning(path).decode("utf-8-sig", "replace").splitlines() if line.strip()]
    others = (each.recognises for each in FORMATS.values() if each.columns is None and each.recognises is not None)
    return None if lines and any(recognises(lines, _LABELS) for recognises in others) else found


def beginning(path: Path) -> bytes:
    """The beginning of a file, decompressed; empty if the file is damaged, which the service then reports."""
    try:
        with _OPENERS.get(path.suffix.lower(), _opened)(path) as file:
            return bytes(file.read(_HEAD_BYTES))
    except (EOFError, OSError, lzma.LZMAError, zlib.error):
        return b""


def plain_name(path: Path) -> str:
    """A file's name without its compression extension."""
    return path.stem if path.suffix.lower() in COMPRESSED else path.name


def name_of(path: Path) -> str:
    """The default name of a file's dataset or hierarchy: the file's name, reduced to valid characters."""
    return re.sub(r"^[^A-Za-z0-9]+", "", re.sub(r"[^A-Za-z0-9._-]+", "-", Path(plain_name(path)).stem))[:128]


def _listed(labels: str | Sequence[str]) -> list[str]:
    return [labels] if isinstance(labels, str) else list(labels)
