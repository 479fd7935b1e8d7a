"""Policies never make a pod too large: if the requests of its author fit, the result fits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.labels import Taint
from planner.model.node import Node
from planner.planning.plan import plan
from tests.builders import racks
from tests.policies.helpers import mutate
from tests.webhook.admission.test_bounds import job
from tests.webhook.admission.test_growth_of_work import ENVIRONMENT, POLICIES
from webhook.admission.decision import decide
from webhook.wire.request import from_object
from webhook.workloads import read

Json = dict[str, Any]
GI = 2**30
GPU, PRODUCT = "nvidia.com/gpu", "nvidia.com/gpu.product"
TAINT = Taint("dedicated", "infra")
CPU = st.sampled_from((None, None, "500m", "2", "7500m", "40", "200"))
MEMORY = st.sampled_from((None, None, "1Gi", "20G", "60Gi", "500Gi"))


@st.composite
def halls(draw: st.DrawFn) -> Snapshot:
    """One to four kinds of nodes, one or two of each; some small, some tainted, some cordoned."""
    nodes = []
    for kind in range(draw(st.integers(1, 4))):
        product = draw(st.sampled_from(("H100", "T4", "")))
        offers = {
            "cpu": draw(st.sampled_from((2_000, 4_000, 63_500, 128_000))),
            "memory": draw(st.sampled_from((3, 15, 30, 512, 1000))) * GI + draw(st.integers(0, GI)),
            "pods": 110,
            GPU: draw(st.sampled_from((1, 2, 8))) if product else 0,
        }
        for number in range(draw(st.integers(1, 2))):
            name = f"n{kind}-{number}"
            labels = {"kubernetes.io/hostname": name, **({PRODUCT: product} if product else {})}
            taints = (TAINT,) if draw(st.booleans()) else ()
            nodes.append(Node(name, labels, offers, taints, cordoned=draw(st.booleans())))
    return snapshot(nodes)


def resources(draw: st.DrawFn, gpus: int) -> Json:
    """Requests and limits as users write them: only requests, only limits, both equal, none."""
    amounts = {name: text for name, text in (("cpu", draw(CPU)), ("memory", draw(MEMORY))) if text}
    asked: Json = {}
    side = draw(st.sampled_from(("requests", "limits", "both")))
    for name in ("requests", "limits"):
        if side in (name, "both"):
            asked[name] = dict(amounts)
    if gpus:
        asked["limits"] = {**asked.get("limits", {}), GPU: gpus}
    return asked


@st.composite
def pods(draw: st.DrawFn) -> Json:
    """A pod of one to three containers, the first with GPUs."""
    counts = [draw(st.sampled_from((1, 2, 8))), *[0] * draw(st.integers(0, 2))]
    containers = [
        {"name": f"c{index}", "image": "trainer", "resources": resources(draw, gpus)}
        for index, gpus in enumerate(counts)
    ]
    spec: Json = {"containers": containers}
    if draw(st.booleans()):
        init: Json = {"name": "init", "image": "copy", "resources": resources(draw, 0)}
        spec["initContainers"] = [init | ({"restartPolicy": "Always"} if draw(st.booleans()) else {})]
    if draw(st.booleans()):
        spec["nodeSelector"] = {PRODUCT: draw(st.sampled_from(("H100", "T4")))}
    if draw(st.booleans()):
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train"}, "spec": spec}


def emptied(hall: Snapshot) -> Snapshot:
    """The same nodes, all schedulable."""
    return snapshot([replace(node, cordoned=False) for node in hall.nodes.values()])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(hall=halls(), pod=pods())
def test_a_pod_that_fits_as_it_was_written_is_never_rejected_for_what_policies_add(
    hall: Snapshot, pod: Json
) -> None:
    """It is admitted, or queued for what is in the way now."""
    (gang,) = read(pod).gangs
    alone = plan(emptied(hall), gang)
    decision = mutate(pod, on=hall)
    if alone.decision != "admitted":
        return
    assert decision.plan is not None
    assert decision.plan.decision in ("admitted", "queued"), decision.response.message
    assert decision.response.allowed, decision.response.message


def test_what_policies_added_is_left_out_by_leaf_spine_rules_too() -> None:
    """A pod larger than any node, whose author asked for no core, is told what would work."""
    obj = job(2)
    obj["metadata"].setdefault("annotations", {})["topology.scheduler/placement-strategy"] = "balanced"
    (container,) = obj["spec"]["template"]["spec"]["containers"]
    container["resources"] = {"limits": {"nvidia.com/gpu": 64}}
    response = decide(from_object(obj), POLICIES, racks(2, 4), "mutate", ENVIRONMENT).response
    assert not response.allowed
    assert "at most 8 nvidia.com/gpu a pod" in response.message
