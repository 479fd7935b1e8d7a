"""Pods of one PodGroup that come one by one, each of its own kind: the gang grows and keeps what it has.

r1: a b c (8 GPUs each)    r2: d e f
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from planner.devices.claims import ClaimRequest, Claims, ResourceClaim
from planner.ledger.conflicts import Wish
from planner.model.labels import Requirement
from planner.model.pod import BoundPod, VolumeClaim
from planner.model.reservation import Reservation
from planner.model.topology import HOSTNAME
from planner.model.volumes import PersistentVolume, Volumes
from tests.builders import amounts, cluster
from tests.policies.helpers import policies
from tests.webhook.workloads import objects as o
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision, Phase
from webhook.admission.environment import Environment
from webhook.wire.request import from_object

GANG = "team/PodGroup/serve"


def group(*subgroups: Any, **spec: Any) -> Any:
    """The PodGroup that the pods name."""
    metadata = {"name": "serve", "namespace": "team"}
    return {"kind": "PodGroup", "metadata": metadata, "spec": {"subGroups": list(subgroups), **spec}}


def pod(name: str, role: str, gpus: int) -> Any:
    """A pod that plays a role in the gang."""
    manifest: Any = o.annotated(o.obj("v1", "Pod", o.pod_template(gpus)["spec"]), {"pod-group-name": "serve"})
    manifest["metadata"] |= {"name": name, "labels": {"kai.scheduler/subgroup-name": role}}
    return manifest


def ask(snapshot: Snapshot, of: Any, obj: Any, phase: Phase = "mutate") -> Decision:
    """The decision on a pod that is created now."""
    request = from_object(obj, uid="uid")
    around = Environment(podgroups={("team", "serve"): of})
    return decide(request, policies("node-affinity"), snapshot, phase, around)


def applied(snapshot: Snapshot, of: Any, obj: Any, *, starts: bool = False) -> Snapshot:
    """The cluster once the pod is stored, bound where it was sent if it `starts` at once."""
    decision = ask(snapshot, of, obj)
    assert decision.response.allowed, decision.response.message
    stored = decision.object
    assert stored is not None
    for step in decision.steps:
        if isinstance(step, Wish):
            snapshot = snapshot.with_reservation(step.reservation)
    if starts:
        terms = stored["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        node = terms["nodeSelectorTerms"][0]["matchExpressions"][-1]["values"][0]
        limits = obj["spec"]["containers"][0]["resources"]["limits"]
        gpus = int(limits.get(o.GPU, 0))
        notes = stored["metadata"]["annotations"]
        bound = BoundPod(
            f"team/{obj['metadata']['name']}",
            node,
            amounts(gpu=gpus, pods=1),
            notes["bayplan.dev/reservation"],
        )
        snapshot = snapshot.with_pod(bound)
    return snapshot


def seats(snapshot: Snapshot) -> Counter[tuple[str, str]]:
    """How many seats the gang holds, by PodSet and node."""
    held = snapshot.holding(GANG)
    return Counter({(a.pod_set, a.node): a.count for a in held.assignments}) if held else Counter()


def stays(before: Counter[tuple[str, str]], after: Counter[tuple[str, str]]) -> bool:
    """Whether each promise is kept: a seat is on its node, and a member's own seat is still its part's."""
    on_nodes = [Counter(node for _, node in seats.elements()) for seats in (before, after)]
    own = Counter({seat: count for seat, count in before.items() if seat[0] != "others"})
    return own <= after and on_nodes[0] <= on_nodes[1]


def hold(snapshot: Snapshot) -> Reservation:
    """What the gang holds."""
    held = snapshot.holding(GANG)
    assert held is not None
    return held


RACKS = "r1: a b c\nr2: d e f"
SERVING = (pod("p", "prefill", 4), pod("d", "decode", 4), pod("r", "router", 0))


@pytest.mark.parametrize("starts", [False, True], ids=["waiting", "running"])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_prefill_decode_and_router_share_a_host_in_whatever_order_they_come(
    order: tuple[int, ...], starts: bool
) -> None:
    """Three pods of one PodGroup in one node: taken to be alike they would never fit, or take three hosts."""
    snapshot = cluster(RACKS)
    of = group(minMember=3, topologyPolicy={"scope": "node"})
    for place in order:
        before = seats(snapshot)
        snapshot = applied(snapshot, of, SERVING[place], starts=starts)
        assert stays(before, seats(snapshot))
    assert len({node for _, node in seats(snapshot)}) == 1
    assert sum(seats(snapshot).values()) == 3


def test_the_host_of_the_first_is_kept_for_the_others() -> None:
    """No other gang gets the free half of the host between prefill and decode."""
    snapshot = applied(cluster("r1: a"), group(minMember=3, topologyPolicy={"scope": "node"}), SERVING[0])
    other = ask(snapshot, group(), o.annotated(o.obj("v1", "Pod", o.pod_template(4)["spec"]), {}))
    assert other.plan is not None
    assert other.plan.decision == "queued"


def test_a_second_pod_of_a_gang_with_subgroups_leaves_every_seat() -> None:
    """Prefill twice, decode and router: the reservation is as large after each pod as after the first."""
    parts = (("prefill", 2, 8), ("decode", 1, 8), ("router", 1, 8))
    of = group(*({"name": name, "minMember": count} for name, count, _ in parts))
    snapshot = cluster(RACKS)
    for number, (name, gpus) in enumerate([("prefill", 8), ("decode", 4), ("router", 1), ("prefill", 8)]):
        snapshot = applied(snapshot, of, pod(f"p{number}", name, gpus))
        assert sum(seats(snapshot).values()) == 4
        assert {part for part, _ in seats(snapshot)} == {"prefill", "decode", "router"}


def test_each_pod_is_sent_to_a_seat_of_its_own_subgroup() -> None:
    """Decode is not sent to the node that prefill holds, though it would fit there."""
    of = group({"name": "prefill", "minMember": 1}, {"name": "decode", "minMember": 1})
    of["metadata"]["annotations"] = {"bayplan.dev/reserve": "nodes"}
    snapshot = applied(cluster(RACKS), of, pod("p", "prefill", 8))
    (own,) = (node for part, node in seats(snapshot) if part == "decode")
    stored = ask(snapshot, of, pod("d", "decode", 6)).object
    assert stored is not None
    assert stored["metadata"]["annotations"]["bayplan.dev/pod-set"] == "decode"
    terms = stored["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert own in str(terms)


def test_the_validating_call_of_a_pod_takes_no_further_seat() -> None:
    """The pod has the reservation id of the mutating call."""
    of = group(minMember=3)
    snapshot = applied(cluster(RACKS), of, SERVING[0])
    decision = ask(snapshot, of, SERVING[1])
    snapshot = applied(snapshot, of, SERVING[1])
    assert decision.object is not None
    again = ask(snapshot, of, decision.object, "validate")
    assert again.response.allowed
    assert [step for step in again.steps if isinstance(step, Wish)] == []


def of_two() -> tuple[Snapshot, Any]:
    """A gang of two pods of 8 GPUs, both bound, and its PodGroup; other nodes are free."""
    of = group(minMember=2, topologyPolicy={"scope": "rack"})
    of["metadata"]["annotations"] = {"bayplan.dev/reserve": "nodes"}
    snapshot = cluster(RACKS)
    for name in ("first", "second"):
        snapshot = applied(snapshot, of, pod(name, "worker", 8), starts=True)
    assert sum(seats(snapshot).values()) == 2
    return snapshot, of


@pytest.mark.parametrize("name", ["third", ""], ids=["named", "generated"])
def test_a_pod_beyond_the_number_of_its_group_has_no_seat_of_it(name: str) -> None:
    """Both seats have a pod: a third one would use GPUs that no reservation counts."""
    snapshot, of = of_two()
    third = pod("third", "worker", 8)
    held = snapshot.holding(GANG)
    assert held is not None
    third["metadata"] |= {"name": name, "generateName": "third-"}
    third["metadata"]["annotations"]["bayplan.dev/reservation"] = held.id
    decision = ask(snapshot, of, third)
    assert decision.plan is not None
    (placed,) = decision.plan.placed
    assert placed.group.name.startswith("team/Pod/")
    assert {a.node for a in placed.answer.assignments}.isdisjoint(node for _, node in seats(snapshot))
    assert "each of the 2 seats of team/PodGroup/serve has a pod" in " ".join(decision.response.warnings)


def test_a_pod_that_replaces_one_that_has_ended_has_its_seat() -> None:
    """The pod that has ended is bound no more."""
    snapshot, of = of_two()
    (ended,) = (bound for bound in snapshot.pods if bound.name == "team/first")
    decision = ask(snapshot.without_pod(ended), of, pod("third", "worker", 8))
    assert decision.plan is not None
    assert [placed.group.name for placed in decision.plan.placed] == [GANG]


def test_pods_that_claim_devices_join_their_gang_one_by_one() -> None:
    """The seats of the gang are resolved in the cluster, the pod that arrives is not yet: both become one."""
    of, snapshot = group(minMember=3), cluster(RACKS)
    for name in ("a", "b", "c"):
        claiming = pod(name, "main", 8)
        claiming["spec"]["resourceClaims"] = [{"name": "nic", "resourceClaimTemplateName": "nics"}]
        before = seats(snapshot)
        snapshot = applied(snapshot, of, claiming)
        assert stays(before, seats(snapshot))
        assert sum(seats(snapshot).values()) == 3
        assert ask(snapshot, of, claiming, "validate").response.allowed


def test_a_pod_that_claims_more_than_a_seat_has_moves_no_other() -> None:
    """Its limits fit the seat of a pod with one GPU, the two GPUs of its claim do not."""
    claims = Claims({}, {"team/two": ResourceClaim((ClaimRequest("gpu.nvidia.com", 2),))}, {})
    snapshot = cluster(RACKS)
    snapshot = snapshot.evolve(base=replace(snapshot.base, claims=claims), changed_nodes=frozenset())
    of = group(minMember=2)
    snapshot = applied(snapshot, of, pod("a", "main", 1))
    before = seats(snapshot)
    claiming = pod("b", "main", 0)
    claiming["spec"]["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "two"}]
    decision = ask(snapshot, of, claiming)
    assert any("asks for more than a seat of" in warning for warning in decision.response.warnings)
    assert seats(applied(snapshot, of, claiming)) == before


def on(node: str, obj: Any) -> Any:
    """The pod, which may be on this node only."""
    obj["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    return obj


@pytest.mark.parametrize("gpus", [4, 8])
def test_a_pod_that_no_seat_of_its_gang_is_for_moves_no_other(gpus: int) -> None:
    """Both seats are in r1, and one has no pod. The whole gang moved to r2, away from the pod that runs."""
    of = group(minMember=2, topologyPolicy={"scope": "rack"})
    snapshot = applied(cluster(RACKS), of, pod("first", "worker", 8), starts=True)
    snapshot = applied(snapshot, of, pod("second", "worker", 8))
    before = seats(snapshot)
    third = on("e", pod("third", "worker", gpus))
    decision = ask(snapshot, of, third)
    assert "may not be on the nodes of the seats of team/PodGroup/serve: planned by itself" in (
        " ".join(decision.response.warnings)
    )
    assert seats(applied(snapshot, of, third)) == before
    assert ask(snapshot, of, decision.object, "validate").response.allowed


def test_a_pod_whose_volume_is_elsewhere_moves_no_other() -> None:
    """As with a node selector: its volume is on the node e."""
    on_e = Requirement("kubernetes.io/hostname", "In", ("e",))
    claim = VolumeClaim("team/data", volume="disk", bound=True)
    volumes = Volumes({claim.name: claim}, {"disk": PersistentVolume("disk", affinity=((on_e,),))})
    snapshot = cluster(RACKS)
    snapshot = snapshot.evolve(base=replace(snapshot.base, volumes=volumes), changed_nodes=frozenset())
    of = group(minMember=2, topologyPolicy={"scope": "rack"})
    for name in ("first", "second"):
        snapshot = applied(snapshot, of, pod(name, "worker", 8))
    before = seats(snapshot)
    third = pod("third", "worker", 8)
    third["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    assert seats(applied(snapshot, of, third)) == before


def test_a_pod_that_may_not_be_on_a_kept_seat_has_one_beside_it() -> None:
    """The seat that is kept for the second pod is on a; this one may be on b, in the same rack."""
    of = group(minMember=2, topologyPolicy={"scope": "rack"})
    snapshot = applied(cluster(RACKS), of, pod("first", "worker", 4))
    assert seats(snapshot) == {("worker", "a"): 1, ("others", "a"): 1}
    after = seats(applied(snapshot, of, on("b", pod("second", "worker", 4))))
    assert sorted(node for _, node in after.elements()) == ["a", "b"]


def test_a_pod_for_which_the_nodes_of_its_gang_are_too_small_has_one_beside_them() -> None:
    """The gang requires a rack and holds half of a node of it; three whole nodes of this rack are free."""
    of = group(minMember=2, topologyPolicy={"scope": "rack"})
    snapshot = applied(cluster(RACKS), of, pod("decode", "decode", 4))
    assert hold(snapshot).domains == (("r1", "a"),)
    snapshot = applied(snapshot, of, pod("prefill", "prefill", 8))
    assert seats(snapshot) == {("decode", "a"): 1, ("prefill", "b"): 1}
    assert hold(snapshot).domains == (("r1",),)


def rule(kind: str, role: str, key: str) -> dict[str, Any]:
    """An affinity, or anti-affinity, to the pods of a role of the gang."""
    selector = {"matchLabels": {"kai.scheduler/subgroup-name": role}}
    terms = [{"topologyKey": key, "labelSelector": selector}]
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


PORT = {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
SPREAD = {
    "topologySpreadConstraints": [
        {
            "topologyKey": "rack",
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"kai.scheduler/subgroup-name": "decode"}},
        }
    ]
}


@pytest.mark.parametrize("starts", [False, True], ids=["waiting", "running"])
@pytest.mark.parametrize(
    ("spec", "node"),
    [
        (rule("podAntiAffinity", "decode", HOSTNAME), "a"),
        (rule("podAntiAffinity", "prefill", HOSTNAME), "b"),
        (rule("podAffinity", "prefill", "rack"), "a"),
        (PORT, "a"),
        (SPREAD, "a"),
    ],
)
def test_the_rules_of_a_pod_do_not_apply_to_the_other_seats_of_its_gang(
    spec: dict[str, Any], node: str, starts: bool
) -> None:
    """Two prefill pods have seats on one node, and stay there; decode is near them, or away from them."""
    snapshot, of = cluster(RACKS), group(minMember=3)
    for number in range(2):
        snapshot = applied(snapshot, of, pod(f"prefill-{number}", "prefill", 1), starts=starts)
    decode = pod("decode", "decode", 0)
    decode["spec"] |= spec
    snapshot = applied(snapshot, of, decode)
    assert seats(snapshot) == Counter({("prefill", "a"): 1, ("prefill-2", "a"): 1, ("decode", node): 1})
    labels = {name: dict(traits.labels) for name, traits in hold(snapshot).traits}
    assert labels["prefill"]["kai.scheduler/subgroup-name"] == "prefill"
