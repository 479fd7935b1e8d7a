"""300 gangs at once through three replicas on a cluster of 40 racks."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import pytest

from tests.e2e import storm
from tests.e2e.replicas import Replicas
from tests.e2e.serving import replicas_of
from tests.e2e.stage import Cluster


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """Racks of two nodes, and three replicas."""
    with replicas_of(cluster, tmp_path_factory.mktemp("storm"), storm.RACKS, storm.HOSTS, 3) as replicas:
        yield replicas


def test_many_gangs_at_once_are_each_placed_or_queued_and_no_rack_has_two_holders(
    serving: Replicas, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then all are deleted, and neither a reservation nor a beginning of one is left."""
    tally = storm.apply_all(serving.api, "storm")
    assert set(tally.outcomes) <= {"admitted", "queued"}, tally
    assert tally.outcomes.total() == storm.GANGS
    assert tally.outcomes["admitted"] >= min(storm.RACKS, storm.GANGS // 2)
    storm.is_sound(serving.api)
    assert storm.every_admitted_gang_has_its_place(serving.api)
    gone = storm.end_all(serving.api)
    taken = [line["seconds"] for line in serving.lines() if _is_planned(line)]
    with capsys.disabled():
        print(
            f"\n{storm.GANGS} gangs on {storm.RACKS} racks in {tally.seconds:.1f} s, "
            f"{tally.retries} calls made again: "
            f"{dict(tally.outcomes)}; all places free {gone:.1f} s after the end"
        )
        print(
            f"mutating a Job: median {statistics.median(taken):.2f} s, "
            f"95th percentile {statistics.quantiles(taken, n=20)[-1]:.2f} s, most {max(taken):.2f} s"
        )


def _is_planned(line: dict[str, object]) -> bool:
    return (line.get("event"), line.get("phase"), line.get("kind"), line.get("operation")) == (
        "decision",
        "mutate",
        "Job",
        "CREATE",
    )
