"""A long queue: each waiting gang is planned in some round, whoever waits before it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.settings import Quota
from tests.builders import gang, racks
from tests.webhook.kube.worlds import waiting, world
from webhook.kube.controller.memory import Memory
from webhook.kube.controller.reconcile import reconcile
from webhook.kube.controller.steps import Admit
from webhook.kube.controller.waiting.queue import MAX_PLANNED, in_turn, queue
from webhook.kube.state.gangs import Ref, Work

LONG = 3 * MAX_PLANNED


def over_its_quota(name: str) -> Snapshot:
    """Eight racks, and a namespace that may use no GPU."""
    none = {"requests.nvidia.com/gpu": 0}
    snapshot = racks(8, 2)
    base = replace(snapshot.base, quotas={f"{name}/compute": Quota("compute", none, none)})
    return snapshot.evolve(base=base, changed_nodes=frozenset())


def test_a_gang_behind_many_that_cannot_start_is_admitted() -> None:
    """They wait for the quota of their own namespace, and have waited for longer; nodes are free."""
    snapshot = over_its_quota("default")
    blocked = [waiting(gang(1, name=f"default/Job/b{n}"), created=float(n)) for n in range(LONG)]
    other = waiting(gang(1, name="other/Job/small"), created=1e6)
    admitted = [
        action.gang.name
        for rounds in range(LONG)
        for action in queue(snapshot, [*blocked, other], rounds=rounds)
        if isinstance(action, Admit)
    ]
    assert set(admitted) == {"other/Job/small"}


def test_rounds_are_counted_by_the_memory() -> None:
    """The controller plans other gangs in each round."""
    snapshot = over_its_quota("default")

    def job(space: str, name: str, created: float) -> Work:
        group = gang(1, name=f"{space}/Job/{name}")
        ref = Ref("batch/v1", "Job", space, name, f"uid-{name}")
        return Work(ref, created, "", (group,), True, (), False)

    works = (*(job("default", f"b{n}", n) for n in range(LONG)), job("other", "small", 1e6))
    admits = [
        rounds
        for rounds in range(LONG)
        if any(isinstance(a, Admit) for a in reconcile(world(snapshot, works=works), Memory(rounds=rounds)))
    ]
    assert admits
    assert 0 not in admits


@pytest.mark.parametrize("length", [0, 1, MAX_PLANNED, MAX_PLANNED + 1, 100, 1000])
def test_each_has_its_turn_and_the_head_has_it_always(length: int) -> None:
    """No round plans more than the maximum, and neighbours are planned together."""
    entries = list(range(length))
    step = MAX_PLANNED // 4
    rounds = [in_turn(entries, number) for number in range(length // step + 2)]
    assert {entry for planned in rounds for entry in planned} == set(entries)
    assert all(list(planned) == sorted(set(planned)) for planned in rounds)
    assert all(len(planned) <= MAX_PLANNED for planned in rounds)
    assert all(planned[: MAX_PLANNED // 2] == entries[: MAX_PLANNED // 2] for planned in rounds)
    pairs = {pair for planned in rounds for pair in zip(planned, planned[step:], strict=False)}
    assert all((first, first + step) in pairs for first in entries[: max(length - step, 0)])
