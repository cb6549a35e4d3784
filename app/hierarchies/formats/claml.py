"""A classification in XML, such as ICD."""

from app.descriptions import Shape
from app.hierarchies.formats.format import Format

CLAML = Format(
    "claml",
    "ClaML: a classification in XML",
    "a classification in XML",
    "app.formats.hierarchies.claml:parse_claml",
    "the classes of a classification in XML, such as ICD; modifiers are counted, not expanded",
    "above classes without SuperClass",
    (Shape("ICD: ClaML", "good.claml"),),
    endings={".claml": None},
    mark=b"<ClaML",
)
