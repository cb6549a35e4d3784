"""The formats of hierarchies by the endings of files."""

from app.hierarchies.schemas import HierarchyFormat

_FORMATS: dict[str, HierarchyFormat] = {
    "cat_hier.txt": "lshtc",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".hier": "rcv1",
    ".hier.orig": "rcv1",
    ".hier.expanded": "rcv1",
    ".paths": "paths",
    ".obo": "obo",
    ".claml": "claml",
    ".arff": "arff",
    ".mrc": "marc",
    ".marc": "marc",
    ".marcxml": "marc",
}
_SYNTAXES = {
    ".ttl": "turtle",
    ".rdf": "xml",
    ".jsonld": "json-ld",
    ".nt": "nt",
    ".n3": "n3",
    ".trig": "trig",
    ".nq": "nquads",
    ".trix": "trix",
    ".hext": "hext",
}
_COMPRESSED = (".gz", ".xz", ".zst")
ENDINGS = (*_FORMATS, *_SYNTAXES)


def format_by_name(name: str) -> tuple[HierarchyFormat | None, str | None]:
    """The format that a file's name says, None if it says none, and the RDF syntax of SKOS."""
    plain = name.lower()
    for ending in _COMPRESSED:
        plain = plain.removesuffix(ending)
    syntax = next((_SYNTAXES[ending] for ending in _SYNTAXES if plain.endswith(ending)), None)
    if syntax is not None:
        return "skos", syntax
    return next((format for ending, format in _FORMATS.items() if plain.endswith(ending)), None), None
