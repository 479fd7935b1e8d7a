"""Scenarios beside the real KAI-Scheduler: gangs of PodGroups, whose members are several objects."""

from __future__ import annotations

import time
from itertools import permutations

from tests.e2e.api import Json
from tests.schedulers.kai import HOME
from tests.schedulers.nodes import RACK, TOPOLOGY
from tests.schedulers.site import Site, in_words, nodes_of, racks_of, refused
from tests.schedulers.table import Scenario
from tests.schedulers.workloads import deployment, group, job, pod, pod_template


def sub_groups(site: Site) -> str:
    """A PodGroup with subGroups, pod by pod: the reservation keeps a seat for each (2)."""
    parts = [{"name": "prefill", "minMember": 2}, {"name": "decode", "minMember": 1}]
    constraint = {"topology": TOPOLOGY, "requiredTopologyLevel": RACK}
    site.applied(
        group(
            "serve",
            3,
            {"minMember": None, "minSubGroup": 2, "subGroups": parts, "topologyConstraint": constraint},
        )
    )
    time.sleep(1)
    for name, part in (("p0", "prefill"), ("p1", "prefill"), ("d0", "decode")):
        labels = {"kai.scheduler/subgroup-name": part}
        site.create(
            pod(
                f"serve-{name}",
                labels=labels,
                annotations={"pod-group-name": "serve"},
                spec={"schedulerName": HOME},
            )
        )
    seconds, pods = site.bound("serve-", 3)
    assert len(racks_of(pods)) == 1, nodes_of(pods)
    seats = {node for held in site.held().values() for node in held}
    assert seats == set(nodes_of(pods)), (seats, nodes_of(pods))
    return f"bound after {seconds:.1f} s, held on {sorted(seats)}"


def named_group(site: Site) -> str:
    """`scheduling.run.ai/pod-group` on pods is told to KAI in the key that it reads (6)."""
    constraint = {"topology": TOPOLOGY, "requiredTopologyLevel": RACK}
    site.applied(group("pair", 2, {"topologyConstraint": constraint}))
    time.sleep(1)
    for number in range(2):
        annotations = {"scheduling.run.ai/pod-group": "pair"}
        site.create(pod(f"pair-{number}", annotations=annotations, spec={"schedulerName": HOME}))
    seconds, pods = site.bound("pair-", 2)
    assert len(racks_of(pods)) == 1, nodes_of(pods)
    assert all(entry["metadata"]["annotations"]["pod-group-name"] == "pair" for entry in pods)
    return f"bound after {seconds:.1f} s in its group"


def template_group(site: Site) -> str:
    """A Job whose template names a PodGroup in KAI's own key: its level and size are the Job's (12)."""
    return _template_group(site, "pod-group-name")


def older_template_group(site: Site) -> str:
    """The same in the older recipe's key (12)."""
    return _template_group(site, "scheduling.run.ai/pod-group")


def _template_group(site: Site, key: str) -> str:
    constraint = {"topology": TOPOLOGY, "requiredTopologyLevel": RACK}
    site.applied(group("ddp", 3, {"queue": "training", "topologyConstraint": constraint}))
    time.sleep(1)
    template = pod_template(8)
    template["metadata"] = {"annotations": {key: "ddp"}}
    site.create(job("ddp", 3, template=template, annotations={}))
    seconds, pods = site.bound("ddp", 3)
    assert len(racks_of(pods)) == 1, nodes_of(pods)
    names = {entry["metadata"]["annotations"]["pod-group-name"] for entry in pods}
    assert names == {"ddp"}, names
    words = refused(lambda: site.create(job("six", 6, template=template, annotations={})))
    return f"bound after {seconds:.1f} s in its group; six in racks of four: {in_words(words)[:140]}"


def any_order(site: Site) -> str:
    """Prefill, decode and router of one PodGroup, in every order: all in one host (13)."""
    members = {"prefill": 4, "decode": 3, "router": 0}
    times = []
    for order in permutations(members):
        constraint = {"topology": TOPOLOGY, "requiredTopologyLevel": "kubernetes.io/hostname"}
        site.applied(group("serve", 3, {"queue": "inference", "topologyConstraint": constraint}))
        time.sleep(1)
        for role in order:
            annotations = {"pod-group-name": "serve", "scheduling.run.ai/topology-role": role}
            site.create(
                pod(f"serve-{role}", members[role], annotations=annotations, spec={"schedulerName": HOME})
            )
        seconds, pods = site.bound("serve-", 3)
        assert len(set(nodes_of(pods))) == 1, (order, nodes_of(pods))
        times.append(seconds)
        site.clear()
    return f"six orders, bound after {min(times):.1f} to {max(times):.1f} s, in one host each"


def across_kinds(site: Site) -> str:
    """A PodGroup of a Job and a Deployment is one gang in one rack (13)."""
    constraint = {"topology": TOPOLOGY, "requiredTopologyLevel": RACK}
    site.applied(group("mixed", 4, {"topologyConstraint": constraint}))
    time.sleep(1)
    for body in (
        job("mixed-job", 2, template=_in_group("mixed"), annotations={}),
        deployment("mixed-deploy", 2, template=_in_group("mixed"), annotations={}),
    ):
        site.create(body)
    seconds, pods = site.bound("mixed-", 4)
    assert len(racks_of(pods)) == 1, nodes_of(pods)
    return f"bound after {seconds:.1f} s on {nodes_of(pods)}"


def _in_group(name: str) -> Json:
    template = pod_template(8)
    template["metadata"] = {"annotations": {"pod-group-name": name}}
    return template


SCENARIOS: tuple[Scenario, ...] = (
    sub_groups, named_group, template_group, older_template_group, any_order, across_kinds,
)  # fmt: skip
