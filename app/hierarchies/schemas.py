"""Schemas of hierarchies and their editions."""

from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from app.display.shown import Shown
from app.hierarchies.formats import FORMATS
from app.schemas import Name

# the formats that app/hierarchies/formats describes
if TYPE_CHECKING:
    HierarchyFormat: TypeAlias = str
else:
    HierarchyFormat = Literal[tuple(FORMATS)]

_LANGUAGE = r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*"


class HierarchyOptions(BaseModel):
    """How to read a hierarchy's file; each parser uses the options that its format supports."""

    model_config = ConfigDict(frozen=True)

    root: str | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="Name of the top of the tree in the file. Default: root in json and csv, the child of None in "
        "rcv1, and the only node without a parent in lshtc.",
    )
    tree: Literal["refuse", "first", "deepest", "graph"] = Field(
        default="refuse",
        description="How to handle a label with several parents: refuse rejects the file, first keeps the first "
        "parent in the file, deepest keeps the parent farthest from the top, graph keeps all. Only datasets with sets "
        "of labels, and methods that support label graphs, can be trained on a graph.",
    )
    exclude: str | None = Field(
        default=None,
        min_length=1,
        max_length=8000,
        description="Labels to leave out for good, separated by commas or, if some contain commas, by line breaks. "
        "deprecated excludes all deprecated labels; type=URI, scheme=URI and collection=URI exclude all concepts of "
        "them in skos. Labels below an excluded one move up. Excluded labels are retired. An entry that the file does "
        "not have is an error, except for deprecated.",
    )
    language: str = Field(
        default="und",
        max_length=35,
        pattern=f"^{_LANGUAGE}$",
        description="Language of names that have none in the file: a BCP 47 tag, for example en or de-CH.",
    )
    languages: str | None = Field(
        default=None,
        max_length=400,
        pattern=f"^{_LANGUAGE}(,{_LANGUAGE})*$",
        description="Comma-separated languages whose names are kept; en also keeps en-GB. Default: all.",
    )
    separator: str | None = Field(
        default=None,
        min_length=1,
        max_length=8,
        description="Format paths: separator of the parts. Default: ' > ' if lines contain it, else a dot.",
    )
    id_separator: str | None = Field(
        default=None,
        min_length=1,
        max_length=8,
        description="Format paths: separator between an id and its path, such as ' - ' or ' : '; none means no ids. "
        "Default: detected from the lines if paths are separated by ' > '.",
    )
    comment: str | None = Field(
        default=None,
        min_length=1,
        max_length=8,
        description="Format paths: prefix of comment lines; none means no comments. Default: # before the first path.",
    )
    parent_field: str | None = Field(
        default=None, min_length=1, max_length=200, description="Format csv: column of parents."
    )
    id_field: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Formats csv and codes: column of labels. Format json: key of labels in objects; names are then "
        "just names. Format marc: field of the label, such as 035$a; default: the control number.",
    )
    name_field: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Formats csv and codes: column of names; in csv, columns such as name@de hold names in that "
        "language. Format json: key of names, default name.",
    )
    notation_field: str | None = Field(
        default=None, min_length=1, max_length=200, description="Formats csv and json: column or key of notations."
    )
    delimiter: Literal["comma", "semicolon", "tab", "bar"] | None = Field(
        default=None, description="Formats csv and codes: delimiter between cells. Default: detected from the header."
    )
    sheet: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Formats csv and codes: sheet of a workbook (.xlsx, .ods). Default: the first.",
    )
    code_lengths: str | None = Field(
        default=None,
        max_length=100,
        pattern=r"^[0-9]{1,3}(,[0-9]{1,3})*$",
        description="Format codes: number of a code's characters that belong to each level, from the top, such as "
        "2,4,6,8; marks such as dots do not count. Default: detected from the codes.",
    )
    syntax: Literal["turtle", "xml", "json-ld", "nt", "n3", "trig", "nquads"] | None = Field(
        default=None, description="Format skos: RDF syntax. Default: detected from the file's first characters."
    )
    base: str | None = Field(
        default=None, min_length=1, max_length=1000, description="Format skos: base of relative URIs."
    )
    label: Literal["uri", "notation"] = Field(
        default="uri", description="Format skos: identifier of concepts in datasets, their URI or their notation."
    )


