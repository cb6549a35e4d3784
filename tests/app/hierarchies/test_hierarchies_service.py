"""Hierarchies: kept as they were read, and only deleted when nothing needs them."""

import pytest
from pydantic import ValidationError
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.errors import Conflict, InvalidInput, NotFound
from app.formats.hierarchies.vocabulary import Label, Vocabulary
from app.hierarchies import nodes as hierarchy_nodes
from app.hierarchies import service as hierarchies
from app.hierarchies.nodes import taxonomy
from app.hierarchies.schemas import NewHierarchy
from app.store import tables
from app.store.files import Upload, files
from solvers.labels.taxonomy import Taxonomy

TREE = Taxonomy.from_edges([("root", "a"), ("root", "b"), ("a", "c"), ("a", "d"), ("c", "e")])

JSON, CSV = NewHierarchy(name="letters", format="json"), NewHierarchy(name="letters", format="csv")


def _upload(text: str) -> Upload:
    upload = files().upload()
    upload.write(text.encode())
    return upload


def test_a_tree_is_kept_with_its_counts_and_comes_back_as_it_was(session: Session) -> None:
    shown = hierarchies.register(session, "letters", "csv", Vocabulary(TREE))
    assert (shown.n_nodes, shown.n_leaves, shown.depth, shown.levels) == (5, 3, 3, [2, 2, 1])
    assert shown.sha256 == TREE.sha256
    assert hierarchies.get(session, "letters") == hierarchies.get(session, shown.id) == shown
    assert hierarchies.page(session).items == [shown]
    assert taxonomy(session, shown.id) == TREE
    assert taxonomy(session, "0" * 32) is None


def test_the_hash_is_of_the_tree_and_not_of_its_file(session: Session) -> None:
    same = hierarchies.read(
        _upload('{"a": {"c": ["e"], "d": {}}, "b": null}'), NewHierarchy(name="letters", format="json")
    )
    assert hierarchies.register(session, "letters", "json", same).sha256 == TREE.sha256
    other = Taxonomy.from_edges([("root", "a"), ("root", "b"), ("a", "c"), ("b", "d"), ("c", "e")])
    assert other.names == TREE.names
    assert other.sha256 != TREE.sha256


def test_nodes_are_shown_level_by_level_or_below_one(session: Session) -> None:
    hierarchies.register(session, "letters", "csv", Vocabulary(TREE))
    found = hierarchy_nodes.nodes(session, "letters")
    assert found.n_nodes == 5
    assert [(node.name, node.parent, node.level, node.n_children) for node in found.nodes] == [
        ("a", None, 1, 2), ("b", None, 1, 0), ("c", "a", 2, 1), ("d", "a", 2, 0), ("e", "c", 3, 0),
    ]  # fmt: skip
    below = hierarchy_nodes.nodes(session, "letters", "a", offset=1, limit=1)
    assert (below.n_nodes, [node.name for node in below.nodes]) == (2, ["d"])
    assert [node.name for node in hierarchy_nodes.nodes(session, "letters", "root").nodes] == ["a", "b"]
    assert hierarchy_nodes.nodes(session, "letters", offset=7).nodes == []
    with pytest.raises(NotFound, match="'letters' has no node 'x'"):
        hierarchy_nodes.nodes(session, "letters", "x")
    with pytest.raises(InvalidInput, match="limit 0"):
        hierarchy_nodes.nodes(session, "letters", limit=0)


def test_children_come_by_notation_and_then_by_label(session: Session) -> None:
    tree = Taxonomy.from_edges([("root", "z"), ("root", "y"), ("root", "x"), ("root", "w"), ("y", "v"), ("y", "u")])
    hierarchies.register(
        session, "marks", "csv", Vocabulary(tree, {"w": Label(notation="1"), "z": Label(notation="0")})
    )
    below = [node.name for node in hierarchy_nodes.nodes(session, "marks", "root").nodes]
    assert below == ["z", "w", "x", "y"]
    second = hierarchy_nodes.nodes(session, "marks", "root", offset=1, limit=2).nodes
    assert [(node.name, node.n_children) for node in second] == [("w", 0), ("x", 0)]
    assert [node.name for node in hierarchy_nodes.nodes(session, "marks", "y").nodes] == ["u", "v"]


def test_a_large_tree_is_kept_whole(session: Session) -> None:
    tree = Taxonomy.from_parents([f"n{i}" for i in range(25_000)], [(i - 1) // 3 if i else -1 for i in range(25_000)])
    shown = hierarchies.register(session, "large", "csv", Vocabulary(tree))
    assert taxonomy(session, shown.id) == tree
    last = hierarchy_nodes.nodes(session, "large", offset=24_998, limit=10_000).nodes
    assert [node.level for node in last] == [tree.depth] * 2


def test_names_formats_and_options_are_checked_before_a_byte_comes(session: Session) -> None:
    hierarchies.register(session, "letters", "csv", Vocabulary(TREE))
    with pytest.raises(Conflict, match="'letters'"):
        hierarchies.check_new(session, NewHierarchy(name="letters", format="csv"))
    with pytest.raises(Conflict, match="'letters'"):
        hierarchies.register(session, "letters", "csv", Vocabulary(TREE))
    with pytest.raises(ValidationError, match="name"):
        NewHierarchy(name="../x", format="csv")
    with pytest.raises(ValidationError, match="Input should be 'arff', 'claml', 'codes'"):
        NewHierarchy(name="x", format="xml")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput) as refused:
        hierarchies.check_new(session, NewHierarchy(name="x", format="csv", separator="/"))
    assert refused.value.errors[0].pointer == "/separator"
    with pytest.raises(InvalidInput) as refused:
        hierarchies.check_new(session, NewHierarchy(name="x", format="paths", root="top"))
    assert refused.value.errors[0].pointer == "/root"


def test_a_file_that_holds_no_tree_is_reported_line_by_line_and_leaves_nothing(session: Session) -> None:
    with pytest.raises(InvalidInput, match="2 error") as refused:
        hierarchies.read(
            _upload("parent,child\nroot,a\nb,c\nc,b\nroot,a\n"), NewHierarchy(name="letters", format="csv")
        )
    assert [(item.row, "cycle" in item.detail) for item in refused.value.errors] == [(3, True), (5, False)]
    assert [path for path in files().root.rglob("*") if path.is_file()] == []


def test_a_hierarchy_is_deleted_with_its_nodes(session: Session) -> None:
    id = hierarchies.register(session, "letters", "csv", Vocabulary(TREE)).id
    hierarchies.register(session, "others", "csv", Vocabulary(TREE))
    hierarchies.delete(session, "letters")
    with pytest.raises(NotFound):
        hierarchies.get(session, id)
    left = select(func.count()).select_from(tables.HierarchyNode)
    assert session.scalars(left).one() == TREE.n_nodes
