"""Tests the SQLite ledger: conflicts, idempotence and expiry (the racks: `books.py`)."""

from dataclasses import replace

import pytest

from planner.ledger.conflicts import Wish
from planner.ledger.ledger import Conflict
from planner.ledger.sqlite import SqliteLedger
from planner.model.reservation import reservation_id
from tests.planner.ledger.books import held, part, whole


async def test_what_was_reserved_is_what_the_book_says(ledger):
    """Every field survives the file, amounts beyond 64 bits too."""
    wanted = replace(whole("a", "r1", "r2"), requests=(("worker", {"cpu": 10**22}), ("leader", {})))
    await ledger.reserve(wanted, 0, 1.0)
    assert (await ledger.book(1.0)).reservations == (wanted,)


async def test_the_book_outlives_the_process(ledger, tmp_path):
    """Another ledger on the same file sees the same book."""
    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    other = SqliteLedger(tmp_path / "bayplan.db")
    assert await other.book(1.0) == await ledger.book(1.0)
    await other.close()


async def test_nobody_else_may_read_the_file(ledger, tmp_path):
    """The file and those beside it name the gangs of every tenant."""
    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) > 1
    assert [oct(file.stat().st_mode & 0o777) for file in files] == ["0o600"] * len(files)


async def test_a_second_gang_cannot_hold_the_same_rack(ledger):
    """The conflict names the holder, and nothing of the loser is written."""
    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    with pytest.raises(Conflict, match="already held by a"):
        await ledger.reserve(whole("b", "r1"), 1, 1.0)
    assert await held(ledger) == {"a"}


async def test_a_gang_is_reserved_wholly_or_not_at_all(ledger):
    """Of three racks one is taken: the gang gets none of the three."""
    await ledger.reserve(whole("a", "r2"), 0, 1.0)
    with pytest.raises(Conflict):
        await ledger.reserve(whole("b", "r1", "r2", "r10"), 1, 1.0)
    await ledger.reserve(whole("c", "r1", "r10"), 1, 1.0)


async def test_a_rack_whose_name_begins_alike_is_another_rack(ledger):
    """rack-1 and rack-10 do not overlap."""
    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    await ledger.reserve(whole("b", "r10"), 1, 1.0)
    assert await held(ledger) == {"a", "b"}


@pytest.mark.parametrize(
    "domain",
    [(), ("z",), ("z", "r1"), ("z", "r1", "new-node")],
    ids=["everything", "the zone above", "the rack", "a host in it"],
)
@pytest.mark.parametrize("first", [True, False])
async def test_domains_above_and_below_overlap(ledger, domain, first):
    """A held rack keeps out whoever wants it, a domain above it or one in it, in either order."""
    rack = whole("a", "r1")
    other = replace(whole("b", "r1", nodes=("unrelated",)), domain=domain, domains=(domain,))
    earlier, later = (rack, other) if first else (other, rack)
    await ledger.reserve(earlier, 0, 1.0)
    with pytest.raises(Conflict, match=f"already held by {earlier.gang}"):
        await ledger.reserve(later, 1, 1.0)


async def test_a_domain_is_not_free_while_a_part_of_it_is_held(ledger):
    """A gang that spans the zone holds one host of the rack, on a node that the plan did not know."""
    hosts = (("z", "r1", "new-1"), ("z", "r2", "new-2"))
    spread = replace(whole("a", "r1", nodes=("new-1", "new-2")), domain=("z",), domains=hosts)
    await ledger.reserve(spread, 0, 1.0)
    with pytest.raises(Conflict, match="already held by a"):
        await ledger.reserve(whole("b", "r1"), 1, 1.0)


async def test_domains_of_two_topologies_are_told_apart(ledger):
    """The same path in another topology is another domain, while its nodes are others."""
    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    await ledger.reserve(whole("b", "r1", topology="other", nodes=("m1",)), 1, 1.0)
    assert await held(ledger) == {"a", "b"}


