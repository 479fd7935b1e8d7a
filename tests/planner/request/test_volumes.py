"""Volumes that pods mount: on which nodes they can be used, as kube-scheduler's volume plugins have it.

Nodes a1, a2 are in zone a, b1, b2 in zone b, eight GPUs each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.manifests.cluster import read
from planner.manifests.pods.pod import shape_of
from planner.manifests.volumes import claim_templates
from planner.model.errors import InputError, Where
from planner.model.podgroup import PodSet
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import gang

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
NODES = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {ZONE: name[0], "kubernetes.io/hostname": name}},
        "status": {"allocatable": {"nvidia.com/gpu": 8, "cpu": 64}},
    }
    for name in ("a1", "a2", "b1", "b2")
]


def term(key: str, *values: str) -> Json:
    """A node selector term of one label."""
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def volume(name: str, *terms: Json, **spec: Any) -> Json:
    """An available volume of 100 GiB and of class `local`, usable on the nodes that match a term."""
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": list(terms)}}} if terms else {}
    metadata = {"name": name, "labels": spec.pop("labels", {})}
    stated = {"capacity": {"storage": "100Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
    status = {"phase": spec.pop("phase", "Available")}
    return {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata,
        "spec": {**stated, **affinity, **spec}, "status": status,
    }  # fmt: skip


def claim(name: str, volume: str = "", storage: str | None = "local", **spec: Any) -> Json:
    """A claim of 10 GiB, bound if it names a volume."""
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    annotations |= spec.pop("annotations", {})
    stated = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}
    volume_name = {"volumeName": volume} if volume else {}
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {**stated, **volume_name, "storageClassName": storage, **spec},
    }  # fmt: skip


def storage_class(
    name: str = "local", *zones: str, provisioner: str = "csi.example.com", **fields: Any
) -> Json:
    """A class with WaitForFirstConsumer that provisions volumes in these zones."""
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}] if zones else []
    return {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": allowed, **fields,
    }  # fmt: skip


LOCAL = storage_class(provisioner="kubernetes.io/no-provisioner")


def mounting(*volumes: Json | str, count: int = 1, gpu: int = 8, name: str = "worker") -> PodSet:
    """Pods that mount claims by name, or volumes as given."""
    stated = [
        {"name": v, "persistentVolumeClaim": {"claimName": v}} if isinstance(v, str) else v for v in volumes
    ]
    limits = {"limits": {"nvidia.com/gpu": str(gpu)}}
    return PodSet(name, count, shape_of({"containers": [{"resources": limits}], "volumes": stated}, Where()))


def cluster(*objects: Json):
    """The nodes and these objects."""
    return read([("c.yaml", [*NODES, *objects])])


def placed(snapshot, *sets: PodSet, **options: Any):
    """The answer for a gang of these pods."""
    return plan(snapshot, gang(*sets, reserve="nodes", **options))


def nodes(answer) -> list[str]:
    """The nodes of the gang."""
    return sorted(assignment.node for assignment in answer.assignments)


def test_a_gang_goes_to_the_zone_of_its_volume():
    """All its pods mount one claim, bound to a volume in zone b; without it zone a would do."""
    snapshot = cluster(claim("data", "pv"), volume("pv", term(ZONE, "b"), phase="Bound"))
    assert nodes(placed(snapshot, mounting("data", count=2))) == ["b1", "b2"]
    assert nodes(placed(snapshot, mounting(count=2))) == ["a1", "a2"]


def test_a_gang_larger_than_the_volumes_zone_is_refused_with_the_volumes_name():
    """Nobody brings the volume to another zone."""
    snapshot = cluster(claim("data", "pv"), volume("pv", term(ZONE, "b"), phase="Bound"))
    answer = placed(snapshot, mounting("data", count=3))
    assert (answer.decision, answer.reason) == ("rejected", "TooLargeForCluster")
    assert answer.obstacles == {"outside zone b, where volume pv of claim data is": 2}


def test_a_gang_waits_where_the_zone_of_its_volume_is_full():
    """The answer names the volume among what is in the way."""
    snapshot = cluster(claim("data", "pv"), volume("pv", term(ZONE, "b"), phase="Bound"))
    first = gang(mounting("data", count=2), name="default/Job/first", reserve="nodes")
    held = reservation_for(snapshot, first, plan(snapshot, first))
    answer = placed(snapshot.with_reservation(held), mounting("data"))
    assert answer.decision == "queued"
    assert "2 are outside zone b, where volume pv of claim data is" in answer.message


def test_a_volume_on_one_node_takes_its_pods_there():
    """A local volume's node affinity names the host."""
    snapshot = cluster(claim("data", "pv"), volume("pv", term("kubernetes.io/hostname", "a2"), phase="Bound"))
    assert nodes(placed(snapshot, mounting("data", gpu=1))) == ["a2"]


