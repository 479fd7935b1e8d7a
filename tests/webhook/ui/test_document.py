"""The document of the live page: what the commands print, and nothing is sent twice.

Two racks of two nodes with eight GPUs each, and Jobs of two whole nodes in one rack.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from planner.cluster.census.domains import census
from tests.builders import racks
from tests.webhook.ui.pictures import job, picture, two_tenants
from webhook.report.fabric_map import fabric_maps
from webhook.ui.document import MAX_DECISIONS, SECTIONS, Document, changes, document
from webhook.ui.picture import DecisionEntry, Picture


def applied(before: Document, event: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What a browser has after the event, as webhook/ui/static/picture.js applies it."""
    after = {section: dict(before[section]) for section in SECTIONS}
    for section, entries in event.items():
        for key, entry in entries.items():
            if entry is None:
                after[section].pop(key, None)
            else:
                after[section][key] = entry
    return after


def test_a_gang_is_told_as_why_prints_it() -> None:
    """Each field of `bayplan why -o json` and `queue -o json`, for those that hold and those that wait."""
    seen = two_tenants()
    gangs = document(seen)["gangs"]
    assert set(gangs) == {gang.name for gang in seen.standing.gangs}
    for gang in seen.standing.gangs:
        printed = gang.to_json()
        assert {key: gangs[gang.name][key] for key in printed} == printed


def test_the_queue_is_in_the_order_of_the_queue_command() -> None:
    """With what each waits for, in the words of its last column."""
    seen = two_tenants()
    waiting = sorted(
        (entry["position"], name, entry["waitsFor"])
        for name, entry in document(seen)["gangs"].items()
        if entry["position"]
    )
    assert waiting == [(g.position, g.name, g.waits_for(wide=False)) for g in seen.standing.queue]
    assert [name for _, name, _ in waiting] == ["default/Job/late", "team/Job/later"]


def test_the_racks_are_those_of_top() -> None:
    """The same counts of nodes and GPUs, and the same gangs, domain by domain."""
    seen = two_tenants()
    racks_told = [entry for entry in document(seen)["racks"].values() if entry["depth"] == 0]
    counts = census(seen.standing.snapshot, "topo").domains
    assert [(r["domain"], r["nodes"], r["gpus"], r["free"]) for r in racks_told] == [
        (list(count.path), count.nodes, count.gpus, count.free) for count in counts
    ]
    for entry, count in zip(racks_told, counts, strict=True):
        cells: Any = entry["cells"]
        assert {name for cell in cells for name in (cell[4], *cell[5]) if name} == set(count.holders)


def test_the_squares_are_those_of_the_report_and_the_terminal() -> None:
    """One map for all: state and gang of each node."""
    seen = two_tenants()
    (fabric,) = fabric_maps(seen.standing.snapshot)
    drawn = [(cell.node, cell.state, cell.gang) for row in fabric.rows for cell in row.cells]
    cells: list[Any] = [c for entry in document(seen)["racks"].values() for c in entry["cells"]]  # type: ignore[attr-defined]
    assert [(cell[0], cell[1], cell[6]) for cell in cells] == drawn


def test_a_gang_names_its_racks_and_a_rack_its_gangs() -> None:
    """The way from one to the other and back."""
    body = document(two_tenants())
    racks_of_first: Any = body["gangs"]["default/Job/first"]["racks"]
    assert racks_of_first == ["topo:/r1"]
    cells: Any = body["racks"]["topo:/r1"]["cells"]
    assert all(cell[4] == "default/Job/first" and cell[5] == ["default/Job/first"] for cell in cells)


def test_a_rack_that_did_not_change_is_not_sent_again() -> None:
    """Nor are gangs; what changed is sent as it is now."""
    before = document(picture(racks(2, 2), held=(job("a"),)))
    after = document(picture(racks(2, 2), held=(job("a"), job("b"))))
    event = changes(before, after)
    assert set(event["racks"]) == {"topo:", "topo:/r2"}
    assert set(event["gangs"]) == {"default/Job/b"}
    assert changes(after, after) == {}


def test_what_is_gone_is_told_as_gone() -> None:
    """The gang that held the second rack is there no more."""
    before = document(picture(racks(2, 2), held=(job("a"), job("b"))))
    after = document(picture(racks(2, 2), held=(job("a"),)))
    assert changes(before, after)["gangs"] == {"default/Job/b": None}


def test_only_the_newest_decisions_are_sent() -> None:
    """However many there are."""
    seen = two_tenants()
    many = tuple(DecisionEntry(str(n), float(n), "a/Job/b", "Queued", "") for n in range(MAX_DECISIONS + 10))
    decisions = document(Picture(seen.standing, "", many))["decisions"]
    assert len(decisions) == MAX_DECISIONS
    assert min(float(str(entry["time"])) for entry in decisions.values()) == 10.0


entries = st.dictionaries(st.sampled_from("abcd"), st.fixed_dictionaries({"v": st.integers(0, 2)}))
documents = st.fixed_dictionaries(dict.fromkeys(SECTIONS, entries))


@given(documents, documents)
def test_a_browser_that_applies_the_difference_has_the_new_document(
    before: Document, after: Document
) -> None:
    """Whatever differs."""
    assert applied(before, changes(before, after)) == after
