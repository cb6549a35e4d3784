"""Hierarchies as the API shows them."""

from typing import Literal

from pydantic import AwareDatetime, BaseModel, Field

HierarchyFormat = Literal["json", "csv", "lshtc", "rcv1", "paths"]


class Hierarchy(BaseModel):
    """A label tree; its top, `root`, is no label and counts nowhere."""

    id: str
    name: str
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