def test_terms_of_a_volume_are_alternatives():
    """ORed, over several labels."""
    terms = (term(ZONE, "b"), term("kubernetes.io/hostname", "a2"))
    snapshot = cluster(claim("data", "pv"), volume("pv", *terms, phase="Bound"))
    assert nodes(placed(snapshot, mounting("data", count=3))) == ["a2", "b1", "b2"]


def test_two_claims_must_both_be_reached():
    """One volume in zone a and one in zone b: no node reaches both."""
    volumes = [volume(f"pv-{zone}", term(ZONE, zone), phase="Bound") for zone in "ab"]
    snapshot = cluster(claim("one", "pv-a"), claim("two", "pv-b"), *volumes)
    assert placed(snapshot, mounting("one", "two")).decision == "rejected"


@pytest.mark.parametrize(
    ("labels", "where"),
    [
        ({ZONE: "b"}, ["b1", "b2"]),
        ({"failure-domain.beta.kubernetes.io/zone": "b"}, ["b1", "b2"]),
        ({ZONE: "a__b"}, ["a1", "a2"]),
        ({"topology.kubernetes.io/region": "r"}, []),
        ({"team": "x"}, ["a1", "a2"]),
    ],
)
def test_zone_labels_of_a_volume_count_as_in_volume_zone(labels, where):
    """Today's labels and the former ones, several zones with `__` between them; a label that the nodes lack
    is met by none of those that tell their zone."""
    snapshot = cluster(claim("data", "pv"), volume("pv", labels=labels, phase="Bound"))
    assert nodes(placed(snapshot, mounting("data", count=2))) == where


def test_zone_labels_of_a_volume_do_not_matter_to_nodes_that_tell_no_zone():
    """A cluster of one zone whose nodes are not labelled."""
    bare = [{**node, "metadata": {"name": node["metadata"]["name"]}} for node in NODES]
    snapshot = read(
        [("c.yaml", [*bare, claim("data", "pv"), volume("pv", labels={ZONE: "x"}, phase="Bound")])]
    )
    assert len(nodes(placed(snapshot, mounting("data", count=4)))) == 4


def test_a_class_that_waits_makes_volumes_in_its_topologies():
    """`allowedTopologies` of a class with a provisioner."""
    snapshot = cluster(claim("data"), storage_class("local", "b"))
    assert nodes(placed(snapshot, mounting("data", count=2))) == ["b1", "b2"]
    answer = placed(snapshot, mounting("data", count=3))
    assert answer.obstacles == {"outside zone b where class local makes volumes (claim data)": 2}
    anywhere = cluster(claim("data"), storage_class("local"))
    assert nodes(placed(anywhere, mounting("data", count=4))) == ["a1", "a2", "b1", "b2"]


def test_an_available_volume_serves_beside_those_that_the_class_makes():
    """kube-scheduler looks for a volume first, and else has one made."""
    snapshot = cluster(
        claim("data"), storage_class("local", "b"), volume("pv", term("kubernetes.io/hostname", "a2"))
    )
    assert nodes(placed(snapshot, mounting("data", count=3))) == ["a2", "b1", "b2"]


