"""How many rivals a decision assumes: few in a replica that is alone, many once another one was faster."""

from webhook.server.rivals import BY_LOSS, BY_SEAT, REMEMBERED_SECONDS, Rivals


def test_a_replica_that_is_idle_assumes_none() -> None:
    assert Rivals(2).assumed(0, 0) == 0


def test_a_replica_that_is_alone_counts_its_other_threads_alone() -> None:
    assert Rivals(2).assumed(30, 0) == BY_SEAT
    assert Rivals(5).assumed(30, 0) == 4 * BY_SEAT


def test_it_assumes_no_more_than_it_has_calls_in_flight() -> None:
    assert Rivals(5).assumed(2, 0) == 2


def test_after_a_conflict_other_replicas_are_assumed_to_be_as_busy_for_a_while() -> None:
    moment = [100.0]
    rivals = Rivals(2, lambda: moment[0])
    rivals.lost()
    assert rivals.assumed(30, 0) == 30
    moment[0] += REMEMBERED_SECONDS + 1
    assert rivals.assumed(30, 0) == BY_SEAT


def test_each_conflict_of_the_call_itself_adds_rivals() -> None:
    rivals = Rivals(2)
    assert rivals.assumed(0, 2) == 2 * BY_LOSS
