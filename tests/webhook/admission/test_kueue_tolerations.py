"""Objects in a Kueue queue tolerate what its flavors tolerate: Kueue adds that only when it admits them.

Tainted GPU nodes and a ResourceFlavor with the toleration are the usual set-up of Kueue. Everything in such a
queue was refused, because no node took its pods.
"""

from __future__ import annotations

from typing import Any

import pytest

from planner.cluster.snapshot import Snapshot
from tests.policies.helpers import CLUSTERS, policies
from tests.webhook.admission.test_kueue_pods import member, queued
from tests.webhook.workloads import objects as o
from webhook.admission.decision import decide
from webhook.admission.environment import Environment
from webhook.files.reader import documents
from webhook.policy.engine.device_selectors import read_cluster
from webhook.wire.request import from_object
from webhook.workloads import read

Json = dict[str, Any]
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
HOST = "kubernetes.io/hostname"


def kueue_object(kind: str, name: str, spec: Json) -> Json:
    """An object of Kueue in the namespace `team`; kinds without namespaces ignore it."""
    metadata = {"name": name, "namespace": "team"}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}


def tainted(topology: str) -> Snapshot:
    """The hall with tainted nodes, and a queue whose flavor tolerates the taint."""
    files = [document.value for document in documents([str(CLUSTERS / "superpod-32.yaml")])]
    objects = [item for file in files for item in file.get("items", [file])]
    nodes = [
        o.changed(item, ("spec",), {**item.get("spec", {}), "taints": [TAINT]})
        for item in objects
        if item["kind"] == "Node"
    ]
    others = [item for item in objects if item["kind"] != "Node"]
    flavor: Json = {"tolerations": [{"key": TAINT["key"], "operator": "Exists"}]}
    covered = {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "gpu"}]}
    levels = [{"nodeLabel": "cloud.provider.com/topology-rack"}, {"nodeLabel": HOST}]
    queues = [
        kueue_object("Topology", "racks", {"levels": levels}),
        kueue_object("ResourceFlavor", "gpu", {**flavor, **({"topologyName": topology} if topology else {})}),
        kueue_object("ClusterQueue", "all", {"resourceGroups": [covered]}),
        kueue_object("LocalQueue", "quota", {"clusterQueue": "all"}),
    ]
    return read_cluster(("cluster.yaml", item) for item in (*nodes, *others, *queues))


CLUSTERS_OF_KUEUE = [tainted(""), tainted("racks")]


def refusal(obj: Json, on: Snapshot, environment: Environment | None = None) -> str:
    """The message with which a new object is refused, "" if it is allowed."""
    request = from_object(obj, uid="uid", operation="CREATE")
    response = decide(request, policies(), on, "mutate", environment or Environment()).response
    return "" if response.allowed else response.message


@pytest.mark.parametrize("cluster", CLUSTERS_OF_KUEUE, ids=["Kueue counts quota", "Kueue places pods too"])
@pytest.mark.parametrize(
    "obj", [o.POD, o.JOB, o.LWS, o.STATEFUL_SET, o.DEPLOYMENT], ids=lambda obj: obj["kind"]
)
def test_the_tolerations_of_a_queues_flavor_open_its_nodes(obj: Json, cluster: Snapshot) -> None:
    """Outside the queue nothing tolerates the taint."""
    assert refusal(queued(obj), cluster) == ""
    assert "nvidia.com/gpu=present:NoSchedule" in refusal(obj, cluster)


@pytest.mark.parametrize("cluster", CLUSTERS_OF_KUEUE, ids=["Kueue counts quota", "Kueue places pods too"])
def test_stored_members_tolerate_what_the_flavors_of_their_queue_tolerate(cluster: Snapshot) -> None:
    """The second pod fits beside the first, but not beside another one of its own size."""
    first, second = (
        o.changed(
            o.annotated(member(number), {"kai.scheduler/topology-required-placement": HOST}),
            ("spec", "containers", 0, "resources"),
            {"limits": {"nvidia.com/gpu": gpus}},
        )
        for number, gpus in enumerate((2, 6))
    )
    stored = (read(first, namespace="team"),)
    assert refusal(second, cluster, Environment(stored_members=lambda _: stored)) == ""