async def test_nodes_overlap_across_topologies(ledger):
    """One node is one node, whichever topology it was planned in."""
    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    with pytest.raises(Conflict):
        await ledger.reserve(whole("b", "r2", topology="other", nodes=("n1",)), 1, 1.0)


@pytest.mark.parametrize("first", [True, False])
async def test_a_shared_node_keeps_a_whole_holder_out_and_the_other_way_round(ledger, first):
    """Whole and shared exclude each other on a node, whichever came first and was known to the plan."""
    pair = whole("a", "r1"), part("b", "n1")
    earlier, later = pair if first else pair[::-1]
    await ledger.reserve(earlier, 0, 1.0)
    with pytest.raises(Conflict):
        await ledger.reserve(later, 99, 1.0)


async def test_a_node_that_joined_a_held_rack_later_is_not_free(ledger):
    """The holder's list of nodes is older than the node, but the rack is held whole."""
    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    with pytest.raises(Conflict):
        await ledger.reserve(part("b", "joined-later"), 1, 1.0)


async def test_a_rack_is_not_free_while_a_later_node_of_it_is_used(ledger):
    """The same the other way round: the plan did not know the node on which somebody sits in the rack."""
    await ledger.reserve(part("b", "joined-later"), 0, 1.0)
    with pytest.raises(Conflict):
        await ledger.reserve(whole("a", "r1"), 1, 1.0)


async def test_two_gangs_share_a_node_that_both_planned_on(ledger):
    """The second was planned with the first in the book, so both fit."""
    await ledger.reserve(part("a", "n1"), 0, 1.0)
    seen = (await ledger.book(1.0)).revision
    await ledger.reserve(part("b", "n1"), seen, 1.0)
    assert await held(ledger) == {"a", "b"}


async def test_a_shared_node_conflicts_where_the_plan_did_not_know_the_other(ledger):
    """What came after the plan was not counted, so the plan is to be made again."""
    seen = (await ledger.book(1.0)).revision
    await ledger.reserve(part("a", "n1"), seen, 1.0)
    with pytest.raises(Conflict):
        await ledger.reserve(part("b", "n1"), seen, 1.0)
    await ledger.reserve(part("c", "n2"), seen, 1.0)


async def test_a_claim_is_no_newcomer(ledger):
    """A claim moves the book on but takes nothing, so who planned before it does not conflict."""
    await ledger.reserve(part("a", "n1"), 0, 1.0)
    seen = (await ledger.book(1.0)).revision
    await ledger.claim(reservation_id("a"), "uid", 1.0)
    await ledger.reserve(part("b", "n1"), seen, 1.0)


async def test_the_same_request_again_gets_what_is_there(ledger):
    """A retry changes nothing and keeps the first time to live, though a node joined the rack since."""
    first = whole("a", "r1")
    await ledger.reserve(first, 0, 1.0)
    before = await ledger.book(1.0)
    again = replace(first, expires=500.0, nodes=first.nodes | {"joined-later"})
    assert await ledger.reserve(again, before.revision, 2.0) == first
    assert await ledger.book(1.0) == before


async def test_two_replicas_that_plan_one_gang_at_once_get_one_place(ledger):
    """The second plan did not know the first one's reservation: it is told of it, and made again."""
    seen = (await ledger.book(1.0)).revision
    first = await ledger.reserve(whole("a", "r1"), seen, 1.0)
    with pytest.raises(Conflict, match=r"^already held by a$"):
        await ledger.reserve(whole("a", "r2"), seen, 1.0)
    assert (await ledger.book(1.0)).reservations == (first,)