def test_local_volumes_that_nobody_makes_must_be_there():
    """Without a provisioner the pod goes where an available volume of the class is."""
    snapshot = cluster(claim("data"), LOCAL, volume("pv", term("kubernetes.io/hostname", "b1")))
    assert nodes(placed(snapshot, mounting("data"))) == ["b1"]


@pytest.mark.parametrize(
    "other",
    [
        {"phase": "Released"},
        {"storageClassName": "other"},
        {"capacity": {"storage": "1Gi"}},
        {"accessModes": ["ReadOnlyMany"]},
        {"volumeMode": "Block"},
        {"claimRef": {"namespace": "default", "name": "another"}},
    ],
)
def test_a_volume_that_does_not_serve_the_claim_is_none(other):
    """The gang waits: a volume may come, and the answer says which is missing."""
    snapshot = cluster(claim("data"), LOCAL, volume("pv", term("kubernetes.io/hostname", "b1"), **other))
    answer = placed(snapshot, mounting("data"))
    assert answer.decision == "queued"
    assert "All 4 nodes are without an available volume of class local for claim data" in answer.message


def test_a_volume_that_is_kept_for_the_claim_serves_it():
    """`claimRef` names it before the two are bound; the claim's selector does not matter then."""
    kept = volume(
        "pv", term("kubernetes.io/hostname", "b1"), claimRef={"namespace": "default", "name": "data"}
    )
    snapshot = cluster(claim("data"), LOCAL, kept)
    assert nodes(placed(snapshot, mounting("data"))) == ["b1"]


def test_a_claims_selector_chooses_among_volumes():
    """By the volumes' labels."""
    volumes = [
        volume(f"pv-{host}", term("kubernetes.io/hostname", host), labels={"disk": disk})
        for host, disk in (("a1", "hdd"), ("b2", "nvme"))
    ]
    snapshot = cluster(claim("data", selector={"matchLabels": {"disk": "nvme"}}), LOCAL, *volumes)
    assert nodes(placed(snapshot, mounting("data"))) == ["b2"]


def test_a_claim_whose_volume_is_being_made_is_tied_to_the_node_that_was_selected():
    """The annotation that kube-scheduler writes; it may be taken back, so others wait."""
    selected = {"volume.kubernetes.io/selected-node": "b2"}
    snapshot = cluster(claim("data", annotations=selected), storage_class())
    assert nodes(placed(snapshot, mounting("data"))) == ["b2"]
    assert placed(snapshot, mounting("data", count=2)).decision == "queued"


def test_a_claim_of_a_class_that_binds_at_once_is_waited_for():
    """It is planned, within the class's topologies, with a warning."""
    snapshot = cluster(claim("data"), storage_class("local", "b", volumeBindingMode="Immediate"))
    answer = placed(snapshot, mounting("data"))
    assert nodes(answer) == ["b1"]
    warning = (
        "the claim data (class local, which binds at once) has no volume yet: its pods wait until it has"
    )
    assert warning in answer.warnings


