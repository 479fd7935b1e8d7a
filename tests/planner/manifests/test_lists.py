"""Items of typed lists have the kind of the list, as in kubectl."""

from __future__ import annotations

from typing import Any

import pytest

from planner.manifests.lists import item_of

NODES = {"apiVersion": "v1", "kind": "NodeList"}


@pytest.mark.parametrize("bare", [{"metadata": {}}, {"metadata": {}, "kind": None, "apiVersion": ""}])
def test_an_item_that_states_neither_gets_both_from_the_list(bare: dict[str, Any]) -> None:
    """They come first, as in any object, and in place of null."""
    item = item_of(NODES, bare)
    assert item == {"apiVersion": "v1", "kind": "Node", "metadata": {}}
    assert isinstance(item, dict)
    assert [*item][:2] == ["apiVersion", "kind"]


@pytest.mark.parametrize("item", [{"kind": "Pod"}, {"apiVersion": "v2"}, "text", None])
def test_any_other_item_stays_as_it_is(item: object) -> None:
    """kubectl completes none that states one of the two."""
    assert item_of(NODES, item) is item


def test_an_item_of_a_plain_list_stays_as_it_is() -> None:
    """The kind List says nothing of its items."""
    bare = {"metadata": {}}
    assert item_of({"apiVersion": "v1", "kind": "List"}, bare) is bare
