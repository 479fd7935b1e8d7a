"""Scenarios of the four documents that Bayplan replaces by hand, beside the real KAI-Scheduler.

What KAI's API does not serve (`scheduling.run.ai/v2`) is refused by the API server, in its own words; the
objects beside it end in running pods.
"""

from __future__ import annotations

import time

from tests.e2e.api import Json
from tests.e2e.fleet import namespace
from tests.e2e.processes import wait_until
from tests.schedulers.document_manifests import (
    BENCHMARK,
    LEAF_SPINE,
    MULTI_NODE,
    POLICIES,
    REPLICAS,
    SERVING,
    TRAINER,
    TRAINING,
    bodies,
)
from tests.schedulers.nodes import GPU, HOSTNAME, LEVELS, RACK, REGION, ZONE
from tests.schedulers.site import Site, in_words, nodes_of, racks_of
from tests.schedulers.table import Scenario


def _refused_group(site: Site, text: str) -> tuple[str, list[Json]]:
    """KAI's API serves no `scheduling.run.ai/v2` PodGroup: what it says, and the other objects."""
    group, *others = bodies(text)
    output = site.apply(group)
    words = in_words(output.err, 'no matches for kind "PodGroup" in version "scheduling.run.ai/v2"')
    return words[:100], others


def training(site: Site) -> str:
    """KAI's recipe, steps 4 and 5: its ConfigMap of policies, the PodGroup, the Job of four pods (6, 14)."""
    namespace(site.api, "kai-scheduler")
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kai-scheduler-config", "namespace": "kai-scheduler"},
        "data": {"config.yaml": POLICIES},
    }
    site.applied(settings)
    try:
        time.sleep(2)
        refusal, others = _refused_group(site, TRAINING)
        output = site.apply(*others)
        assert output.status == 0, output.err
        seconds, pods = site.bound("ddp-nvlink-training", 4, "ml-training")
        assert len(set(nodes_of(pods))) == 1, f"one NVLink domain is one host here: {nodes_of(pods)}"
        warning_text = " ".join(output.err.split())[:300]
        return f"{refusal}; Job bound after {seconds:.1f} s in one NVLink domain; {warning_text}"
    finally:
        site.kubectl("delete", "configmap", "kai-scheduler-config", "-n", "kai-scheduler")


def multi_node(site: Site) -> str:
    """KAI's recipe, step 6: the group of two in a rack, of which the document prints one pod (6)."""
    refusal, others = _refused_group(site, MULTI_NODE)
    output = site.apply(*others)
    assert output.status == 0, output.err
    seconds, pods = site.bound("trainer-node", 1, "ml-training")
    warning_text = " ".join(output.err.split())[:300]
    return f"{refusal}; the pod bound after {seconds:.1f} s on {nodes_of(pods)}; {warning_text}"


def serving(site: Site) -> str:
    """KAI's recipe, step 7: prefill and decode of one group on one node (6, 13, 17)."""
    refusal, others = _refused_group(site, SERVING)
    output = site.apply(*others)
    assert output.status == 0, output.err
    seconds, pods = site.bound("", 2, "ml-inference")
    assert len(set(nodes_of(pods))) == 1, nodes_of(pods)
    warning_text = " ".join(output.err.split())[:200]
    return f"{refusal}; both bound after {seconds:.1f} s on {nodes_of(pods)}; {warning_text}"


def translated(site: Site) -> str:
    """KAI's recipe, steps 5 to 7, with the groups as the warning says that today's KAI reads them."""
    ends = []
    for text, place, prefix, count, level in (
        (TRAINING, "ml-training", "ddp-nvlink-training", 4, HOSTNAME),
        (SERVING, "ml-inference", "", 2, HOSTNAME),
    ):
        old, *others = bodies(text)
        spec = {
            "minMember": count,
            "queue": old["spec"]["queue"],
            "topologyConstraint": {"topology": "cluster-topology", "requiredTopologyLevel": level},
        }
        new = {**old, "apiVersion": "scheduling.run.ai/v2alpha2", "spec": spec}
        site.applied(new)
        time.sleep(1)
        site.applied(*others)
        seconds, pods = site.bound(prefix, count, place)
        assert len(set(nodes_of(pods))) == 1, nodes_of(pods)
        ends.append(f"{old['metadata']['name']} {seconds:.1f} s on {sorted(set(nodes_of(pods)))}")
    return ", ".join(ends)


def benchmark(site: Site) -> str:
    """KAI's recipe, step 9: the Job of the NCCL benchmark."""
    warnings = site.applied(*bodies(BENCHMARK))
    seconds, _ = site.bound("nccl-benchmark", 1, "ml-training")
    return f"bound after {seconds:.1f} s; {' '.join(warnings)[:200]}"


