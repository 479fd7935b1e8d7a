"""Tests reading a cluster from the output of kubectl, and refusing invalid input."""

import copy
from dataclasses import replace

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.manifests.cluster import read
from planner.manifests.reservation import reservation_from, reservation_manifest
from planner.model.errors import InputError, Where
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import gang, pod_set, racks, shape

NODE = yaml.safe_load("""
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1, rack: r1, block: b1}}
spec: {taints: [{key: nvidia.com/gpu, effect: NoSchedule}]}
status:
  capacity: {cpu: "64", memory: 512Gi, pods: "110", nvidia.com/gpu: "8"}
  allocatable: {cpu: 63500m, memory: 500Gi, pods: "110", nvidia.com/gpu: "8"}
  conditions: [{type: Ready, status: "True"}]
""")
POD = yaml.safe_load("""
apiVersion: v1
kind: Pod
metadata: {name: p1, namespace: research}
spec: {nodeName: n1, containers: [{name: c, resources: {limits: {nvidia.com/gpu: 2, cpu: "1"}}}]}
status: {phase: Running}
""")
TOPOLOGY = yaml.safe_load("""
apiVersion: kai.scheduler/v1alpha1
kind: Topology
metadata: {name: t}
spec: {levels: [{nodeLabel: block}, {nodeLabel: rack, alias: cabinet}]}
""")


def changed(document, path, value):
    """The document with one changed field; `path` is dotted."""
    copied = copy.deepcopy(document)
    parent = copied
    *parents, last = path.split(".")
    for key in parents:
        parent = parent[key]
    parent[last] = value
    return copied


def snapshot_of(*documents):
    return read([("c.yaml", document) for document in documents])


def test_a_node_is_read_with_what_it_can_give():
    """Allocatable counts, not capacity; cpu in millicores."""
    node = snapshot_of(NODE).nodes["n1"]
    assert (node.allocatable["cpu"], node.allocatable["nvidia.com/gpu"]) == (63500, 8)
    assert node.ready
    assert [taint.key for taint in node.taints] == ["nvidia.com/gpu"]


def test_lists_of_lists_are_opened():
    """A List, a NodeList whose items carry no kind, and several documents in a list are the same."""
    bare = {k: v for k, v in NODE.items() if k not in ("apiVersion", "kind")}
    listed = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [{"apiVersion": "v1", "kind": "List", "items": [NODE]}],
    }
    typed = {"apiVersion": "v1", "kind": "NodeList", "items": [bare]}
    for document in (NODE, listed, typed, [NODE]):
        assert list(snapshot_of(document).nodes) == ["n1"]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_uses_nothing(phase):
    """Only bound pods that still run count."""
    assert snapshot_of(NODE, POD).used["n1"]["nvidia.com/gpu"] == 2
    assert snapshot_of(NODE, changed(POD, "status.phase", phase)).used == {}
    assert snapshot_of(NODE, changed(POD, "spec.nodeName", None)).used == {}


def test_a_topology_gets_its_host_level_and_its_aliases():
    """The hostname is the finest level of every topology, stated or not."""
    topology = snapshot_of(NODE, TOPOLOGY).topologies[0]
    assert topology.levels == ("block", "rack", "kubernetes.io/hostname")
    assert topology.aliases == {"cabinet": "rack"}


def test_topologies_of_two_kinds_may_share_a_name():
    """Equal ones are one; otherwise KAI's keeps the name and the other gets its kind added."""
    kueue = changed(TOPOLOGY, "apiVersion", "kueue.x-k8s.io/v1beta1")
    assert [t.name for t in snapshot_of(kueue, TOPOLOGY).topologies] == ["t"]
    other = changed(kueue, "spec.levels", [{"nodeLabel": "rack"}])
    names = {t.name: t.source for t in snapshot_of(other, TOPOLOGY).topologies}
    assert names == {"t": "kai.scheduler", "t (kueue.x-k8s.io)": "kueue.x-k8s.io"}


def test_kueues_flavor_says_which_nodes_a_topology_is_for():
    """The node labels of the one flavor that refers to it are its node pool."""
    kueue = changed(TOPOLOGY, "apiVersion", "kueue.x-k8s.io/v1beta1")
    flavor = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "ResourceFlavor",
        "metadata": {"name": "f"},
        "spec": {"topologyName": "t", "nodeLabels": {"rack": "r9"}},
    }
    moment = snapshot_of(NODE, kueue, flavor)
    assert moment.topologies[0].node_selector == {"rack": "r9"}
    assert len(moment.base.trees["t"].nodes) == 0
    assert len(snapshot_of(NODE, kueue).base.trees["t"].nodes) == 1
    trees = snapshot_of(NODE, TOPOLOGY, kueue, flavor).base.trees
    assert {name: len(tree.nodes) for name, tree in trees.items()} == {"t": 1, "t (kueue.x-k8s.io)": 0}