class NewHierarchy(HierarchyOptions):
    """A hierarchy to upload."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(description="Unique name of the hierarchy in jobs and URLs.")
    format: HierarchyFormat = Field(
        description="; ".join(f"{each.name}: {each.summary}" for each in FORMATS.values()) + "."
    )


class DroppedParent(BaseModel):
    """A parent of a label in the file that the tree could not keep."""

    label: str
    parent: str
    line: int = Field(description="Line number in the file, from 1.")


class Hierarchy(Shown, BaseModel):
    """A label tree; its top, `root`, is not a label and is not counted."""

    id: str
    name: str
    owner: str | None = Field(
        default=None, description="Name of the key that created it; only that key and administrators may delete it."
    )
    format: HierarchyFormat = Field(description="Format of the uploaded file.")
    sha256: str = Field(
        description="SHA-256 of the nodes in order, independent of the format: one line per node with the number of "
        "its parent (-1: the top), a space and its name. In a graph, one line per further parent follows, with the "
        "numbers of label and parent and < between them."
    )
    n_nodes: int
    n_leaves: int
    depth: int = Field(description="Number of levels below the top.")
    levels: list[int] = Field(description="Number of nodes per level, starting below the top.")
    languages: dict[str, int] = Field(
        default={}, description="Number of nodes with a name, by language; und: no language is given."
    )
    n_deprecated: int = Field(default=0, description="Number of nodes that the file marks as deprecated.")
    n_retired: int = Field(
        default=0,
        description=(
            "Number of deprecated labels without a place in the tree and of excluded labels; rows with these labels "
            "are reported and mapped."
        ),
    )
    n_several_parents: int = Field(
        default=0, description="Number of labels with several parents, in a label graph; 0 in a tree."
    )
    n_dropped: int = Field(default=0, description="Number of dropped parents; a tree keeps one parent per label.")
    dropped: list[DroppedParent] = Field(
        default=[], description="The first 100 dropped parents; each node lists its own as other_parents."
    )
    read_as: dict[str, str] = Field(default={}, description="Properties detected from the file.")
    created_at: AwareDatetime


class HierarchyNode(BaseModel):
    """One node."""

    number: int = Field(
        description="Number of the node, level by level from 0; the children of a node are consecutive."
    )
    name: str
    parent: str | None = Field(description="Name of the parent; absent on the top level.")
    level: int = Field(description="Level of the node; the top level is 1.")
    n_children: int
    n_rows: int | None = Field(
        default=None, description="With a dataset: how often its rows have the node, or a node below it, as a label."
    )
    id: str | None = Field(default=None, description="URI or code of the label, if datasets identify it differently.")
    notation: str | None = Field(default=None, description="Notation of the label.")
    names: dict[str, str] = Field(default={}, description="Preferred name by language; und: no language is given.")
    alternatives: dict[str, list[str]] = Field(default={}, description="Alternative names by language.")
    deprecated: bool = False
    replaced_by: list[str] = Field(default=[], description="Labels to use instead.")
    other_parents: list[str] = Field(default=[], description="Other parents of the label in the file.")


class HierarchyNodes(BaseModel):
    """Nodes starting at ``offset``."""

    nodes: list[HierarchyNode]
    n_nodes: int = Field(description="Number of nodes of the hierarchy, or of the requested children.")


class RetiredLabel(BaseModel):
    """A deprecated label without a place in the tree, or an excluded one."""

    name: str
    id: str | None = Field(default=None, description="URI or code of the label, if datasets identify it differently.")
    notation: str | None = None
    names: dict[str, str] = Field(default={}, description="Preferred names by language.")
    alternatives: dict[str, list[str]] = {}
    replaced_by: list[str] = Field(default=[], description="Labels to use instead.")
    excluded: bool = Field(default=False, description="Whether the upload excluded the label.")


class RetiredLabels(BaseModel):
    """Retired labels by name, starting at ``offset``."""

    labels: list[RetiredLabel]
    n_labels: int = Field(description="Number of retired labels of the hierarchy.")


Change = Literal["appeared", "went", "moved", "renamed", "deprecated"]


class LabelChange(BaseModel):
    """One change of one label."""

    change: Change
    label: str = Field(description="The label in the later edition; for a label that went, in the earlier edition.")
    names: dict[str, str] = Field(default={}, description="The preferred name by language, in the edition of `label`.")
    names_before: dict[str, str] | None = Field(
        default=None, description="Renamed labels only: the preferred name before."
    )
    parent: str | None = Field(
        default=None,
        description="New parent of a label that appeared or moved; absent on the top level.",
    )
    parent_before: str | None = Field(
        default=None, description="Old parent of a label that moved or went; absent on the top level."
    )
    other_parents: list[str] = Field(
        default=[], description="Further parents of a label that appeared or moved, if both editions are label graphs."
    )
    other_parents_before: list[str] = Field(
        default=[], description="Further parents before of a label that moved or went, if both are label graphs."
    )
    replaced_by: list[str] = Field(
        default=[], description="Labels that went or were deprecated only: replacements named by the later edition."
    )


class Changes(BaseModel):
    """Changes starting at ``offset``, by kind: appeared, went, moved, renamed, deprecated."""

    counts: dict[Change, int] = Field(description="Number of changes of each kind, independent of the filter.")
    n_same: int = Field(description="Number of labels in both editions without changes.")
    changes: list[LabelChange]
