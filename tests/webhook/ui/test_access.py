"""What a viewer may not see is not in what is sent to them.

Two racks of two nodes; `default` and `team` hold one each, and a gang of each waits.
"""

from __future__ import annotations

import pytest

from tests.builders import racks
from tests.webhook.ui.pictures import job, picture, texts, two_tenants
from webhook.ui.access import ALL, HIDDEN, ViewerAccess, namespaces_in, seen_by
from webhook.ui.document import document

READER = ViewerAccess(nodes=False, namespaces=frozenset({"default"}))
OPERATOR = ViewerAccess(nodes=True, namespaces=frozenset({"default"}))


def test_who_may_list_all_gets_the_whole_document() -> None:
    """As it is."""
    whole = document(two_tenants())
    assert seen_by(ALL, whole) is whole


@pytest.mark.parametrize("access", [READER, OPERATOR], ids=["reader", "operator"])
def test_no_text_names_a_gang_of_another_namespace(access: ViewerAccess) -> None:
    """Neither lists, nor the map, nor messages of the viewer's own gangs that say who is in their way."""
    whole = document(two_tenants())
    assert any("team/" in text for text in texts(whole))
    left = seen_by(access, whole)
    assert [text for text in texts(left) if "team" in text] == []
    message = str(left["gangs"]["default/Job/late"]["message"])
    assert f"reserved by {HIDDEN}" in message
    assert "default/Job/first" in message


def test_a_reader_of_a_namespace_sees_its_gangs_and_what_was_decided_on_them() -> None:
    """Whole, with the position in the whole queue."""
    left = seen_by(READER, document(two_tenants()))
    assert set(left["gangs"]) == {"default/Job/first", "default/Job/late"}
    assert left["gangs"]["default/Job/late"]["position"] == 1
    assert {entry["name"] for entry in left["decisions"].values()} == set(left["gangs"])
    assert left["policies"]["qos"]["namespaces"] == {"default": {"fail": 2}}


def test_policies_that_said_nothing_in_a_viewers_namespaces_are_left_out() -> None:
    """By name, too."""
    guest = ViewerAccess(nodes=False, namespaces=frozenset())
    assert seen_by(guest, document(two_tenants()))["policies"] == {}


def test_without_the_right_to_list_nodes_only_nodes_of_own_gangs_are_sent() -> None:
    """Their pods name them anyway; neither other racks nor totals are told."""
    left = seen_by(READER, document(two_tenants()))
    assert set(left["racks"]) == {"topo:/r1"}
    assert left["racks"]["topo:/r1"]["free"] is None
    assert left["gangs"]["default/Job/first"]["racks"] == ["topo:/r1"]
    assert left["health"] == {}


def test_who_may_list_nodes_sees_that_a_node_is_taken_but_not_by_whom() -> None:
    """The second rack is a gang's of another namespace."""
    left = seen_by(OPERATOR, document(two_tenants()))
    assert set(left["racks"]) == {"topo:", "topo:/r1", "topo:/r2"}
    assert left["racks"]["topo:/r2"]["cells"] == [
        ["r2-n1", "placed", 8, 0, HIDDEN, [], ""],
        ["r2-n2", "placed", 8, 0, HIDDEN, [], ""],
    ]


def test_a_name_that_is_no_word_is_hidden_too() -> None:
    """A person may have chosen it: it stands in the message of who waits for it."""
    odd = "team/Job/with blanks, (and) signs"
    whole = document(picture(racks(1, 2), job("late"), held=(job("with blanks, (and) signs", "team"),)))
    assert any(odd in text for text in texts(whole))
    assert [text for text in texts(seen_by(READER, whole)) if "blanks" in text or "signs" in text] == []


def test_the_namespaces_of_which_a_document_tells_are_those_to_ask_about() -> None:
    """Of gangs, decisions and policies."""
    assert namespaces_in(document(two_tenants())) == {"default", "team"}