def test_nodes_outside_all_pools_have_the_topology_of_their_labels():
    """In a queue of Kueue's whose flavor has no topology a gang was refused as one that can never run: the
    Topology that another flavor names is for that flavor's nodes alone."""
    kueue = changed(TOPOLOGY, "apiVersion", "kueue.x-k8s.io/v1beta2")
    flavor = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "f"},
        "spec": {"topologyName": "t", "nodeLabels": {"pool": "placed"}},
    }

    def host(name, pool, rack):
        untainted = changed(changed(NODE, "metadata.name", name), "spec", {})
        labels = {"pool": pool, "kubernetes.io/hostname": name, "block": "b", "rack": rack}
        return changed(untainted, "metadata.labels", labels)

    nodes = [host("n0", "placed", "r1"), host("n1", "counted", "r2"), host("n2", "counted", "r2")]
    moment = snapshot_of(*nodes, kueue, flavor)
    trees = {name: {node.name for node in tree.nodes} for name, tree in moment.base.trees.items()}
    assert trees == {"t": {"n0"}, "": {"n1", "n2"}}
    selected = replace(shape(gpu=8), node_selector={"pool": "counted"})
    for wish in ({"preferred": "kubernetes.io/hostname"}, {"preferred": "rack"}, {"required": "rack"}):
        answer = plan(moment, gang(pod_set(2, selected), **wish))
        assert answer.decision == "admitted", answer.message
        assert {seat.node for seat in answer.assignments} == {"n1", "n2"}
    for_all = snapshot_of(*nodes, TOPOLOGY).topologies
    assert [topology.name for topology in for_all] == ["t"], "an object for all nodes has all of them"


def test_a_node_that_does_not_say_how_many_pods_it_takes_takes_the_default():
    """A hand-written node may omit the amount."""
    assert snapshot_of(changed(NODE, "status.allocatable", {"cpu": 4})).nodes["n1"].allocatable["pods"] == 110


def test_without_a_topology_the_levels_come_from_the_labels():
    """The preset of the source whose labels the nodes carry."""
    labels = {
        "topology.kubernetes.io/zone": "z",
        "cloud.provider.com/topology-rack": "r",
        "cloud.provider.com/topology-block": "b",
        "nvidia.com/gpu.clique": "u.1",
    }
    (topology,) = snapshot_of(changed(NODE, "metadata.labels", labels)).topologies
    assert topology.name == ""
    assert [level.rsplit("/", 1)[-1] for level in topology.levels] == [
        "zone",
        "topology-block",
        "topology-rack",
        "gpu.clique",
        "hostname",
    ]


def test_mig_slices_count_only_when_their_reconfiguration_has_succeeded():
    """`mig.config.state` pending: no capacity now, though some when it is done."""
    node = changed(NODE, "status.allocatable", {"cpu": "8", "nvidia.com/mig-1g.10gb": "7"})
    busy = changed(node, "metadata.labels", {"nvidia.com/mig.config.state": "pending"})
    done = changed(node, "metadata.labels", {"nvidia.com/mig.config.state": "success"})
    assert "nvidia.com/mig-1g.10gb" not in snapshot_of(busy).nodes["n1"].allocatable
    assert snapshot_of(busy).nodes["n1"].pending == {"nvidia.com/mig-1g.10gb": 7}
    assert snapshot_of(done).nodes["n1"].allocatable["nvidia.com/mig-1g.10gb"] == 7


def test_a_node_without_labels_is_a_host_and_nothing_more():
    """It takes pods of a gang without a level."""
    snapshot = snapshot_of(changed(changed(NODE, "metadata.labels", None), "spec", None), TOPOLOGY)
    assert plan(snapshot, gang(1)).decision == "admitted"
    assert plan(snapshot, gang(1, required="rack")).decision == "rejected"


