"""The same rows in several formats give the same arrays: of made data, and of the sets in POLYMARGIN_BENCH_DATA."""

import csv
import gzip
import io
import json
import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.datasets.schemas import ImportOptions
from app.formats.parsing import parse
from app.formats.table import Parsed

FOLDER = Path(os.environ.get("POLYMARGIN_BENCH_DATA", "not set"))
MADE = [
    {"label": str(k % 3), "split": ("train", "test")[k % 4 == 0], "x": k / 8 - 1, "y": 0.0 if k % 2 else 1e-3}
    for k in range(40)
]
TEXTS = [{"text": f'line {k}\n"quoted", ä {k % 5}', "label": f"1{k % 4}", "split": "train"} for k in range(20)]

SETS = [
    {"text": f"line {k}", "label": [f"t{j}" for j in range(5) if (k + 1) >> j & 1], "split": "test"} for k in range(9)
]
SPARSE = [
    {
        "indices": [k % 3, 3 + k % 4],
        "values": [k / 8 - 1.5, 0.1],
        "label": [f"g/{j}" for j in range(k % 3)],
        "split": "train",
    }
    for k in range(11)
]

Rows = list[dict[str, Any]]
BAR = "|"


def as_csv(rows: Rows, mark: str = ",") -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=mark)
    writer.writeheader()
    writer.writerows([row | {"label": BAR.join(row["label"])} for row in rows] if is_set(rows) else rows)
    return out.getvalue().encode()


def as_parquet(rows: Rows) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return bytes(sink.getvalue())


def as_arrow(rows: Rows) -> bytes:
    table, sink = pa.Table.from_pylist(rows), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def as_npz(rows: Rows) -> bytes:
    arrays: dict[str, Any] = {"split": [row["split"] for row in rows], "label": [row["label"] for row in rows]}
    if is_set(rows):
        names = sorted({label for row in rows for label in row["label"]})
        arrays["label"] = np.array([names.index(label) for row in rows for label in row["label"]])
        arrays |= {"label_names": names, "label_indptr": np.cumsum([0, *(len(row["label"]) for row in rows)])}
    if "text" in rows[0]:
        arrays["texts"] = [row["text"] for row in rows]
    elif "indices" in rows[0]:
        indices, values = ([each for row in rows for each in row[name]] for name in ("indices", "values"))
        indptr = np.cumsum([0, *(len(row["indices"]) for row in rows)])
        shape = (len(rows), 1 + max(indices))
        arrays |= {"indices": indices, "data": values, "indptr": indptr, "shape": shape}
    else:
        names = [name for name in rows[0] if name not in ("label", "split")]
        arrays |= {"X": [[row[name] for name in names] for row in rows], "feature_names": names}
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def as_svmlight(rows: Rows) -> bytes:
    lines = []
    for row in rows:
        label = ",".join(row["label"]) if is_set(rows) else row["label"]
        if "indices" in row:
            pairs = zip(row["indices"], row["values"], strict=True)
        else:
            pairs = enumerate(row[name] for name in row if name not in ("label", "split"))  # type: ignore[assignment]
        lines.append(" ".join([label, *(f"{index + 1}:{value!r}" for index, value in pairs if value)]))
    return "\n".join(lines).encode()


def is_set(rows: Rows) -> bool:
    return isinstance(rows[0]["label"], list)


WRITERS: dict[str, Callable[[Rows], bytes]] = {
    "jsonl": lambda rows: "\n".join(map(json.dumps, rows)).encode(),
    "csv": as_csv,
    "tsv": lambda rows: as_csv(rows, "\t"),
    "parquet": as_parquet,
    "arrow": as_arrow,
    "npz": as_npz,
    "svmlight": as_svmlight,
}


def targets(rows: Rows) -> list[str]:
    """The formats that such rows can be written in."""
    if "indices" in rows[0]:
        return ["jsonl", "parquet", "arrow", "npz", "svmlight"]
    if "text" not in rows[0]:
        return list(WRITERS)
    # numpy's arrays of texts give each the room of the longest
    wide = len(rows) * max(len(row["text"]) for row in rows) > 10_000_000
    return [format for format in WRITERS if format != "svmlight" and not (format == "npz" and wide)]


