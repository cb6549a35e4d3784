"""Two editions of a vocabulary, compared by id."""

from collections.abc import Sequence

import pytest
from sqlalchemy.orm import Session

from app.concurrency import comparing
from app.errors import InvalidInput, NotFound, TooMany
from app.formats.hierarchies.vocabulary import Label, Vocabulary
from app.hierarchies import service as hierarchies
from app.hierarchies.editions import changes
from app.hierarchies.nodes import nodes
from solvers.labels.taxonomy import Taxonomy


def _keep(
    session: Session, name: str, edges: Sequence[tuple[str, str]], labels: dict[str, Label], **more: object
) -> None:
    hierarchies.register(session, name, "skos", Vocabulary(Taxonomy.from_edges(edges), labels, **more))  # type: ignore[arg-type]


@pytest.fixture
def editions(session: Session) -> Session:
    """Two editions, `old` and `new`."""
    old = {"a": Label(names={"en": "A"}), "b": Label(names={"en": "B"}), "d": Label(names={"en": "D"})}
    _keep(session, "old", [("root", "a"), ("root", "b"), ("a", "c"), ("a", "d"), ("b", "e")], old)
    new = {"a": Label(names={"en": "A!"}), "b": Label(names={"en": "B"}, deprecated=True, replaced_by=["a"])}
    retired = {"d": Label(deprecated=True, replaced_by=["c"])}
    _keep(session, "new", [("root", "a"), ("root", "b"), ("b", "c"), ("b", "e"), ("c", "f")], new, retired=retired)
    return session


def test_changes_are_told_by_kind(editions: Session) -> None:
    found = changes(editions, "new", "old")
    assert [(each.change, each.label, each.parent, each.parent_before) for each in found.changes] == [
        ("appeared", "f", "c", None), ("went", "d", None, "a"), ("moved", "c", "b", "a"),
        ("renamed", "a", None, None), ("deprecated", "b", None, None),
    ]  # fmt: skip
    assert found.counts == {"appeared": 1, "went": 1, "moved": 1, "renamed": 1, "deprecated": 1}
    assert found.n_same == 1
    went, renamed = found.changes[1], found.changes[3]
    assert (went.names, went.replaced_by) == ({"en": "D"}, ["c"])
    assert (renamed.names, renamed.names_before) == ({"en": "A!"}, {"en": "A"})


def test_changes_may_be_of_one_kind_and_some_of_them(editions: Session) -> None:
    assert [each.label for each in changes(editions, "new", "old", "moved").changes] == ["c"]
    assert [each.label for each in changes(editions, "new", "old", offset=1, limit=2).changes] == ["d", "c"]
    assert changes(editions, "new", "new").changes == []
    assert changes(editions, "new", "new").n_same == 5
    with pytest.raises(InvalidInput, match="limit 0"):
        changes(editions, "new", "old", limit=0)
    with pytest.raises(NotFound):
        changes(editions, "new", "other")


def test_labels_are_the_same_by_id_whatever_they_are_called(session: Session) -> None:
    _keep(session, "uris", [("root", "u:1"), ("u:1", "u:2")], {})
    _keep(session, "codes", [("root", "1"), ("1", "2")], {"1": Label(id="u:1"), "2": Label(id="u:2")})
    found = changes(session, "codes", "uris")
    assert (found.changes, found.n_same) == ([], 2)


def test_labels_of_graphs_move_by_any_of_their_parents(session: Session) -> None:
    top = [("root", "craft"), ("root", "food")]
    for name, below in (
        ("first", [("craft", "baking"), ("food", "baking"), ("craft", "tin"), ("food", "tin")]),
        ("second", [("food", "baking"), ("craft", "tin"), ("food", "tin"), ("craft", "cake"), ("food", "cake")]),
    ):
        hierarchies.register(session, name, "skos", Vocabulary(Taxonomy.from_graph([*top, *below]), {}, {}, []))
    found = changes(session, "second", "first")
    appeared, moved = found.changes
    assert (appeared.label, {appeared.parent, *appeared.other_parents}) == ("cake", {"craft", "food"})
    assert (moved.label, moved.parent, moved.other_parents) == ("baking", "food", [])
    assert {moved.parent_before, *moved.other_parents_before} == {"craft", "food"}
    assert found.n_same == 3
    back = changes(session, "first", "second").changes[0]
    assert (back.change, {back.parent_before, *back.other_parents_before}) == ("went", {"craft", "food"})
    for parent, below in (("craft", {"tin", "cake"}), ("food", {"baking", "tin", "cake"})):
        page = nodes(session, "second", parent)
        assert {node.name for node in page.nodes} == below
        assert page.n_nodes == len(below)
        top_level = {node.name: node.n_children for node in nodes(session, "second", "root").nodes}
        assert top_level[parent] == len(below)


def test_few_are_compared_at_a_time(editions: Session) -> None:
    with comparing():
        assert changes(editions, "new", "old").n_same == 1
        with comparing(), pytest.raises(TooMany) as refused:
            changes(editions, "new", "old")
    assert refused.value.retry_after > 0
    assert changes(editions, "new", "old").n_same == 1


@pytest.mark.parametrize(
    ("before", "now", "renamed"),
    [
        ({"und": "horses"}, {"en": "horses"}, False),
        ({"en": "horses"}, {"und": "horses"}, False),
        ({"und": "horses"}, {"en": "horses", "fi": "hevoset"}, False),
        ({"und": "horses"}, {"en": "ponies"}, True),
        ({"und": "horses"}, {"und": "ponies"}, True),
        ({"en": "horses"}, {"de": "horses"}, True),
        ({}, {"und": "horses"}, True),
        ({"und": "horses"}, {}, True),
    ],
)
def test_a_name_that_gets_a_language_or_loses_it_is_the_same(
    session: Session, before: dict[str, str], now: dict[str, str], renamed: bool
) -> None:
    for edition, names in (("old", before), ("new", now)):
        _keep(session, edition, [("root", "a")], {"a": Label(names=names)})
    found = changes(session, "new", "old")
    assert (found.counts["renamed"], found.n_same) == (int(renamed), int(not renamed))