async def test_gangs_that_are_asked_for_together_are_taken_all_or_none(ledger):
    """The third is in another's way: of the other two nothing is kept, and what one would replace stays."""
    former = await ledger.reserve(whole("b", "r2"), 0, 1.0)
    await ledger.reserve(whole("x", "r10"), 0, 1.0)
    before = await ledger.book(1.0)
    wishes = [whole("a", "r1"), replace(whole("b", "r2"), fingerprint="f2"), whole("c", "r10")]
    with pytest.raises(Conflict, match=r"^already held by x$"):
        await ledger.reserve_all([Wish(wanted, before.revision) for wanted in wishes], 1.0)
    assert (await ledger.book(1.0)).reservations == before.reservations
    taken = await ledger.reserve_all([Wish(wanted, before.revision) for wanted in wishes[:2]], 1.0)
    assert taken.reservations == tuple(wishes[:2])
    assert taken.new == {reservation_id("a")}
    assert former not in (await ledger.book(1.0)).reservations


async def test_gangs_that_are_asked_for_together_are_in_each_others_way(ledger):
    """Two of one call want one rack: neither gets it."""
    with pytest.raises(Conflict, match=r"^already held by a$"):
        await ledger.reserve_all([Wish(whole("a", "r1"), 0), Wish(whole("b", "r1"), 0)], 1.0)
    assert await held(ledger) == set()


async def test_a_reservation_is_given_back_only_as_it_was_seen(ledger):
    """Once its workload has claimed it, whoever made it can no longer take it back."""
    first = await ledger.reserve(whole("a", "r1"), 0, 1.0)
    await ledger.claim(first.id, "uid", 1.0)
    assert not await ledger.give_back(first)
    other = await ledger.reserve(whole("b", "r2"), 0, 1.0)
    assert await ledger.give_back(other)
    assert not await ledger.give_back(other)
    assert await held(ledger) == {"a"}


async def test_a_hold_that_a_book_left_out_is_not_claimed_by_a_call_that_began_earlier(ledger):
    """Its clock was read before the hold expired; meanwhile the place was shown as free."""
    first = await ledger.reserve(whole("a", "r1", expires=10.0), 0, 1.0)
    assert await held(ledger, now=11.0) == set()
    assert not await ledger.claim(first.id, "uid", 9.0)


async def test_a_gang_whose_place_went_is_moved_and_stays_claimed(ledger):
    """A plan that knew the reservation and places the gang elsewhere replaces it; the owner keeps it."""
    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    await ledger.claim(reservation_id("a"), "uid", 1.0)
    seen = (await ledger.book(1.0)).revision
    moved = await ledger.reserve(whole("a", "r2"), seen, 2.0)
    assert (moved.domains, moved.state, moved.expires, moved.owner_uid) == (
        (("z", "r2"),),
        "claimed",
        None,
        "uid",
    )
    assert (await ledger.book(1.0)).reservations == (moved,)
    await ledger.reserve(whole("b", "r1"), seen + 1, 2.0)


async def test_a_gang_that_cannot_be_moved_stays(ledger):
    """The other place was taken in between: the former reservation is as it was."""
    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    await ledger.reserve(whole("b", "r2"), 1, 1.0)
    before = await ledger.book(1.0)
    with pytest.raises(Conflict, match="already held by b"):
        await ledger.reserve(whole("a", "r2"), 1, 1.0)
    assert await ledger.book(1.0) == before


async def test_another_request_of_the_same_gang_replaces_the_former(ledger):
    """A gang that asks for something else lets go of what it had, in one step."""
    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    changed = replace(whole("a", "r1", "r2"), fingerprint="f2")
    assert await ledger.reserve(changed, 1, 1.0) == changed
    assert (await ledger.book(1.0)).reservations == (changed,)


async def test_a_replacement_that_conflicts_leaves_the_former(ledger):
    """Nobody loses a place because the next one was taken."""
    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    await ledger.reserve(whole("b", "r2"), 1, 1.0)
    with pytest.raises(Conflict):
        await ledger.reserve(replace(whole("a", "r2"), fingerprint="f2"), 2, 1.0)
    assert await held(ledger) == {"a", "b"}


async def test_an_expired_hold_is_out_of_the_book_and_out_of_the_way(ledger):
    """At its end a hold counts no more, and the next one takes its place."""
    await ledger.reserve(whole("a", "r1", expires=10.0), 0, 1.0)
    assert await held(ledger, 9.9) == {"a"}
    assert await held(ledger, 10.0) == set()
    await ledger.reserve(whole("b", "r1"), 1, 10.0)
    assert await held(ledger, 10.0) == {"b"}


