"""Updates of queue positions in a long queue do not delay the leader's other work."""

from __future__ import annotations

from webhook.kube.controller.pace import FAR_SECONDS, MOST_FAR, NEAR, NEAR_SECONDS, Lasting, PositionPace


def test_the_head_of_a_queue_is_told_its_place_soon_and_its_tail_seldom() -> None:
    """The first word comes at once to everyone."""
    pace = PositionPace()
    due = []
    for later in (0.0, NEAR_SECONDS / 2, NEAR_SECONDS, FAR_SECONDS):
        now = 1000.0 + later
        due.append((pace.is_due("head", NEAR, now), pace.is_due("tail", NEAR + 1, now)))
    assert due == [(True, True), (False, False), (True, False), (True, True)]


def test_a_round_tells_few_of_thousands_of_gangs_and_each_of_them_in_time() -> None:
    """The events of a sweep of Jobs would else keep all other gangs waiting for a minute, again and again."""
    pace, gangs = PositionPace(), [f"g{number}" for number in range(2_000)]
    counts: dict[str, int] = dict.fromkeys(gangs, 0)
    for number in range(200):  # a round each 1.5 s, for five minutes
        pace.begin_round(gangs)
        due = [gang for gang in gangs if pace.is_due(gang, NEAR + 1, 1000.0 + 1.5 * number)]
        assert len(due) <= MOST_FAR
        for gang in due:
            counts[gang] += 1
    assert set(counts.values()) == {2}


def test_what_lasts_is_told_when_it_has_been_seen_for_so_long_without_a_break() -> None:
    """Or from the first look on, where it can be told that it was there before."""
    lasting = Lasting()
    assert lasting.overdue({"a": 0.0, "old": -60.0}, 0.0, lambda _: 60.0) == {"old"}
    assert lasting.overdue({"a": 59.0}, 59.0, lambda _: 60.0) == frozenset()
    assert lasting.overdue({"a": 60.0}, 60.0, lambda _: 60.0) == {"a"}
    assert lasting.overdue({}, 61.0, lambda _: 60.0) == frozenset()
    assert lasting.overdue({"a": 62.0}, 62.0, lambda _: 60.0) == frozenset()