def test_other_kinds_are_counted_and_left_aside():
    """Other output of `kubectl get` is ignored."""
    snapshot = snapshot_of(NODE, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})
    assert snapshot.base.ignored == {"ConfigMap": 1}


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        ((TOPOLOGY, TOPOLOGY), ("Topology t", "metadata.name", "two Topologies")),
        ((NODE, NODE), ("Node n1", "metadata.name", "two nodes")),
        ((changed(NODE, "status.allocatable.cpu", "lots"),), ("Node n1", "status.allocatable.cpu", "lots")),
        ((changed(NODE, "status.allocatable.cpu", "-4"),), ("status.allocatable.cpu", "negative")),
        ((changed(NODE, "status.allocatable.memory", "1e30"),), ("status.allocatable.memory", "more than")),
        ((changed(NODE, "metadata.labels", ["rack"]),), ("metadata.labels", "a list")),
        ((changed(NODE, "metadata.labels.rack", 7),), ("metadata.labels.rack", "the number 7", "quotes")),
        ((changed(NODE, "spec.taints", "gpu"),), ("spec.taints", "expected a list")),
        ((changed(NODE, "metadata.name", None),), ("metadata.name", "no name")),
        (
            (changed(POD, "spec.containers", {"a": 1}),),
            ("Pod research/p1", "spec.containers", "expected a list"),
        ),
        (
            (changed(POD, "spec.containers", [{"resources": {"limits": {"nvidia.com/gpu": "x"}}}]),),
            ("spec.containers[0].resources.limits.nvidia.com/gpu", "no quantity"),
        ),
        ((changed(TOPOLOGY, "spec.levels", []),), ("Topology t", "spec.levels", "at least one")),
        (
            (changed(TOPOLOGY, "spec.levels", [{"nodeLabel": "a"}, {"nodeLabel": "a"}]),),
            ("spec.levels[1].nodeLabel", "twice"),
        ),
        (
            (
                changed(
                    TOPOLOGY, "spec.levels", [{"nodeLabel": "kubernetes.io/hostname"}, {"nodeLabel": "a"}]
                ),
            ),
            ("spec.levels[1].nodeLabel", "last"),
        ),
        ((changed(TOPOLOGY, "spec.levels", [{"nodeLabel": f"l{n}"} for n in range(17)]),), ("17 levels",)),
        (("just text",), ("expected a Kubernetes object",)),
        (({"apiVersion": "v1"},), ("kind", "no kind")),
    ],
)
def test_bad_input_names_file_object_and_field(documents, words):
    """One line says where and what."""
    with pytest.raises(InputError) as refused:
        snapshot_of(*documents)
    assert str(refused.value).startswith("c.yaml: ")
    assert "\n" not in str(refused.value)
    for word in words:
        assert word in str(refused.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    (NODE, path)
    for path in (
        "metadata", "metadata.labels", "metadata.name", "spec", "spec.taints", "status", "status.allocatable",
        "status.allocatable.cpu", "status.conditions", "apiVersion", "kind",
    )
] + [
    (POD, path)
    for path in ("metadata", "spec", "spec.containers", "spec.nodeName", "status", "metadata.namespace")
] + [(TOPOLOGY, path) for path in ("metadata", "spec", "spec.levels", "metadata.name")]  # fmt: skip


@settings(max_examples=150)
@given(st.sampled_from(FIELDS), JSON)
def test_whatever_stands_in_a_field_is_read_or_refused_in_one_line(field, value):
    """No other exception than `InputError` comes out of the reader."""
    document, path = field
    message = ""
    try:
        snapshot_of(changed(document, path, value))
    except InputError as error:
        message = str(error)
    assert "\n" not in message


def test_a_reservation_comes_back_as_it_was_written():
    """The manifest carries everything, and a snapshot read from it holds the reservation."""
    snapshot = racks(2, 2)
    wanted = gang(2)
    reservation = reservation_for(snapshot, wanted, plan(snapshot, wanted))
    manifest = yaml.safe_load(yaml.safe_dump(reservation_manifest(reservation)))
    assert read([("r.yaml", manifest)]).reservations == (reservation,)


def test_a_reservation_with_a_bad_field_is_refused():
    """Mode, counts and state are checked."""
    snapshot = racks(1, 2)
    manifest = reservation_manifest(reservation_for(snapshot, gang(2), plan(snapshot, gang(2))))
    for path, value in (("spec.mode", "all"), ("status.state", "lost"), ("spec.gang", "")):
        with pytest.raises(InputError, match=path.replace(".", r"\.")):
            reservation_from(changed(manifest, path, value), Where("r.yaml"))
