"""MeSH's descriptors in XML."""

from app.descriptions import Shape
from app.hierarchies.formats.format import Format

MESH = Format(
    "mesh",
    "MeSH: descriptors in XML",
    "MeSH's descriptors in XML",
    "app.formats.hierarchies.mesh:parse_mesh",
    "MeSH's descriptors in XML, arranged by tree number; entry terms are other names",
    "above tree numbers of one part",
    (Shape("MeSH: descriptors", "good.mesh", {"tree": "first"}),),
    mark=b"<DescriptorRecordSet",
    is_streamed=True,
)
