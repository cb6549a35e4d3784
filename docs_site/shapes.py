"""The table of file shapes: what is read of each of the files in tests/corpus, in the shapes that programs write."""

from pathlib import Path
from typing import Any, NamedTuple

from app.datasets.schemas import ImportOptions
from app.formats.detection import declared_format
from app.formats.hierarchies.registry import parse_hierarchy
from app.formats.registry import parse
from app.formats.table import FormatError, Parsed
from app.hierarchies.schemas import HierarchyOptions
from app.plurals import counted
from docs_site.markdown import table

CORPUS = Path(__file__).parents[1] / "tests" / "corpus"


class Shape(NamedTuple):
    """A file of tests/corpus, whose ending is its format, and the options that it needs."""

    of: str
    file: str
    options: dict[str, Any]


RAW_XMC = {
    "label_column": "target_ind",
    "text_columns": ("title", "content"),
    "id_column": "uid",
    "ignore_columns": ("target_rel",),
}
DATASETS = (
    Shape("LIBSVM, svmlight", "good.svmlight", {}),
    Shape("svmlight with `qid:`, as for ranking", "ranking.svmlight", {}),
    Shape("LSHTC: sets of labels", "lshtc.svmlight", {"label_separator": ","}),
    Shape("CSV of numbers", "good.csv", {}),
    Shape("CSV of texts with ids and a split", "texts.csv", {}),
    Shape("CSV with a byte order mark and CRLF, as Excel writes it", "bom_crlf.csv", {}),
    Shape("CSV with semicolons and decimal commas", "semicolons.csv", {"decimal": "comma"}),
    Shape("CSV that begins with `sep=;`", "sep.csv", {}),
    Shape("CSV in Windows-1252", "old.csv", {"encoding": "windows-1252"}),
    Shape("CSV with columns of all kinds", "table.csv", {"label_column": "reason", "infer_columns": True}),
    Shape("CSV with a column of 0 and 1 for each label", "marks.csv", {"label_columns": ("fruit", "sea")}),
    Shape("CSV with Python's lists in cells", "lists.csv", {"label_lists": "read"}),
    Shape("CSV with several labels in a cell", "separated.csv", {"label_separator": ";"}),
    Shape("CSV with JSON's lists in cells", "cells.csv", {"label_lists": "read"}),
    Shape("CSV with title, abstract and keywords", "titled.csv", {"text_columns": ("title", "abstract", "keywords")}),
    Shape("TSV", "good.tsv", {}),
    Shape("JSON lines of features", "good.jsonl", {}),
    Shape("JSON lines of texts with lists of labels", "texts.jsonl", {}),
    Shape("a JSON array", "array.jsonl", {}),
    Shape("Annif: texts and URIs, TSV", "good.annif", {}),
    Shape("Annif: texts and URIs, CSV", "documents.annif", {}),
    Shape("Annif: a folder of texts, zip", "good.archive", {}),
    Shape("Annif: a folder of texts, tar", "texts.archive", {}),
    Shape("fastText, one label a line", "good.fasttext", {}),
    Shape("fastText, several labels a line", "sets.fasttext", {}),
    Shape("Label Studio: JSON", "studio.annotations", {}),
    Shape("Label Studio: JSON with a taxonomy", "taxonomy.annotations", {}),
    Shape("Label Studio: JSON-MIN", "studio_min.annotations", {}),
    Shape("Label Studio: CSV", "studio.csv.annotations", {}),
    Shape("doccano: JSON lines", "doccano.annotations", {}),
    Shape("Argilla: JSON", "argilla.annotations", {}),
    Shape("Extreme Classification Repository", "good.xmc", {}),
    Shape("Extreme Classification Repository: raw texts", "raw_xmc.jsonl", RAW_XMC),
    Shape("Weka: dense ARFF", "weka.arff", {}),
    Shape("Weka: sparse ARFF", "sparse.arff", {}),
    Shape("Meka: ARFF with `-C`", "meka.arff", {}),
    Shape("Clus: ARFF with hierarchical classes", "clus.arff", {}),
    Shape("Mulan: ARFF and XML, zip", "mulan.archive", {}),
    Shape("MARC 21 in UTF-8", "good.marc", {}),
    Shape("MARC 21 in MARC-8", "marc8.marc", {}),
    Shape("MARCXML", "xml.marc", {}),
    Shape("MARCXML from OAI-PMH", "oai.marc", {}),
    Shape("Dublin Core from OAI-PMH (oai_dc)", "good.dublin_core", {}),
    Shape("Dublin Core in RDF/XML", "rdf.dublin_core", {}),
    Shape("Dublin Core: a plain list of records", "plain.dublin_core", {}),
    Shape("JSON-LD: a document with `@graph`", "good.jsonld", {}),
    Shape("JSON-LD of schema.org, JSON lines", "schema.jsonld", {}),
    Shape("JSON-LD without a context: an array, also of arrays", "expanded.jsonld", {}),
    Shape("Parquet", "good.parquet", {}),
    Shape("Parquet with lists of labels", "sets.parquet", {}),
    Shape("Arrow, Feather", "good.arrow", {}),
    Shape("Excel", "good.xlsx", {}),
    Shape("LibreOffice", "good.ods", {}),
    Shape("NumPy: arrays `X` and `y`", "good.npz", {}),
    Shape("PECOS: matrices of features and labels in one file", "pecos.npz", {}),
)
HIERARCHIES = (
    Shape("edges: child, parent", "good.csv", {}),
    Shape("Eurostat's tables: code, parent, description", "names.csv", {}),
    Shape("a list of codes and titles", "flat.csv", {}),
    Shape("Annif: vocabulary in TSV", "annif_uris.csv", {}),
    Shape("Annif: vocabulary in CSV", "annif_names.csv", {}),
    Shape("nested JSON", "good.json", {}),
    Shape("JSON with `name` and `children`, as D3 has it", "children.json", {}),
    Shape("dotted paths", "good.paths", {}),
    Shape("Google's product taxonomy", "products.paths", {}),
    Shape("Shopify's product taxonomy", "gid.paths", {}),
    Shape("LSHTC: `cat_hier.txt`", "good.lshtc", {}),
    Shape("RCV1: topics", "names.rcv1", {}),
    Shape("SKOS: Turtle", "good.skos", {}),
    Shape("SKOS: RDF/XML", "xml.skos", {}),
    Shape("SKOS: N-Triples", "triples.skos", {"syntax": "nt"}),
    Shape("OBO", "good.obo", {}),
    Shape("ICD: ClaML", "good.claml", {}),
    Shape("Clus: hierarchy in an ARFF header", "good.arff", {}),
    Shape("MARCXML: authority records", "good.marc", {}),
    Shape("MARC 21: authority records", "iso.marc", {}),
    Shape("MeSH: descriptors", "good.mesh", {"tree": "first"}),
    Shape("ISCO: codes that begin with their parents", "good.codes", {}),
    Shape("NACE, ISIC, CPA: sections and divisions", "sections.codes", {}),
    Shape("NAICS: ranges of sectors", "ranges.codes", {}),
    Shape("UNSPSC: pairs of digits", "pairs.codes", {}),
    Shape("CPV: digits", "digits.codes", {"name_field": "EN", "code_lengths": "2,3,4,5,6,7,8"}),
    Shape("GS1 GPC: columns for each level", "levels.codes", {}),
)


def shapes() -> str:
    """Markdown tables of all shapes: what is read of each, and the options that it requires."""
    datasets = [(each.of, *dataset_cells(each)) for each in DATASETS]
    trees = [(each.of, *hierarchy_cells(each)) for each in HIERARCHIES]
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
