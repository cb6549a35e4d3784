"""The terms of an ontology."""

from app.descriptions import Shape
from app.hierarchies.formats.format import Format

OBO = Format(
    "obo",
    "OBO: an ontology",
    "an ontology",
    "app.formats.hierarchies.obo:parse_obo",
    "the terms of an ontology with their `is_a` relationships; other relationships are ignored",
    "above terms without `is_a`",
    (Shape("OBO", "good.obo"),),
    endings={".obo": None},
)
