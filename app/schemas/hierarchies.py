"""Hierarchies as the API shows them."""

from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from app.schemas.names import Name

HierarchyFormat = Literal["json", "csv", "lshtc", "rcv1", "paths"]


class HierarchyOptions(BaseModel):
    """What is said of a hierarchy's file besides its format; each parser uses what its format knows."""

    model_config = ConfigDict(frozen=True)

    root: str | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="What the file calls the top of the tree. By default root in json and csv, the child of None in "
        "rcv1, and in lshtc the only node without a parent.",
    )
    separator: str = Field(
        default=".", min_length=1, max_length=8, description="Of paths: what stands between their parts."
    )


class NewHierarchy(HierarchyOptions):
    """A hierarchy that is to be uploaded."""

    name: Name = Field(description="Unique; how jobs and URLs call the hierarchy.")
    format: HierarchyFormat = Field(
        description="json: nested objects and lists; csv: columns parent and child; lshtc: cat_hier.txt; rcv1: lines "
        "with parent: and child:; paths: one label a line, as comp.sys.mac."
    )


class Hierarchy(BaseModel):
    """A label tree; its top, `root`, is no label and counts nowhere."""

    id: str
    name: str
    owner: str | None = Field(
        default=None, description="Name of the key that made it; it and administrators may delete it."
    )
    format: HierarchyFormat = Field(description="Of the file that it came from.")
    sha256: str = Field(
        description="Of its nodes in order, whatever the format: for each a line with the number of its "
        "parent (-1: the top), a space and its name."
    )
    n_nodes: int
    n_leaves: int
    depth: int = Field(description="Levels below the top.")
    levels: list[int] = Field(description="Nodes of each level, those below the top first.")
    created_at: AwareDatetime


class HierarchyNode(BaseModel):
    """One node."""

    number: int = Field(description="Level by level from 0; the children of a node follow one another.")
    name: str
    parent: str | None = Field(description="Absent below the top.")
    level: int = Field(description="1 below the top.")
    n_children: int


class HierarchyNodes(BaseModel):
    """The nodes from ``offset`` on."""

    nodes: list[HierarchyNode]
    n_nodes: int = Field(description="Of the hierarchy, or of the children that were asked for.")
