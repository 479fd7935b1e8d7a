"""How many rivals a decision assumes: few in a replica that is alone, many once another one was faster."""

from collections.abc import Sequence
from pathlib import Path

from planner.ledger.conflicts import Wish
from planner.ledger.ledger import Conflict, ReserveResult
from planner.ledger.sqlite import SqliteLedger
from tests.webhook.calls import Serve
from tests.webhook.server.test_in_flight import jobs
from webhook.cli.installation.deciding import SPARE, deciding_processes
from webhook.server.rivals import MAX_PER_THREAD, PER_CONFLICT, REMEMBERED_SECONDS, Rivals


def test_a_replica_that_is_idle_assumes_none() -> None:
    assert Rivals(2).assumed(0, 0) == 0


def test_a_replica_that_is_alone_counts_its_other_threads_alone() -> None:
    assert Rivals(2).assumed(30, 0) == MAX_PER_THREAD
    assert Rivals(5).assumed(30, 0) == 4 * MAX_PER_THREAD


def test_it_assumes_no_more_than_it_has_calls_in_flight() -> None:
    assert Rivals(5).assumed(2, 0) == 2


def test_after_a_conflict_other_replicas_are_assumed_to_be_as_busy_for_a_while() -> None:
    moment = [100.0]
    rivals = Rivals(2, lambda: moment[0])
    rivals.record_conflict()
    assert rivals.assumed(30, 0) == 30
    moment[0] += REMEMBERED_SECONDS + 1
    assert rivals.assumed(30, 0) == MAX_PER_THREAD


def test_each_conflict_of_the_call_itself_adds_rivals() -> None:
    rivals = Rivals(2)
    assert rivals.assumed(0, 2) == 2 * PER_CONFLICT


class Contested(SqliteLedger):
    """A ledger in which another replica is faster, once."""

    losses = 1

    async def reserve_all(self, wishes: Sequence[Wish], now: float) -> ReserveResult:
        if self.losses:
            self.losses -= 1
            raise Conflict("team/Job/other")
        return await super().reserve_all(wishes, now)


async def test_a_call_that_lost_its_place_shows_that_there_are_other_replicas(
    serve: Serve, tmp_path: Path
) -> None:
    async with serve("superpod-32", ledger=Contested(tmp_path / "book.db")) as asked:
        rivals = asked.service.rivals
        assert rivals.assumed(30, 0) == MAX_PER_THREAD
        assert (await asked.mutate(jobs(1)[0]))["allowed"]
        assert rivals.assumed(30, 0) == 30


def test_a_server_with_workers_counts_each_of_them() -> None:
    with deciding_processes(2) as processes:
        assert processes.parts["rivals"].assumed(30, 0) == (2 + SPARE - 1) * MAX_PER_THREAD
