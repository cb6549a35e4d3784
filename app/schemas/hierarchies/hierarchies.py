"""Hierarchies as the API shows them."""

from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from app.schemas.common.names import Name

HierarchyFormat = Literal["json", "csv", "lshtc", "rcv1", "paths", "skos", "obo", "claml"]

_LANGUAGE = r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*"


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
    tree: Literal["refuse", "first", "deepest"] = Field(
        default="refuse",
        description="Of a label with several parents: refuse the file, keep the first parent of the file, or the one "
        "with the longest way to the top.",
    )
    language: str = Field(
        default="und",
        max_length=35,
        pattern=f"^{_LANGUAGE}$",
        description="Of names for which the file tells none: a BCP 47 tag, as en or de-CH.",
    )
    languages: str | None = Field(
        default=None,
        max_length=400,
        pattern=f"^{_LANGUAGE}(,{_LANGUAGE})*$",
        description="Languages whose names are kept, with commas between; en keeps en-GB, too. Default: all.",
    )
    separator: str | None = Field(
        default=None,
        min_length=1,
        max_length=8,
        description="Of paths: what stands between their parts. Default: ' > ' where lines have it, else a dot.",
    )
    id_separator: str | None = Field(
        default=None,
        min_length=1,
        max_length=8,
        description="Of paths: what stands between an id and its path, as ' - ' or ' : '; none: there are no ids. "
        "Default: found out from the lines, where paths are separated by ' > '.",
    )
    comment: str | None = Field(
        default=None,
        min_length=1,
        max_length=8,
        description="Of paths: how a line begins that is a comment; none: no line is one. Default: # before the first "
        "path.",
    )
    parent_field: str | None = Field(
        default=None, min_length=1, max_length=200, description="Of csv: the column of parents."
    )
    id_field: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Of csv: the column of labels. Of json: the key of an object's label; its name is its name only.",
    )
    name_field: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Of csv: the column of names; columns with @ and a language behind that, as name@de, have them in "
        "that language. Of json: the key of names, by default name.",
    )
    notation_field: str | None = Field(
        default=None, min_length=1, max_length=200, description="Of csv and json: the column, or key, of notations."
    )
    delimiter: Literal["comma", "semicolon", "tab", "bar"] | None = Field(
        default=None, description="Of csv: what stands between cells. Default: found out from the header."
    )
    syntax: Literal["turtle", "xml", "json-ld", "nt", "n3", "trig", "nquads", "trix", "hext"] | None = Field(
        default=None, description="Of skos: how the RDF is written. Default: told by the file's first characters."
    )
    base: str | None = Field(
        default=None, min_length=1, max_length=1000, description="Of skos: the URI that relative ones are relative to."
    )
    label: Literal["uri", "notation"] = Field(
        default="uri", description="Of skos: what datasets call a concept by, its URI or its notation."
    )


class NewHierarchy(HierarchyOptions):
    """A hierarchy that is to be uploaded."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(description="Unique; how jobs and URLs call the hierarchy.")
    format: HierarchyFormat = Field(
        description="json: nested objects and lists; csv: columns of labels and their parents; lshtc: cat_hier.txt; "
        "rcv1: lines with parent: and child:; paths: one label a line, as comp.sys.mac or 12 - A > B; skos: a "
        "thesaurus in RDF; obo: an ontology; claml: a classification in XML."
    )


class DroppedParent(BaseModel):
    """A parent that the file gives a label, and that the tree had no room for."""

    label: str
    parent: str
    line: int = Field(description="Of the file, from 1.")


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
    languages: dict[str, int] = Field(
        default={}, description="For each language how many nodes have a name in it; und: the file does not tell which."
    )
    n_deprecated: int = Field(default=0, description="Nodes that the file calls deprecated.")
    n_retired: int = Field(
        default=0,
        description="Deprecated labels without a place in the tree; rows that have them are told, and mapped.",
    )
    n_dropped: int = Field(
        default=0, description="Parents that were dropped, as a tree has room for one of each label."
    )
    dropped: list[DroppedParent] = Field(
        default=[], description="The first hundred of them; each node lists its own as other_parents."
    )
    read_as: dict[str, str] = Field(default={}, description="What was found out about the file from itself.")
    created_at: AwareDatetime


class HierarchyNode(BaseModel):
    """One node."""

    number: int = Field(description="Level by level from 0; the children of a node follow one another.")
    name: str
    parent: str | None = Field(description="Absent below the top.")
    level: int = Field(description="1 below the top.")
    n_children: int
    n_rows: int | None = Field(
        default=None, description="With a dataset: how often its rows have the node, or one below it, as a label."
    )
    id: str | None = Field(default=None, description="Its URI or code, where datasets call it by something else.")
    notation: str | None = Field(default=None, description="The code by which people know it.")
    names: dict[str, str] = Field(default={}, description="The preferred name by language; und: none was told.")
    alternatives: dict[str, list[str]] = Field(default={}, description="Other names by language.")
    deprecated: bool = False
    replaced_by: list[str] = Field(default=[], description="Labels to be used in its place.")
    other_parents: list[str] = Field(default=[], description="What the file has above it beside the parent.")


class HierarchyNodes(BaseModel):
    """The nodes from ``offset`` on."""

    nodes: list[HierarchyNode]
    n_nodes: int = Field(description="Of the hierarchy, or of the children that were asked for.")


class RetiredLabel(BaseModel):
    """A deprecated label without a place in the tree."""

    name: str
    id: str | None = Field(default=None, description="Its URI or code, where datasets call it by something else.")
    notation: str | None = None
    names: dict[str, str] = Field(default={}, description="The preferred name by language.")
    alternatives: dict[str, list[str]] = {}
    replaced_by: list[str] = Field(default=[], description="Labels to be used in its place.")


class RetiredLabels(BaseModel):
    """Retired labels by name, from ``offset`` on."""

    labels: list[RetiredLabel]
    n_labels: int = Field(description="Of the hierarchy.")
