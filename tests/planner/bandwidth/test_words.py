"""Tests the warning to a gang that is spread against its preference: the cost compared with a better
placement.
"""

from __future__ import annotations

import yaml

from planner.bandwidth.preferred_level import bandwidth_warning
from planner.cluster.build import snapshot
from planner.cluster.snapshot import Snapshot
from planner.model.node import Node
from planner.model.pod import BoundPod
from planner.model.topology import HOSTNAME, Topology
from planner.planning.plan import plan
from planner.planning.reservation import reservation_for
from tests.builders import GPU, amounts, gang, node
from webhook.admission.decision import decide
from webhook.cli.common.inputs import policies
from webhook.wire.request import from_object

HALL = Topology("hall", ("rack", HOSTNAME), source="bayplan.dev")
LABELS = {"nvidia.com/gpu.family": "blackwell", "nvidia.com/gpu.product": "NVIDIA-GB200"}
MAX_LENGTH = 256
"""Characters of a warning that Kubernetes' documentation recommends at the most."""


def racks(used: int, *, clique: bool = True) -> Snapshot:
    """Two racks of 18 trays of 4 GPUs, each rack an NVLink domain or not; this many trays of each are
    in use.
    """
    nodes: list[Node] = []
    for rack in range(2):
        inside = {"nvidia.com/gpu.clique": f"u{rack}.1"} if clique else {}
        labels = {"rack": f"r{rack}", **LABELS, **inside}
        nodes += [node(f"t{rack}-{tray}", labels=labels, gpu=4) for tray in range(18)]
    busy = [f"t{rack}-{tray}" for rack in range(2) for tray in range(used)]
    pods = [BoundPod(f"x/{name}", name, amounts(gpu=4, pods=1)) for name in busy]
    return snapshot(nodes, [HALL], pods)


def warned(moment: Snapshot, pods: int, **wish: str) -> str:
    """The warning to such a gang."""
    group = gang(pods, gpu=4, reserve="nodes", name="research/Job/pretrain", **wish)
    answer = plan(moment, group)
    assert answer.decision == "admitted"
    held = reservation_for(moment, group, answer)
    assert held is not None
    return bandwidth_warning(moment.with_reservation(held), group, answer)


def test_a_gang_that_is_spread_is_told_what_that_costs() -> None:
    """No rack has 18 free trays; in one the all-reduce would not cross the network. The model is named."""
    warning = warned(racks(used=2), 18, preferred="rack")
    assert warning.startswith("in 2 racks, for one rack has no room now.")
    assert "by the model: hierarchical ring all-reduce" in warning
    assert warning.endswith("Better: require it, and wait.")
    assert len(warning) <= MAX_LENGTH


def test_a_gang_in_its_preferred_domain_gets_no_warning() -> None:
    """Its 16 pods fit in one rack."""
    assert warned(racks(used=2), 16, preferred="rack") == ""


def test_a_gang_without_a_preferred_level_gets_no_warning() -> None:
    """It does not ask for one rack."""
    assert warned(racks(used=2), 18) == ""


def test_a_gang_for_which_no_place_is_better_hears_nothing() -> None:
    """36 pods fill both racks even when all are free: nothing was given up."""
    assert warned(racks(used=0), 36, preferred="rack") == ""


def test_where_the_model_sees_no_difference_nothing_is_said() -> None:
    """Without multi-node NVLink each host is a domain, so two racks are as fast as one."""
    assert warned(racks(used=2, clique=False), 18, preferred="rack") == ""


def test_the_warning_comes_with_the_answer_to_a_manifest() -> None:
    """As `kubectl apply` shows it."""
    limits = {"limits": {GPU: 4}}
    job = yaml.safe_load("""
        apiVersion: batch/v1
        kind: Job
        metadata:
          name: pretrain
          namespace: research
          annotations: {kai.scheduler/topology: hall, kai.scheduler/topology-preferred-placement: rack}
        spec:
          parallelism: 18
          completions: 18
          template: {spec: {restartPolicy: Never, containers: [{name: main, image: pytorch}]}}
    """)
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = limits
    decision = decide(from_object(job), policies([]), racks(used=2), "mutate")
    assert decision.response.allowed, decision.response.message
    (warning,) = [text for text in decision.response.warnings if "All-reduce" in text]
    assert len(warning) <= MAX_LENGTH
