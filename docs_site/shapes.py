"""The tables of formats, and of file shapes: what is read of each of the files in tests/corpus."""

from pathlib import Path
from typing import Any

from app.datasets.formats import FORMATS
from app.datasets.formats.format import Reference
from app.datasets.schemas import ImportOptions
from app.descriptions import Shape
from app.formats.detection import declared_format
from app.formats.hierarchies.parsing import parse_hierarchy
from app.formats.parsing import parse
from app.formats.table import FormatError, Parsed
from app.hierarchies.formats import FORMATS as HIERARCHY_FORMATS
from app.hierarchies.schemas import HierarchyOptions
from app.plurals import counted
from docs_site.markdown import table

CORPUS = Path(__file__).parents[1] / "tests" / "corpus"


def formats() -> str:
    """A Markdown table of the dataset formats; those with the same rules share a row."""
    names: dict[Reference, list[str]] = {}
    for each in FORMATS.values():
        names.setdefault(each.reference, []).append(f"`{each.name}`")
    header = "format", "rows", "label", "split", "weight"
    rows = [(", ".join(of), each.rows, each.label, each.split, each.weight) for each, of in names.items()]
    return table(header, rows)


def hierarchy_formats() -> str:
    """A Markdown table of the formats of hierarchies."""
    rows = [(f"`{each.name}`", each.holds, each.top) for each in HIERARCHY_FORMATS.values()]
    return table(("format", "holds", "the top is"), rows)


def shapes() -> str:
    """Markdown tables of all shapes: what is read of each, and the options that it requires."""
    datasets = [(each.of, *dataset_cells(each)) for format in FORMATS.values() for each in format.shapes]
    trees = [(each.of, *hierarchy_cells(each)) for format in HIERARCHY_FORMATS.values() for each in format.shapes]
    header = "shape", "format", "required options", "read"
    return f"**Datasets**\n\n{table(header, datasets)}\n**Label trees and vocabularies**\n\n{table(header, trees)}"


def dataset_cells(shape: Shape) -> tuple[str, str, str]:
    """The format, the required options, and what is read of a file of rows; raises FormatError."""
    path, format, options = CORPUS / "datasets" / shape.file, _format(shape), ImportOptions(**shape.options)
    try:
        detected = declared_format(path, options) == format
    except FormatError:
        detected = False
    required = [*([] if detected else [f"`format={format}`"]), *_options(shape.options)]
    return f"`{format}`", ", ".join(required), _rows_read(parse(path, format, options))


def hierarchy_cells(shape: Shape) -> tuple[str, str, str]:
    """As :func:`dataset_cells`, of a label tree."""
    format = _format(shape)
    found = parse_hierarchy(CORPUS / "hierarchies" / shape.file, format, HierarchyOptions(**shape.options))
    parts = [counted(len(found.tree.names), "label"), counted(found.tree.depth, "level")]
    languages = sorted({language for label in found.labels.values() for language in label.names} - {"und"})
    if languages:
        parts.append(f"names ({', '.join(languages)})")
    elif any(label.names for label in found.labels.values()):
        parts.append("names")
    if found.dropped:
        parts.append(f"{counted(len(found.dropped), 'other parent')}")
    return f"`{format}`", ", ".join(_options(shape.options)), ", ".join(parts)


def _format(shape: Shape) -> str:
    return shape.file.rpartition(".")[2]


def _options(options: dict[str, Any]) -> list[str]:
    required = {
        name: ",".join(value) if isinstance(value, tuple) else str(value).lower() if value is True else value
        for name, value in options.items()
    }
    return [f"`{name}={value}`" for name, value in required.items()]


def _rows_read(parsed: Parsed) -> str:
    labels = counted(len(parsed.labels), "label")
    parts = [counted(parsed.n_rows, "row"), labels + (", sets of them" if parsed.label_indptr is not None else "")]
    if parsed.texts is not None:
        parts.append("texts")
    if parsed.X is not None:
        parts.append(counted(parsed.X.shape[1], "feature"))
    others = {"ids": parsed.ids, "split": parsed.split, "weights": parsed.weights}
    return ", ".join([*parts, *(name for name, value in others.items() if value is not None)])
