"""The last member of a gang that can never run is refused, though it could run beside unknown members.

Seen with Kueue v0.19.2: groups of pods that fit in no node were stored pod by pod, kept their quota, and
waited for ever; the gangs behind them never got theirs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from tests.policies.helpers import policies
from tests.webhook.admission.test_kueue_pods import PLACES, PLAIN, QUEUE, reserved
from tests.webhook.admission.updates.test_unchanged import HALL, Json, asked, holding, stored
from tests.webhook.workloads import objects as o
from webhook.admission.decision import decide
from webhook.admission.environment import Environment
from webhook.wire.request import from_object
from webhook.workloads import Workload, read

HOST = "kubernetes.io/hostname"
RACK = "cloud.provider.com/topology-rack"
GANG = "team/PodGroup/demo"


def member(number: int, gpus: int = 8, size: int = 2, level: str = HOST) -> Json:
    """A pod of a group whose pods must be together in one domain of the level."""
    keys = {
        "kueue.x-k8s.io/pod-group-total-count": str(size),
        "kai.scheduler/topology-required-placement": level,
    }
    pod = o.changed(o.annotated(o.POD, keys), ("metadata", "name"), f"demo-{number}")
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    return o.changed(pod, ("metadata", "labels"), {"kueue.x-k8s.io/pod-group-name": "demo"})


RACKS = tuple(dict.fromkeys(node.labels[RACK] for node in HALL.nodes.values() if not node.taints))


def selecting(pod: Json, rack: str) -> Json:
    """The pod with a selector of one rack."""
    return o.changed(pod, ("spec", "nodeSelector"), {RACK: rack})


def choosing(pod: Json, *racks: str) -> Json:
    """The pod with a required node affinity to these racks."""
    term = {"matchExpressions": [{"key": RACK, "operator": "In", "values": list(racks)}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return o.changed(pod, ("spec", "affinity"), {"nodeAffinity": required})


def queued(pod: Json) -> Json:
    """The pod in a LocalQueue of Kueue."""
    return o.changed(pod, ("metadata", "labels"), {**pod["metadata"]["labels"], QUEUE: "quota"})


def after(*pods: Json) -> Environment:
    """The environment in which these pods are stored."""
    members = tuple(read(pod, namespace="team") for pod in pods)

    def stored_members(gang: str) -> tuple[Workload, ...]:
        assert gang == GANG
        return members

    return Environment(stored_members=stored_members)


def refusal(pod: Json, on: Snapshot, environment: Environment) -> str:
    """The message with which a pod is refused, "" if it is allowed."""
    request = from_object(pod, uid="uid", operation="CREATE")
    response = decide(request, policies(), on, "mutate", environment).response
    return "" if response.allowed else response.message


def test_the_last_pod_of_a_group_that_fits_in_no_node_is_refused() -> None:
    """With the first pod, the other could have been small."""
    first = asked(member(0))
    message = refusal(member(1), holding(first), after(stored(first)))
    assert message.startswith(f"{GANG} cannot run on the nodes that the cluster has now: ")
    assert "2 pods" in message
    assert message.endswith("These are the 2 pods of this object and of Pod/demo-0, which exists already.")


@pytest.mark.parametrize("cluster", [PLAIN, PLACES], ids=["Kueue counts quota", "Kueue places pods too"])
def test_the_last_pod_is_refused_before_kueue_admits_the_group(cluster: Snapshot) -> None:
    """No reservation shows what the first pod asks for."""
    first = asked(queued(member(0)), on=cluster)
    assert reserved(first) == []
    assert "which exists already" in refusal(queued(member(1)), cluster, after(stored(first)))


@pytest.mark.parametrize("gpus", [1, 4])
def test_a_last_pod_that_fits_beside_the_first_is_placed(gpus: int) -> None:
    """The pods have room in one node."""
    first = asked(member(0, 4))
    second = asked(member(1, gpus), on=holding(first), environment=after(stored(first)))
    assert reserved(second) in ([GANG], [])
    assert "nodeAffinity" in str(stored(second))


def test_a_pod_before_the_last_is_refused_once_the_stored_pods_cannot_run_with_it() -> None:
    """Two of four pods fill more than a node already."""
    first = asked(member(0, size=4))
    assert "which exists already" in refusal(member(1, size=4), holding(first), after(stored(first)))
    small = asked(member(1, 0, size=4), on=holding(first), environment=after(stored(first)))
    assert small.response.allowed


def test_the_place_of_a_stored_pod_refuses_no_pod() -> None:
    """The first pod is pinned to a node where the second may not be; the gang could move."""
    first = asked(member(0, 4))
    ((seat,),) = (held.assignments for held in holding(first).reservations)
    assert seat.node in str(stored(first)["spec"]["affinity"]["nodeAffinity"])
    other = next(name for name in HALL.nodes if name != seat.node)
    second = o.changed(member(1, 4), ("spec", "nodeSelector"), {HOST: other})
    assert refusal(second, holding(first), after(stored(first))) == ""


def test_the_place_of_the_pod_itself_refuses_it_not() -> None:
    """A plan for it alone may pin it to a rack where the stored pod may not be; the gang could move."""
    racks = {node.labels[RACK]: name for name, node in HALL.nodes.items() if not node.taints}
    own, other = list(racks)[:2]
    first = o.changed(member(0, level=RACK), ("spec", "nodeSelector"), {RACK: other})
    term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [racks[own]]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pinned = o.changed(member(1, level=RACK), ("spec", "affinity"), {"nodeAffinity": required})
    assert refusal(pinned, HALL, after(first)) == ""


def test_the_host_that_kueue_chose_for_a_stored_pod_refuses_no_pod() -> None:
    """Kueue places pods by a node selector; the node has gone since, and Kueue chooses another."""
    first = o.changed(queued(member(0, 1)), ("spec", "nodeSelector"), {HOST: "gone"})
    assert refusal(queued(member(1, 7)), PLACES, after(first)) == ""


def test_slices_that_the_stored_pods_do_not_fill_yet_refuse_no_pod() -> None:
    """The second pod of eight is larger than the first: neither slice of four is complete."""
    slices = {
        "kueue.x-k8s.io/podset-slice-required-topology": RACK,
        "kueue.x-k8s.io/podset-slice-size": "4",
    }
    small, large = (o.annotated(member(gpus, gpus, size=32, level=""), slices) for gpus in (4, 8))
    first = asked(small)
    assert refusal(large, holding(first), after(stored(first))) == ""


def test_more_stored_pods_than_the_group_has_refuse_nothing() -> None:
    """Some of them may be leftovers of a former group with this name."""
    leftovers = [copy.deepcopy(member(number)) for number in range(2)]
    assert refusal(queued(member(2)), PLAIN, after(*leftovers)) == ""


def test_stored_members_are_looked_up_once_in_a_decision() -> None:
    """It plans before and after the policies."""
    lookups: list[str] = []

    def stored_members(gang: str) -> tuple[Workload, ...]:
        lookups.append(gang)
        return (read(member(0, 1, size=3), namespace="team"),)

    asked(member(1, 6, size=3), environment=Environment(stored_members=stored_members))
    assert lookups == [GANG]


def test_stored_members_are_looked_up_only_if_the_gang_does_not_fit() -> None:
    """The lookup reads every unbound pod of the namespace."""

    def fail(gang: str) -> Any:
        raise AssertionError(f"{gang} was looked up")

    environment = Environment(stored_members=fail)
    first = asked(member(0, 4), environment=environment)
    assert asked(member(1, 4), on=holding(first), environment=environment).response.allowed
    assert asked(o.JOB, environment=environment).response.allowed


def names_both(message: str) -> bool:
    """Whether a refusal names the racks of both pods, in any order."""
    _, _, choices = message.partition("No rack has nodes for both: ")
    return all(f"selects {RACK}={rack}" in choices for rack in RACKS[:2])


@pytest.mark.parametrize("first_choice", [selecting, choosing])
@pytest.mark.parametrize("second_choice", [selecting, choosing])
def test_pods_that_choose_different_racks_are_refused_where_one_is_required(
    first_choice: Callable[[Json, str], Json], second_choice: Callable[[Json, str], Json]
) -> None:
    """The second was planned by itself, and the gang waited for ever."""
    first = asked(first_choice(member(0, 4, level=RACK), RACKS[0]))
    second = second_choice(member(1, 4, level=RACK), RACKS[1])
    message = refusal(second, holding(first), after(stored(first)))
    assert names_both(message)
    assert "of this object and of Pod/demo-0, which exists already" in message


@pytest.mark.parametrize("choice", [selecting, choosing])
def test_pods_in_a_queue_of_kueue_that_choose_different_racks_are_refused(
    choice: Callable[[Json, str], Json],
) -> None:
    """Two members like the second fit, so the stored one was not looked at."""
    first = asked(queued(choice(member(0, 4, level=RACK), RACKS[0])), on=PLAIN)
    second = queued(choice(member(1, 4, level=RACK), RACKS[1]))
    assert names_both(refusal(second, PLAIN, after(stored(first))))


def whole_rack(pod: Json) -> Json:
    """The pod of a gang that holds its rack whole."""
    return o.annotated(pod, {"bayplan.dev/reserve": "domain"})


def test_a_rack_of_a_plan_does_not_count_as_chosen() -> None:
    """The first pod is pinned to a rack which its gang holds; it may move to that of the second."""
    first = asked(whole_rack(member(0, 4, level=RACK)))
    ((domain,),) = (held.domains for held in holding(first).reservations)
    assert domain[-1] in str(stored(first)["spec"]["affinity"]["nodeAffinity"])
    second = choosing(member(1, 4, level=RACK), next(rack for rack in RACKS if rack != domain[-1]))
    assert refusal(second, holding(first), after(stored(first))) == ""


def test_racks_that_the_user_chose_count_beside_the_rack_of_the_plan() -> None:
    """Two for the first pod, of which its gang holds one, and another for the second."""
    first = asked(whole_rack(choosing(member(0, 4, level=RACK), *RACKS[:2])))
    second = choosing(member(1, 4, level=RACK), RACKS[2])
    assert "No rack has nodes for both" in refusal(second, holding(first), after(stored(first)))


def test_pods_that_choose_a_common_rack_are_placed_in_it() -> None:
    """One of two racks, and one of two others."""
    first = asked(choosing(member(0, 4, level=RACK), *RACKS[:2]))
    second = choosing(member(1, 4, level=RACK), *RACKS[1:3])
    assert refusal(second, holding(first), after(stored(first))) == ""