def replicas(site: Site) -> str:
    """Run:ai's document: the LeaderWorkerSet of two replicas in its queue, replica by replica (15)."""
    warnings = site.applied(*bodies(REPLICAS))
    seconds, pods = site.bound("llm-inference", 4, "runai-production")
    for number in (0, 1):
        own = [entry for entry in pods if entry["metadata"]["name"].startswith(f"llm-inference-{number}")]
        assert len(racks_of(own)) == 1, nodes_of(own)
    queues = {entry["metadata"]["labels"].get("kai.scheduler/queue", "") for entry in pods}
    return f"bound after {seconds:.1f} s on {nodes_of(pods)}; queues {queues}; {' '.join(warnings)[:300]}"


def placements(site: Site) -> str:
    """Run:ai's document: preferred, required and both, by annotation, in its topology."""
    name = "default-topology"
    levels = [{"nodeLabel": level} for level in (REGION, *LEVELS)]
    site.applied(
        {
            "apiVersion": "kai.scheduler/v1alpha1",
            "kind": "Topology",
            "metadata": {"name": name},
            "spec": {"levels": levels},
        }
    )
    ends = []
    try:
        time.sleep(2)
        for kind, wishes in (
            ("preferred", {"preferred": RACK}),
            ("required", {"required": ZONE}),
            ("both", {"required": ZONE, "preferred": RACK}),
        ):
            annotations = {f"kai.scheduler/topology-{how}-placement": level for how, level in wishes.items()}
            text = {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    "name": kind,
                    "namespace": "runai-production",
                    "annotations": {"kai.scheduler/topology": name, **annotations},
                },
                "spec": {
                    "parallelism": 3,
                    "completions": 3,
                    "template": {
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [{"name": "c", "image": "i", "resources": {"limits": {GPU: 8}}}],
                        }
                    },
                },
            }
            site.applied(text)
            seconds, pods = site.bound(f"{kind}-", 3, "runai-production")
            if "preferred" in wishes:
                assert len(racks_of(pods)) == 1, nodes_of(pods)
            ends.append(f"{kind} {seconds:.1f} s")
        for body in bodies(REPLICAS):
            site.remove({**body, "metadata": {**body["metadata"]}})
        return ", ".join(ends)
    finally:
        for kind in ("preferred", "required", "both"):
            site.kubectl("delete", "job", kind, "-n", "runai-production", "--ignore-not-found")
        wait_until(lambda: not site.held(), "their holds to go", 60)
        site.kubectl("delete", "topologies.kai.scheduler", name)


def one_node(site: Site) -> str:
    """The document on one node: the Guaranteed pod with four GPUs on the named product."""
    warnings = site.applied(*bodies(TRAINER))
    seconds, pods = site.bound("trainer", 1)
    (pod,) = pods
    assert pod["status"]["qosClass"] == "Guaranteed", pod["status"]
    warning_text = " ".join(warnings)[:160]
    return f"bound after {seconds:.1f} s, Guaranteed, by {pod['spec']['schedulerName']}; {warning_text}"


def leaf_spine_told(site: Site) -> str:
    """The leaf-spine scheduler's document where nobody runs that scheduler: told for each object (16)."""
    output = site.apply(*bodies(LEAF_SPINE))
    assert output.status == 0, output.err
    words = in_words(output.err, "scheduler-name.replaces: topology-aware-scheduler")
    assert words.count("nothing in the cluster shows a scheduler topology-aware-scheduler") == 4, words
    time.sleep(3)
    assert not nodes_of(site.pods()), "nobody schedules them"
    return words[:400]


def leaf_spine(site: Site) -> str:
    """The same with the parameter scheduler-name.replaces: its three Jobs and its Deployment run (16)."""
    data = {"scheduler-name.replaces": "topology-aware-scheduler"}
    metadata = {"name": "bayplan-parameters", "namespace": site.bayplan.namespace}
    site.applied({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    try:
        time.sleep(3)
        site.applied(*bodies(LEAF_SPINE))
        ends = []
        for body in bodies(LEAF_SPINE):
            name, count = body["metadata"]["name"], body["spec"].get("parallelism", 1)
            seconds, pods = site.bound(name, count)
            schedulers = {pod["spec"]["schedulerName"] for pod in pods}
            ends.append(f"{name} {seconds:.1f} s by {'/'.join(sorted(schedulers))}")
        return ", ".join(ends)
    finally:
        site.kubectl("delete", "configmap", "bayplan-parameters", "-n", site.bayplan.namespace)


SCENARIOS: tuple[Scenario, ...] = (
    training, multi_node, serving, translated, benchmark, replicas, placements, one_node,
    leaf_spine_told, leaf_spine,
)  # fmt: skip
