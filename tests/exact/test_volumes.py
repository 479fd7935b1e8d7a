"""Volumes in the plan, against trying every placement; kube-scheduler's rules written here once more."""

from __future__ import annotations

import os
from dataclasses import replace
from random import Random

import pytest

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.labels import Requirement, Term
from planner.model.node import Node
from planner.model.pod import VolumeClaim, VolumeUse
from planner.model.podgroup import PodSet
from planner.model.topology import HOSTNAME
from planner.model.volumes import PersistentVolume, StorageClass, Volumes
from planner.planning.plan import plan
from tests.builders import gang, node, shape, topology
from tests.exact.solver import Instance, domains, every_placement, on_power_supplies, valid
from tests.exact.verdict import placed

INSTANCES = int(os.environ.get("BAYPLAN_EXACT", "400"))
CHUNKS = 4
ZONE = "topology.kubernetes.io/zone"
CLASSES = {
    "anywhere": StorageClass("anywhere", waits=True),
    "zone-a": StorageClass("zone-a", waits=True, topologies=((Requirement(ZONE, "In", ("a",)),),)),
    "local": StorageClass("local", waits=True, provisions=False),
}


def terms(random: Random, names: list[str]) -> tuple[Term, ...]:
    """None to two terms of one or two requirements, over zone, host and power supply."""
    values = {ZONE: ["a", "b"], HOSTNAME: names, "ups": ["u1", "u2"]}

    def requirement() -> Requirement:
        key = random.choice(list(values))
        return Requirement(key, random.choice(("In", "In", "NotIn")), (random.choice(values[key]),))

    return tuple(
        tuple(requirement() for _ in range(random.choice((1, 1, 2))))
        for _ in range(random.choice((0, 1, 1, 2)))
    )


def random_instance(random: Random) -> Instance:
    """Up to five hosts, some without a zone; up to three claims, mounted by up to two PodSets of three."""
    nodes: list[Node] = []
    for number in range(random.randint(2, 5)):
        labels = on_power_supplies(random, without=0.3)
        if random.random() < 0.8:
            labels[ZONE] = random.choice("ab")
        nodes.append(node(f"n{number}", labels=labels, gpu=random.choice((1, 2, 3)), cpu=8))
    names = [host.name for host in nodes]
    claims, volumes = {}, {}
    for number in range(random.randint(1, 3)):
        name, storage = f"default/c{number}", random.choice(list(CLASSES))
        bound = random.random() < 0.6
        claims[name] = VolumeClaim(name, storage, f"pv{number}" if bound else "", bound, size=5)
        for copy in range(1 if bound else random.randint(0, 2)):
            label = {ZONE: random.choice(("a", "b", "a__b"))} if random.random() < 0.3 else {}
            volume = PersistentVolume(
                f"pv{number}" if bound else f"pv{number}-{copy}", storage, terms(random, names), label,
                size=random.choice((1, 5, 9)), claim=name if bound else "", available=not bound,
            )  # fmt: skip
            volumes[volume.name] = volume
    sets = []
    for place in range(random.randint(1, 2)):
        uses = tuple(VolumeUse(name.partition("/")[2]) for name in claims if random.random() < 0.6)
        pod = replace(shape(gpu=1, cpu=1), volumes=uses)
        sets.append(PodSet(f"s{place}", random.randint(1, 3), pod))
    group = gang(*sets, reserve="nodes", required=random.choice(("", "", "rack", "block")))
    cluster = snapshot(nodes, [topology("block", "rack")], volumes=Volumes(claims, volumes, CLASSES))
    return Instance(cluster, group)


def matches(terms: tuple[Term, ...], host: Node) -> bool:
    """Whether a node meets all of any term."""
    return any(
        all((host.labels.get(r.key) in r.values) == (r.operator == "In") for r in term) for term in terms
    )


def reached(host: Node, claim: VolumeClaim, volumes: Volumes, *, ever: bool) -> bool:
    """Whether a pod with this claim could be bound to the node; `ever`: if volumes that lack were there."""
    if claim.bound:
        volume = volumes.volumes[claim.volume]
        zones = volume.labels.get(ZONE, "").split("__")
        in_zone = ZONE not in host.labels or ZONE not in volume.labels or host.labels[ZONE] in zones
        return in_zone and (not volume.affinity or matches(volume.affinity, host))
    storage = CLASSES[claim.storage_class or ""]
    if storage.provisions and (not storage.topologies or matches(storage.topologies, host)):
        return True
    if ever and not storage.provisions:
        return True
    return any(
        volume.available
        and volume.storage_class == claim.storage_class
        and volume.size >= claim.size
        and (not volume.affinity or matches(volume.affinity, host))
        for volume in volumes.volumes.values()
    )


def fewest_domains(instance: Instance, *, ever: bool = False) -> tuple[int, ...] | None:
    """The least (blocks, racks, hosts) of any placement from which all pods reach their volumes."""
    moment: Snapshot = instance.snapshot
    volumes = moment.base.volumes
    able = {
        (pod_set.name, name)
        for pod_set in instance.group.pod_sets
        for name, host in moment.nodes.items()
        if all(
            reached(host, volumes.claims[f"default/{u.claim}"], volumes, ever=ever)
            for u in pod_set.shape.volumes
        )
    }
    counts = [
        domains(moment, {name for _, name in assigned})
        for assigned in every_placement(moment, instance.group)
        if able.issuperset(assigned) and valid(moment, instance.group, assigned)
    ]
    return min(counts, default=None)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_pods_are_where_their_volumes_can_be_used_exactly(chunk):
    """Whether there is a place, and on how few domains, agrees with trying every placement. What only lacks
    an available volume waits; what no node ever reaches is refused."""
    seen = {"admitted": 0, "queued": 0, "rejected": 0}
    for number in range(chunk, INSTANCES, CHUNKS):
        instance = random_instance(Random(number))
        fewest, answer = fewest_domains(instance), plan(instance.snapshot, instance.group)
        seen[answer.decision] += 1
        if placed(answer, fewest, lambda instance=instance: fewest_domains(instance, ever=True), number):
            assert domains(instance.snapshot, {a.node for a in answer.assignments}) == fewest, (
                number,
                answer,
            )
    assert all(seen.values()), seen