def compare(rows: Rows, tmp_path: Path) -> None:
    """Every format gives what the first gives."""
    numbers = tuple(name for name in rows[0] if name not in ("label", "split", "text", "indices", "values"))
    first: Parsed | None = None
    for format in targets(rows):
        path = tmp_path / f"rows.{format}"
        path.write_bytes(WRITERS[format](rows))
        options = ImportOptions(number_columns=numbers if format not in ("npz", "svmlight") else ())
        if is_set(rows) and format in ("csv", "tsv", "svmlight"):
            options = options.model_copy(update={"label_separator": "," if format == "svmlight" else BAR})
        found = parse(path, format, options)
        first = first or found
        same(found, first, but=("split", "feature_names") if format == "svmlight" else ())


def same(found: Parsed, first: Parsed, but: tuple[str, ...]) -> None:
    """The same labels and arrays, but those that a format has no place for."""
    arrays = {"kind", "labels", "feature_names", "y", "split", "label_indptr"} - set(but)
    for name in sorted(arrays):
        np.testing.assert_array_equal(getattr(found, name), getattr(first, name), name)
    assert (found.X is None) == (first.X is None)
    if found.X is not None and first.X is not None:
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(found.X, name), getattr(first.X, name))
    assert (found.texts is None) == (first.texts is None)
    if found.texts is not None and first.texts is not None:
        np.testing.assert_array_equal(found.texts.blob, first.texts.blob)
        np.testing.assert_array_equal(found.texts.offsets, first.texts.offsets)


@pytest.mark.parametrize("rows", [MADE, TEXTS, SETS, SPARSE], ids=["numbers", "texts", "sets", "sparse"])
def test_made_rows_are_the_same_in_every_format(rows: Rows, tmp_path: Path) -> None:
    compare(rows, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason="POLYMARGIN_BENCH_DATA names no folder of data sets")
@pytest.mark.parametrize("name", ["vowel", "segment", "satimage", "pendigits", "letter", "usps"])
def test_sets_of_numbers_are_the_same_in_every_format(name: str, tmp_path: Path) -> None:
    with gzip.open(FOLDER / f"{name}.csv.gz", "rt") as file:
        given = list(csv.DictReader(file))
    words = ("label", "split")
    compare([{at: cell if at in words else float(cell) for at, cell in row.items()} for row in given], tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason="POLYMARGIN_BENCH_DATA names no folder of data sets")
@pytest.mark.parametrize(
    ("name", "label"), [("20news", "label"), ("naics", "label"), ("debian", "section"), ("debian", "tags")]
)
def test_sets_of_texts_are_the_same_in_every_format(name: str, label: str, tmp_path: Path) -> None:
    with lzma.open(FOLDER / f"{name}.jsonl.xz", "rt") as file:
        given = [json.loads(line) for line in file]
    # which CSV cannot distinguish from a line end of its own
    texts = [row["text"].replace("\r", " ") for row in given]
    rows = [{"text": text, "label": row[label], "split": row["split"]} for text, row in zip(texts, given, strict=True)]
    compare(rows, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason="POLYMARGIN_BENCH_DATA names no folder of data sets")
@pytest.mark.parametrize("name", ["enron", "imclef07a", "cellcycle_fun", "seq_fun"])
def test_sets_of_labels_are_the_same_in_every_format_and_as_they_are(name: str, tmp_path: Path) -> None:
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as file:
        given = dict(file)
    offsets = given["indptr"], given["label_indptr"]
    bounds = zip(*(array[end] for array in offsets for end in (slice(-1), slice(1, None))), strict=True)
    names = given["names"].tolist()
    rows = [
        {
            "indices": given["indices"][begin:end].tolist(),
            "values": given["data"][begin:end].astype(float).tolist(),
            "label": [names[at] for at in given["labels"][first:last]],
            "split": {"valid": "validation"}.get(str(part), str(part)),
        }
        for (begin, end, first, last), part in zip(bounds, given["split"], strict=True)
    ]
    compare(rows, tmp_path)