async def test_a_claim_makes_a_hold_last(ledger):
    """A claimed reservation has an owner and no end."""
    await ledger.reserve(whole("a", "r1", expires=10.0), 0, 1.0)
    assert await ledger.claim(reservation_id("a"), "uid-1", 5.0)
    [claimed] = (await ledger.book(1e12)).reservations
    assert (claimed.state, claimed.expires, claimed.owner_uid) == ("claimed", None, "uid-1")


async def test_a_second_claim_changes_nothing(ledger):
    """The validating pass may come twice; the book does not move."""
    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    await ledger.claim(reservation_id("a"), "uid-1", 5.0)
    before = await ledger.book(5.0)
    assert await ledger.claim(reservation_id("a"), "uid-1", 6.0)
    assert await ledger.book(5.0) == before


async def test_a_claim_that_comes_too_late_is_told(ledger):
    """An expired hold cannot be claimed, nor one that never was."""
    await ledger.reserve(whole("a", "r1", expires=10.0), 0, 1.0)
    assert not await ledger.claim(reservation_id("a"), "uid", 10.0)
    assert not await ledger.claim("bp-nobody", "uid", 1.0)


async def test_release_gives_the_place_back_once(ledger):
    """A second release says that nothing was there, and harms nobody."""
    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    assert await ledger.release(reservation_id("a"))
    assert not await ledger.release(reservation_id("a"))
    await ledger.reserve(whole("b", "r1"), 2, 1.0)


async def test_releasing_what_expired_says_that_nothing_was_there(ledger):
    """The ledger knows the time from the other calls."""
    await ledger.reserve(whole("a", "r1", expires=10.0), 0, 1.0)
    await ledger.book(11.0)
    assert not await ledger.release(reservation_id("a"))


@pytest.mark.parametrize("way", ["release", "give back"])
async def test_releasing_one_reservation_ends_no_other_by_the_clock_of_the_caller(ledger, tmp_path, way):
    """The command line's clock is an hour ahead of the server's, for which the other hold goes on."""
    old = await ledger.reserve(whole("old", "r1", expires=None), 0, 1.0)
    await ledger.reserve(whole("live", "r2", expires=600.0), 1, 1.0)
    other = SqliteLedger(tmp_path / "bayplan.db")
    assert await held(other, 3600.0) == {"old"}
    assert await (other.release(old.id) if way == "release" else other.give_back(old))
    await other.close()
    assert await held(ledger, 2.0) == {"live"}


async def test_the_revision_grows_with_every_change_and_only_then(ledger):
    """Reserve, claim, replace, expire and release move the book on; reads and failures do not."""
    seen = [(await ledger.book(1.0)).revision]

    async def note(grows):
        seen.append((await ledger.book(1.0)).revision)
        assert (seen[-1] > seen[-2]) is grows

    await ledger.reserve(whole("a", "r1"), 0, 1.0)
    await note(grows=True)
    with pytest.raises(Conflict):
        await ledger.reserve(whole("b", "r1"), 0, 1.0)
    await note(grows=False)
    await ledger.claim(reservation_id("a"), "uid", 1.0)
    await note(grows=True)
    await ledger.release("bp-nobody")
    await note(grows=False)
    await ledger.reserve(whole("c", "r2", expires=5.0), 0, 1.0)
    await note(grows=True)
    await ledger.claim("bp-nobody", "uid", 6.0)
    await note(grows=True)
    await ledger.release(reservation_id("a"))
    await note(grows=True)


async def test_an_advised_gang_reserves_nothing(ledger):
    """Mode `none` never reaches the ledger; if it does, that is a programming error."""
    with pytest.raises(ValueError, match="reserves nothing"):
        await ledger.reserve(replace(whole("a", "r1"), mode="none"), 0, 1.0)
