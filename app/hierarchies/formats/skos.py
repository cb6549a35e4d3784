"""A thesaurus in RDF."""

from app.descriptions import Shape
from app.hierarchies.formats.format import Format

SKOS = Format(
    "skos",
    "SKOS: a thesaurus in RDF",
    "a thesaurus in RDF",
    "app.formats.hierarchies.skos:parse_skos",
    "the concepts of a thesaurus, in Turtle, RDF/XML, JSON-LD, N-Triples, N3, TriG, N-Quads, TriX or HexTuples",
    "above concepts without a broader one",
    (
        Shape("SKOS: Turtle", "good.skos"),
        Shape("SKOS: RDF/XML", "xml.skos"),
        Shape("SKOS: N-Triples", "triples.skos", {"syntax": "nt"}),
    ),
    endings={
        ".ttl": "turtle",
        ".rdf": "xml",
        ".jsonld": "json-ld",
        ".nt": "nt",
        ".n3": "n3",
        ".trig": "trig",
        ".nq": "nquads",
    },
    options=frozenset({"syntax", "base", "label"}),
    mark=b"/skos/core#",
    has_escapes=True,
    excludes=True,
)
