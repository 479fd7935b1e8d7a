"""What the plan and what kube-scheduler say of one pod, to compare them."""

from __future__ import annotations

import json

from planner.manifests.pods.pod import shape_of
from planner.model.errors import Where
from planner.model.podgroup import PodGroup, PodSet
from planner.planning.plan import plan
from tests.e2e.api import Json
from tests.e2e.replicas import Replicas
from tests.e2e.serving import PODS
from tests.e2e.stage import Cluster
from webhook.policy.engine.device_selectors import read_cluster


def planned(cluster: Cluster, kinds: str, name: str, spec: Json) -> bool:
    """Whether the plan has a place for the pod in the cluster as kubectl shows its objects of these kinds."""
    output = cluster.kubectl("get", kinds, "--all-namespaces", "-o", "json")
    assert output.status == 0, output.err
    group = PodGroup(f"research/Pod/{name}", (PodSet("main", 1, shape_of(spec, Where())),), reserve="none")
    return plan(read_cluster([("cluster", json.loads(output.out))]), group).decision == "admitted"


def decided(serving: Replicas, name: str) -> bool | None:
    """Whether kube-scheduler bound the pod (True) or had no node for it (False); None before it has tried."""
    seen = serving.api.get(f"{PODS}/{name}")
    if seen["spec"].get("nodeName"):
        return True
    conditions = {condition["type"]: condition for condition in seen["status"].get("conditions", ())}
    unschedulable = conditions.get("PodScheduled", {}).get("reason") == "Unschedulable"
    return False if unschedulable else None
