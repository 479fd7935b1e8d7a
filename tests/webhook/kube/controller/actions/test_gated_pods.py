"""Pods let in and freed: affinity tightened as the API server allows, a former plan's terms taken away."""

from __future__ import annotations

import orjson
import pytest

from planner.model.labels import Requirement
from tests.builders import gang, pod_set, racks, shape
from tests.webhook.kube.worlds import booked
from webhook.kube.controller.actions.gated_pods import let_in, tightened
from webhook.placement.planning import plan_workload
from webhook.placement.pod_affinity import (
    PlacementTerms,
    remove_placement_affinity,
    terms_of_domains,
    without_former_placement,
    without_placement_affinity,
)
from webhook.placement.pod_gang import gang_name_of, held_for, replay_for_pod
from webhook.placement.stamp import annotate
from webhook.workloads import read
from webhook.workloads.keys.annotation_keys import GANG_OF, PLACEMENT, QUEUED_GATE, RESERVATION

R1 = {"key": "rack", "operator": "In", "values": ["r1"]}
R2 = {"key": "rack", "operator": "In", "values": ["r2"]}
SSD = {"key": "disk", "operator": "In", "values": ["ssd"]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def term(*pairs):
    return tuple(Requirement(key, "In", (value,)) for key, value in pairs)


def required(*terms):
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": list(t)} for t in terms]}}}


def gated(affinity=None, *gates):
    names = [{"name": gate} for gate in (QUEUED_GATE, *gates)]
    return {"metadata": {"resourceVersion": "7"}, "spec": {"schedulingGates": names, "affinity": affinity}}


def test_bayplans_gate_is_removed_and_others_stay():
    """Gates of other systems are theirs to remove."""
    patch = let_in(gated(None, "other.example/gate"), (), (), {})
    assert patch["spec"] == {"schedulingGates": [{"name": "other.example/gate"}]}
    assert let_in(gated(), (), (), {})["spec"] == {"schedulingGates": None}


def test_the_patch_holds_only_for_the_version_that_was_read():
    """A pod that changed meanwhile is read again."""
    patch = let_in(gated(), (term(("rack", "r1")),), (), {RESERVATION: "bp-1"})
    assert patch["metadata"] == {"resourceVersion": "7", "annotations": {RESERVATION: "bp-1"}}
    assert patch["spec"]["affinity"] == required([R1])


@pytest.mark.parametrize(
    ("former", "terms", "after"),
    [
        ([], [term(("rack", "r1")), term(("rack", "r2"))], [[R1], [R2]]),
        ([[SSD]], [term(("rack", "r1"))], [[SSD, R1]]),
        ([[SSD], [R2]], [term(("rack", "r1"))], [[SSD, R1], [R2, R1]]),
        ([[R1]], [term(("rack", "r1"))], [[R1]]),
    ],
)
def test_each_existing_term_is_tightened_and_none_is_added(former, terms, after):
    """The API server refuses another number of terms, and any change but further requirements."""
    stated = [{"matchExpressions": expressions} for expressions in former]
    joined = tightened(stated, terms, ["n1"])
    assert [node_term["matchExpressions"] for node_term in joined] == after


def test_several_domains_are_said_by_hostname_where_the_pod_has_terms_already():
    """The pod's terms and several terms of the plan cannot be combined in another way."""
    stated = [{"matchExpressions": [SSD]}]
    (joined,) = tightened(stated, [term(("rack", "r1")), term(("rack", "r2"))], ["n1", "n2"])
    host = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1", "n2"]}
    assert joined["matchExpressions"] == [SSD, host]


def test_a_domains_terms_are_its_whole_path_and_a_hosts_its_name():
    """As the plan writes them."""
    levels = ("zone", "rack", "kubernetes.io/hostname")
    assert terms_of_domains(levels, [("z", "r1")]) == PlacementTerms((term(("zone", "z"), ("rack", "r1")),))
    assert terms_of_domains(levels, [("z", "r1", "n1")]) == PlacementTerms(hosts=frozenset({"n1"}))


def test_terms_of_a_former_plan_are_removed_and_the_users_stay():
    """What was added to each term is removed again."""
    pins = PlacementTerms((term(("rack", "r1")),))
    assert remove_placement_affinity(required([R1]), pins) == {}
    assert remove_placement_affinity(required([SSD, R1]), pins) == required([SSD])
    assert remove_placement_affinity(required([SSD]), pins) == required([SSD])
    affinity = {**required([R1]), "podAffinity": {"x": 1}}
    assert remove_placement_affinity(affinity, pins) == {"podAffinity": {"x": 1}}


HOSTS = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1", "n2"]}
BY_NAME = {"key": "metadata.name", "operator": "In", "values": ["n3"]}


def test_hosts_are_known_by_label_and_by_name():
    """A node without a hostname label is selected by a field, in a term of its own."""
    pins = PlacementTerms(hosts=frozenset({"n1", "n2", "n3"}))
    affinity = required([HOSTS])
    terms = affinity["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    terms.append({"matchFields": [BY_NAME]})
    assert remove_placement_affinity(affinity, pins) == {}
    assert remove_placement_affinity(required([SSD, HOSTS]), pins) == required([SSD])
    other_hosts = {**HOSTS, "values": ["n1", "n9"]}
    assert remove_placement_affinity(required([other_hosts]), pins) == required([other_hosts]), (
        "a person's own"
    )


def test_a_gated_pod_is_pinned_to_a_nameless_host_by_field():
    """`metadata.name` is no label: among the expressions it would match nothing."""
    by_name = (Requirement("metadata.name", "In", ("n3",)),)
    patch = let_in(gated(), (by_name,), (), {})
    terms = patch["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert terms == [{"matchFields": [BY_NAME]}]
    assert tightened([{"matchExpressions": [SSD]}], (by_name,), ()) == [
        {"matchExpressions": [SSD], "matchFields": [BY_NAME]}
    ]


def test_a_gang_is_freed_of_its_plan_for_planning():
    """A PodSet with only the plan's term has no requirement left; another keeps its own."""
    ours = term(("rack", "r1"))
    own = term(("disk", "ssd"))
    group = gang(
        pod_set(1, shape(gpu=8, affinity=(ours,)), name="a"),
        pod_set(1, shape(gpu=8, affinity=((*own, *ours),)), name="b"),
    )
    freed = without_placement_affinity(group, PlacementTerms((ours,)))
    assert [part.shape.affinity for part in freed.pod_sets] == [(), (own,)]


def made_by(version, kind):
    """The ownerReferences of a pod of such a controller."""
    return [{"apiVersion": version, "kind": kind, "name": "x", "uid": "1", "controller": True}]


def arriving(snapshot, former):
    """A pod whose template was stamped when its gang held `former`."""
    (held,) = snapshot.reservations
    note = orjson.dumps({"decision": "admitted", "topology": "topo", "reserves": [former]}).decode()
    return {
        "kind": "Pod",
        "metadata": {
            "annotations": {RESERVATION: held.id, PLACEMENT: note},
            "ownerReferences": made_by("batch/v1", "Job"),
        },
        "spec": {"affinity": required([{"key": "rack", "operator": "In", "values": former}])},
    }


def test_a_pod_that_arrives_after_its_gang_moved_is_free_of_the_old_place():
    """Policies then write the current plan."""
    snapshot = booked(racks(2, 2), gang(2, required="rack"))
    assert without_former_placement(arriving(snapshot, ["r2"]), snapshot, "default")["spec"]["affinity"] == {}


def test_a_pod_of_a_gang_of_single_nodes_is_freed_when_one_of_them_changed():
    """The template names the hosts of the first plan."""
    snapshot = booked(racks(1, 3), gang(2, reserve="nodes"))
    (held,) = snapshot.reservations
    former = ["r1-n2", "r1-n3"]
    note = {"decision": "admitted", "topology": "topo", "reserves": [], "nodes": former}
    pod = arriving(snapshot, ["-"])
    pod["metadata"]["annotations"][PLACEMENT] = orjson.dumps(note).decode()
    host = {"key": "kubernetes.io/hostname", "operator": "In", "values": former}
    pod["spec"]["affinity"] = required([SSD, host])
    assert {seat.node for seat in held.assignments} == {"r1-n1", "r1-n2"}
    assert without_former_placement(pod, snapshot, "default")["spec"]["affinity"] == required([SSD])


def replica_pod(index, ids, *racks_told):
    """A worker of a LeaderWorkerSet, whose template tells the ids and places of the replicas that had one."""
    note = {"decision": "admitted", "topology": "topo", "reserves": [[rack] for rack in racks_told]}
    labels = {
        "leaderworkerset.sigs.k8s.io/name": "serve",
        "leaderworkerset.sigs.k8s.io/group-index": str(index),
    }
    terms = [[{"key": "rack", "operator": "In", "values": [rack]}] for rack in racks_told]
    return {
        "kind": "Pod",
        "metadata": {
            "labels": labels,
            "annotations": {RESERVATION: ",".join(ids), PLACEMENT: orjson.dumps(note).decode()},
            "ownerReferences": made_by("apps/v1", "StatefulSet"),
        },
        "spec": {"affinity": required(*terms)},
    }


def test_a_replicas_pod_keeps_its_own_replicas_place_only():
    """The template states the placements of all replicas."""
    names = [f"default/LeaderWorkerSet/serve/{index}" for index in range(2)]
    snapshot = booked(racks(2, 2), *(gang(2, name=name, required="rack") for name in names))
    ids = [reservation.id for reservation in snapshot.reservations]
    for index, rack in enumerate(("r1", "r2")):
        pod = replica_pod(index, ids, "r1", "r2")
        held, is_known = held_for(snapshot, pod, "default")
        assert ([reservation.gang for reservation in held], is_known) == ([names[index]], True)
        terms = without_former_placement(pod, snapshot, "default")["spec"]["affinity"]
        assert terms == {}, f"{rack} is written by the policies"


def test_a_pod_finds_the_place_of_its_gang_without_reading_those_of_all_gangs():
    """With 10,000 reservations, that took 4 ms for each pod: by the ids that it names, and by its replica."""
    names = [f"default/LeaderWorkerSet/serve/{index}" for index in range(2)]
    snapshot = booked(racks(2, 2), *(gang(2, name=name, required="rack") for name in names))
    ids = [reservation.id for reservation in snapshot.reservations]
    vars(snapshot)["reservations"] = None  # cannot be read
    for own_ids, labels in ((ids, {}), (ids[:1], {"labels": {}})):
        pod = replica_pod(0, own_ids, "r1")
        pod["metadata"] |= labels
        assert [held.gang for held in held_for(snapshot, pod, "default")[0]] == names[:1]


def test_a_pod_of_a_replica_without_a_place_waits_free_of_the_others_places():
    """It must not go to the rack of the first replica."""
    first = gang(2, name="default/LeaderWorkerSet/serve/0", required="rack")
    snapshot = booked(racks(1, 2), first)
    pod = replica_pod(1, [snapshot.reservations[0].id], "r1")
    assert held_for(snapshot, pod, "default") == ((), True)
    assert without_former_placement(pod, snapshot, "default")["spec"]["affinity"] == {}
    own = gang(1, name="default/Pod/x")
    plan = replay_for_pod(snapshot, pod, "default", own)
    assert (plan.decision, plan.first.group.name) == ("queued", "default/LeaderWorkerSet/serve/1")


def test_a_leader_that_its_own_webhook_has_not_labelled_yet_is_known_by_its_name():
    """Webhooks run in the order of their names, and Bayplan's runs first."""
    labels = {"leaderworkerset.sigs.k8s.io/name": "serve"}
    owners = {"ownerReferences": made_by("apps/v1", "StatefulSet")}
    pod = {"metadata": {"name": "serve-1", "labels": labels, **owners}}
    assert gang_name_of(pod, "ns") == "ns/LeaderWorkerSet/serve/1"
    assert gang_name_of({"metadata": {"name": "other-1", "labels": labels, **owners}}, "ns") == ""
    assert gang_name_of({"metadata": {"name": "serve-1", **owners}}, "ns") == ""


def test_a_pod_whose_gang_has_not_moved_keeps_its_terms():
    """The template has the current plan."""
    snapshot = booked(racks(2, 2), gang(2, required="rack"))
    pod = arriving(snapshot, ["r1"])
    assert without_former_placement(pod, snapshot, "default") is pod


@pytest.mark.parametrize("note", ["", "{", "[]", '{"reserves": 3}', '{"reserves": [["r2"]]}', "null"])
def test_an_invalid_placement_annotation_removes_nothing(note):
    """Anybody can write the annotation."""
    snapshot = booked(racks(2, 2), gang(2, required="rack"))
    pod = arriving(snapshot, ["r2"])
    pod["metadata"]["annotations"][PLACEMENT] = note
    assert without_former_placement(pod, snapshot, "default") is pod


def test_an_unknown_reservation_removes_nothing():
    """There is no current placement to write instead."""
    snapshot = booked(racks(2, 2), gang(2, required="rack"))
    pod = arriving(snapshot, ["r2"])
    pod["metadata"]["annotations"][RESERVATION] = "bp-of-nobody"
    assert without_former_placement(pod, snapshot, "default") is pod


def test_a_deployment_that_is_one_gang_tells_its_pods_so():
    """Its pods belong to a ReplicaSet, whose kind tells nothing. Another namespace's gang is not believed."""
    limits = {"nvidia.com/gpu": 8}
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"limits": limits}}]}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "ns", "annotations": {"bayplan.dev/gang": "web"}},
        "spec": {"replicas": 2, "template": {"spec": spec}},
    }
    stamped = annotate(body, read(body), plan_workload(racks(1, 2), read(body)), "p@1")
    template = stamped["spec"]["template"]
    assert template["metadata"]["annotations"][GANG_OF] == "ns/Deployment/web"
    pod = {"metadata": {**template["metadata"], "ownerReferences": made_by("apps/v1", "ReplicaSet")}}
    assert gang_name_of(pod, "ns") == "ns/Deployment/web"
    assert gang_name_of(pod, "other") == ""
    assert gang_name_of(template, "ns") == "", "a pod without a controller"
    assert held_for(racks(1, 2), pod, "ns") == ((), True), "planned, and waiting"
    alone = {**body, "metadata": {"name": "web", "namespace": "ns"}}
    plain = annotate(alone, read(alone), plan_workload(racks(1, 2), read(alone)), "p@1")
    assert GANG_OF not in plain["spec"]["template"]["metadata"]["annotations"]