def test_the_default_class_serves_a_claim_that_names_none():
    """By its annotation."""
    default = storage_class("fast", "b")
    default["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    snapshot = cluster(claim("data", storage=None), storage_class("slow", "a"), default)
    assert nodes(placed(snapshot, mounting("data"))) == ["b1"]


def test_an_ephemeral_volume_takes_the_class_of_its_template():
    """Each pod gets a claim of its own."""
    claim_template = {"metadata": {}, "spec": claim("x")["spec"]}
    snapshot = cluster(storage_class("local", "b"))
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": claim_template}}
    assert nodes(placed(snapshot, mounting(scratch, count=2))) == ["b1", "b2"]


def test_pods_of_a_stateful_set_go_where_their_own_volumes_are():
    """Claims CLAIM-SET-ORDINAL; a pod whose claim does not exist yet goes where the class makes volumes."""
    snapshot = cluster(
        storage_class("local", "a"), claim("data-web-1", "pv"), volume("pv", term(ZONE, "b"), phase="Bound")
    )
    uses = claim_templates([{"metadata": {"name": "data"}, "spec": claim("x")["spec"]}], "web", 0, Where())
    for ordinal, where in enumerate(("a1", "b1", "a1")):
        pod = replace(mounting().shape, volumes=uses)
        replica = gang(PodSet("main", 1, pod), name=f"default/StatefulSet/web/{ordinal}")
        assert nodes(plan(snapshot, replica)) == [where]


def test_a_claim_for_one_pod_is_refused_to_several():
    """`ReadWriteOncePod`: kube-scheduler would start one of them."""
    snapshot = cluster(claim("data", "pv", accessModes=["ReadWriteOncePod"]), volume("pv", phase="Bound"))
    answer = placed(snapshot, mounting("data", count=2))
    assert (answer.decision, answer.reason) == ("rejected", "ClaimTakesOnePod")
    assert "2 pods mount the claim data, which is ReadWriteOncePod" in answer.message
    assert placed(snapshot, mounting("data")).decision == "admitted"


@pytest.mark.parametrize(
    ("mode", "decision"), [("ReadWriteOncePod", "queued"), ("ReadWriteMany", "admitted")]
)
def test_a_claim_for_one_pod_is_waited_for_while_a_bound_pod_mounts_it(mode, decision):
    """kube-scheduler binds no second pod to any node, until the first has ended."""
    mounted = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    other = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "first", "namespace": "default"}}
    running = {**other, "spec": {"nodeName": "b1", "volumes": [mounted]}, "status": {"phase": "Running"}}
    objects = (volume("pv"), claim("data", "pv", accessModes=[mode]))
    answer = placed(cluster(*objects, running), mounting("data", gpu=1))
    assert answer.decision == decision
    if decision == "queued":
        assert "without claim data (ReadWriteOncePod), which pod default/first mounts" in answer.message
    ended = {**running, "status": {"phase": "Succeeded"}}
    assert placed(cluster(*objects, ended), mounting("data", gpu=1)).decision == "admitted"


def test_what_is_not_known_is_said_and_not_planned():
    """A claim that is not there, in a cluster that has others; a volume that is not there."""
    snapshot = cluster(claim("data", "gone"))
    assert (
        "the claim other is not known: its pods wait for it, and its volume is not planned"
        in placed(snapshot, mounting("other")).warnings
    )
    assert (
        "the volume gone of claim data is not known: where it is cannot be planned"
        in placed(snapshot, mounting("data")).warnings
    )
    assert not placed(cluster(), mounting("other")).warnings, "cluster files without any volumes say nothing"


def test_a_place_that_no_longer_reaches_the_volume_is_planned_anew():
    """The claim was bound to a volume in another zone since."""
    before = cluster(claim("data"), storage_class())
    group = gang(mounting("data"), reserve="nodes")
    held = reservation_for(before, group, plan(before, group))
    assert [a.node for a in held.assignments] == ["a1"]
    after = cluster(claim("data", "pv"), storage_class(), volume("pv", term(ZONE, "b"), phase="Bound"))
    again = plan(after.with_reservation(held), group)
    assert (nodes(again), again.replayed) == (["b1"], False)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (volume("pv", nodeAffinity={"required": {"nodeSelectorTerms": "x"}}), "spec.nodeAffinity.required"),
        (claim("data", accessModes="x"), "spec.accessModes"),
        (storage_class(allowedTopologies=[{"matchLabelExpressions": {}}]), "allowedTopologies[0]"),
    ],
)
def test_a_malformed_object_is_named(document, field):
    """File, object and field."""
    with pytest.raises(InputError) as refused:
        cluster(document)
    assert f"{document['metadata']['name']}: {field}" in str(refused.value)
