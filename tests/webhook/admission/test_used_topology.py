"""Who takes a Topology away is told which gangs use it; nothing is refused, and nothing runs worse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.model.schedulers import SchedulersSeen
from tests.builders import gang
from tests.policies.helpers import policies
from tests.webhook.admission.updates.test_unchanged import HALL, asked, holding
from tests.webhook.workloads import objects as o
from webhook.admission.decision import decide
from webhook.admission.environment import Environment
from webhook.placement.fair_order import WaitingGang
from webhook.wire.request import from_object

BLOCK, RACK, HOST = HALL.topologies[0].levels
USED = holding(asked(o.JOB))
WAITING = WaitingGang(gang(2, name="team/Job/next", topology="superpod", required=RACK))


def topology(*levels: str, name: str = "superpod", group: str = "kai.scheduler/v1alpha1") -> dict[str, Any]:
    """With these levels."""
    rows = [{"nodeLabel": level} for level in levels]
    return {"apiVersion": group, "kind": "Topology", "metadata": {"name": name}, "spec": {"levels": rows}}


def warned(
    old: dict[str, Any], new: dict[str, Any] | None, on: Snapshot, *waiting: WaitingGang
) -> tuple[str, ...]:
    """What whoever deletes it (`new` None) or changes it is told; it is always let."""
    operation = "UPDATE" if new else "DELETE"
    request = from_object(new or old, uid="uid", operation=operation, old_object=old)
    response = decide(request, policies(), on, "validate", Environment(waiting=lambda: waiting)).response
    assert response.allowed
    return tuple(response.warnings)


def test_a_topology_that_is_deleted_names_the_gangs_that_use_it() -> None:
    """Those that hold a place in it, and those that wait and ask for it by name."""
    (warning,) = warned(topology(BLOCK, RACK, HOST), None, USED, WAITING)
    assert warning == (
        "topology superpod is still used by 1 gang with a place in it (team/Job/demo) and 1 gang waiting "
        "for one (team/Job/next). What runs goes on; what waits, or starts again, does not find it. What "
        "would work: take it away when they have ended"
    )


def test_a_level_that_is_taken_out_names_those_that_use_it() -> None:
    """Not where another one goes that nobody is placed or asks at."""
    (warning,) = warned(topology(BLOCK, RACK, HOST), topology(BLOCK, HOST), HALL, WAITING)
    assert warning.startswith(f"level {RACK} of topology superpod is still used by 1 gang waiting for one")
    assert warned(topology(BLOCK, RACK, HOST), topology(RACK, HOST), HALL, WAITING) == ()


LED = replace(
    HALL,
    base=replace(
        HALL.base,
        schedulers=SchedulersSeen(
            {"kueue": "a kind"},
            queue_topologies={"team/train": frozenset({"superpod"}), "team/any": frozenset()},
        ),
    ),
)


def flavor(topology_name: str) -> dict[str, Any]:
    """A ResourceFlavor of Kueue's that attaches a Topology."""
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "h100"},
        "spec": {
            "nodeLabels": {"pool": "h100"},
            **({"topologyName": topology_name} if topology_name else {}),
        },
    }


@pytest.mark.parametrize("new", [None, flavor(""), flavor("other")], ids=["deleted", "emptied", "exchanged"])
def test_a_topology_that_a_flavor_no_longer_names_is_told_with_the_queues_that_lead_to_it(
    new: dict[str, Any] | None,
) -> None:
    """What waits there for a level is never admitted: Kueue's flavor would not support it."""
    (warning,) = warned(flavor("superpod"), new, LED, WAITING)
    assert warning.startswith(
        "topology superpod, which ResourceFlavor h100 no longer names, is still used by 1 gang waiting for "
        "one (team/Job/next) and 1 LocalQueue that leads to it (team/train)."
    )


def test_a_flavor_that_keeps_its_topology_is_no_loss() -> None:
    """Whatever else of it changes, and where it had none."""
    other = {**flavor("superpod"), "spec": {"nodeLabels": {}, "topologyName": "superpod"}}
    assert warned(flavor("superpod"), other, LED, WAITING) == ()
    assert warned(flavor(""), None, LED, WAITING) == ()


def test_a_topology_of_kueues_names_the_queues_that_lead_to_it() -> None:
    """Of KAI's nobody leads there by a queue."""
    (warning,) = warned(topology(RACK, HOST, group="kueue.x-k8s.io/v1beta1"), None, LED)
    assert "is still used by 1 LocalQueue that leads to it (team/train)" in warning
    assert warned(topology(RACK, HOST), None, LED) == ()


def test_the_queue_is_worked_out_for_such_requests_alone() -> None:
    """In a storm of pods it changes with each of them."""

    def waiting() -> tuple[WaitingGang, ...]:
        raise AssertionError("nobody takes a topology away")

    pod = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "team"}}
    for phase in ("mutate", "validate"):
        request = from_object(pod, uid="uid")
        assert decide(request, policies(), USED, phase, Environment(waiting=waiting)).response.allowed


@pytest.mark.parametrize(
    "old",
    [
        topology(BLOCK, RACK, HOST, name="other"),
        topology(BLOCK, RACK, HOST, group="example.com/v1"),
        {**topology(), "spec": {"levels": "none"}},
    ],
    ids=["another one", "another kind of that name", "without levels"],
)
def test_of_what_nobody_uses_nothing_is_said(old: dict[str, Any]) -> None:
    """Nor of a Topology in a cluster without gangs."""
    assert warned(old, None, USED, WAITING) == ()
    assert warned(topology(BLOCK, RACK, HOST), None, HALL) == ()
