"""Which nodes a pod may use is remembered for pods with the same constraints only."""

from __future__ import annotations

from dataclasses import replace

from planner.cluster.build import snapshot
from planner.model.pod import PodShape
from planner.planning.plan import plan
from tests.builders import GPU, gang, node, pod_set

PRODUCT = "nvidia.com/gpu.product"


def test_pods_with_two_gpus_do_not_decide_for_pods_that_also_want_two_time_slices() -> None:
    """No node gives a pod two time slices, and the answer does not depend on who asked before."""
    whole = node("whole", labels={PRODUCT: "NVIDIA-H100"})
    whole = replace(whole, allocatable={**whole.allocatable, "nvidia.com/gpu.shared": 8})
    moment = snapshot([whole, node("sliced", labels={PRODUCT: "NVIDIA-H100-SHARED"})])
    requests = {GPU: 2, "pods": 1}
    assert plan(moment, gang(pod_set(1, PodShape(requests)))).decision == "admitted"
    greedy = PodShape({**requests, "nvidia.com/gpu.shared": 2})
    assert plan(moment, gang(pod_set(1, greedy))).decision == "rejected"
