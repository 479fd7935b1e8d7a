"""Scenarios beside the real KAI-Scheduler."""

from __future__ import annotations

import signal
import time

from tests.e2e.api import Json
from tests.e2e.processes import wait_until
from tests.schedulers.kai import HOME
from tests.schedulers.nodes import BLOCK, LEVELS, RACK, TOPOLOGY
from tests.schedulers.site import BOUND_SECONDS, Site, alive, in_words, nodes_of, racks_of, refused
from tests.schedulers.table import Scenario
from tests.schedulers.workloads import (
    deployment,
    job,
    job_set,
    leader_worker_set,
    pod,
    pod_template,
    training_job,
    wish,
)

EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


def classed(name: str) -> Json:
    """The label by which KAI knows a workload's PriorityClass."""
    return {"labels": {"priorityClassName": name}}


def one_rack(site: Site) -> str:
    """A Job of three nodes in one rack."""
    site.create(job("train", 3))
    seconds, pods = site.bound("train", 3)
    assert len(racks_of(pods)) == 1, nodes_of(pods)
    return f"bound after {seconds:.1f} s on {nodes_of(pods)}"


def kinds(site: Site) -> str:
    """JobSet, PyTorchJob, LeaderWorkerSet, Deployment, each in one rack."""
    times = {}
    for name, body, count in (
        ("set-", job_set("set", {"a": 1, "b": 2}), 3),
        ("torch-", training_job("torch", 2), 3),
        ("serve-", leader_worker_set("serve", 1, 3), 3),
        ("deploy-", deployment("deploy", 3), 3),
    ):
        site.create(body)
        times[name], pods = site.bound(name, count)
        assert len(racks_of(pods)) == 1, (name, nodes_of(pods))
    return ", ".join(f"{name}* {seconds:.1f} s" for name, seconds in times.items())


IN_ORDER = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}


def after(first: str, status: str) -> Json:
    """A JobSet of two jobs, of which the second, `nodes`, depends on the first."""
    body = job_set("ordered", {first: 1, "nodes": 2})
    body["spec"]["replicatedJobs"][1]["dependsOn"] = [{"name": first, "status": status}]
    return body


def jobs_in_order(site: Site) -> str:
    """JobSets whose second job is created once the first has ready pods."""
    times = []
    for body in (after("data", "Ready"), job_set("ordered", {"data": 1, "nodes": 2}, spec=IN_ORDER)):
        assert not [words for words in site.applied(body) if "KAI" in words]
        seconds, pods = site.bound("ordered", 3)
        times.append(seconds)
        assert len(racks_of(pods)) == 1, nodes_of(pods)
        site.clear()
    return f"bound after {times[0]:.1f} s by dependsOn, {times[1]:.1f} s by startupPolicy"


def never_in_order(site: Site) -> str:
    """Orders of jobs in which KAI starts nothing more, as the warning says."""
    (warning,) = (words for words in site.applied(after("data", "Complete")) if "KAI" in words)
    site.finish(site.bound("ordered-data", 1)[1])
    wait_until(lambda: len(site.pods("ordered-nodes")) == 2, "the pods of the second job", 60)
    time.sleep(10)
    assert not nodes_of(site.pods("ordered-nodes")), nodes_of(site.pods("ordered-nodes"))
    site.clear()
    body = job_set("ordered", {"workers": 2, "launcher": 1}, spec=IN_ORDER)
    (other,) = (words for words in site.applied(body) if "KAI" in words)
    wait_until(lambda: len(site.pods("ordered")) == 2, "the pods of the first job", 60)
    time.sleep(10)
    assert not nodes_of(site.pods("ordered")), nodes_of(site.pods("ordered"))
    return f"{warning}; {other}"


def exclusive(site: Site) -> str:
    """A JobSet with exclusive topology: a rack for each job (1)."""
    site.create(job_set("both", {"a": 2, "b": 2}, annotations={EXCLUSIVE: RACK}))
    seconds, pods = site.bound("both-", 4)
    assert len(racks_of(pods)) == 2, nodes_of(pods)
    return f"bound after {seconds:.1f} s on {nodes_of(pods)}"


def exclusive_waits(site: Site) -> str:
    """The same with one rack free: queued as a whole, nothing is held (1)."""
    for name in ("a", "b", "c"):
        site.create(job(f"fill-{name}", 4))
        site.bound(f"fill-{name}", 4)
    site.create(job_set("both", {"a": 2, "b": 2}, annotations={EXCLUSIVE: RACK}))
    wait_until(lambda: len(site.pods("both-")) == 4, "its pods", 60)
    time.sleep(4)
    assert not any("both" in gang for gang in site.held()), site.held()
    assert not nodes_of(site.pods("both-")), nodes_of(site.pods("both-"))
    site.finish(site.pods("fill-a"))
    seconds, pods = site.bound("both-", 4)
    assert len(racks_of(pods)) == 2, nodes_of(pods)
    return f"nothing held while it waits; bound {seconds:.1f} s after a second rack was free"


def waves(site: Site) -> str:
    """A Job of five completions, two at a time: all waves start (3)."""
    site.create(job("waves", 2, spec={"completions": 5, "parallelism": 2}))
    begin = time.monotonic()
    done: set[str] = set()
    while len(done) < 5:
        left = 5 - len(done)
        _, pods = site.bound("waves", min(2, left))
        ending = [entry for entry in alive(pods) if entry["spec"].get("nodeName")]
        site.finish(ending)
        done |= {entry["metadata"]["uid"] for entry in ending}
    return f"all five had run after {time.monotonic() - begin:.1f} s"


def retry(site: Site) -> str:
    """One index of a Job succeeds, another fails: the retry starts (3)."""
    site.create(job("retry", 2))
    _, pods = site.bound("retry", 2)
    first, second = pods
    site.kubelet.finish(first)
    time.sleep(1)
    site.kubelet.finish(second, "Failed")
    ended = {first["metadata"]["uid"], second["metadata"]["uid"]}

    def again() -> list[Json]:
        return [entry for entry in alive(site.pods("retry")) if entry["metadata"]["uid"] not in ended]

    begin = time.monotonic()
    wait_until(lambda: bool(nodes_of(again())), f"the retry: {site.reasons('retry')}", BOUND_SECONDS)
    return f"bound {time.monotonic() - begin:.1f} s after the failure"


def preemption(site: Site) -> str:
    """A gang of class build on a full cluster of train gangs: one is evicted, and comes back (4)."""
    for name in ("a", "b", "c", "d"):
        site.create(job(f"low-{name}", 4, **classed("train")))
        site.bound(f"low-{name}", 4)
    site.create(job("urgent", 4, **classed("build")))
    seconds, pods = site.bound("urgent", 4)
    assert len(racks_of(pods)) == 1, nodes_of(pods)
    victims = [name for name in ("a", "b", "c", "d") if len(nodes_of(alive(site.pods(f"low-{name}")))) < 4]
    assert len(victims) == 1, victims
    site.finish(site.pods("urgent"))
    back, _ = site.bound(f"low-{victims[0]}", 4)
    return f"bound after {seconds:.1f} s, one gang evicted; that again {back:.1f} s after its end"


def preemption_for_a_set(site: Site) -> str:
    """A LeaderWorkerSet of class build on a full cluster: its pods are pinned nowhere, KAI makes room (4)."""
    for name in ("a", "b", "c", "d"):
        site.create(job(f"low-{name}", 4, **classed("train")))
        site.bound(f"low-{name}", 4)
    site.create(leader_worker_set("urgent", 1, 3, **classed("build")))
    seconds, pods = site.bound("urgent", 3)
    assert len(racks_of(pods)) == 1, nodes_of(pods)
    return f"bound after {seconds:.1f} s on {nodes_of(pods)}"


def waits_for_its_turn(site: Site) -> str:
    """A gang of class train on a full cluster waits at our gate, and is bound when a rack is free (4)."""
    for name in ("a", "b", "c", "d"):
        site.create(job(f"low-{name}", 4, **classed("train")))
        site.bound(f"low-{name}", 4)
    site.create(job("later", 4, **classed("train")))
    wait_until(lambda: len(site.pods("later")) == 4, "its pods", 60)
    time.sleep(4)
    assert not nodes_of(site.pods("later")), "it waits"
    _, text = site.run("why", "research/Job/later")
    site.finish(site.pods("low-b"))
    seconds, pods = site.bound("later", 4)
    assert racks_of(pods), nodes_of(pods)
    return f"bound {seconds:.1f} s after a rack was free; why: {' '.join(text.split())[:140]}"


def segments(site: Site) -> str:
    """A PyTorchJob of five workers in segments of two, a short last one: each within a rack (5)."""
    annotations = {
        **wish(BLOCK),
        "kai.scheduler/segment-size": "2",
        "kai.scheduler/segment-topology-required-placement": RACK,
    }
    site.create(training_job("parts", 5, master=False, annotations=annotations))
    seconds, pods = site.bound("parts-", 5)
    by_index = {
        int(entry["metadata"]["name"].rpartition("-")[2]): entry["spec"]["nodeName"] for entry in pods
    }
    for start in (0, 2, 4):
        racks = {by_index[index].partition("-")[0] for index in range(start, min(start + 2, 5))}
        assert len(racks) == 1, by_index
    return f"bound after {seconds:.1f} s on {[by_index[index] for index in range(5)]}"


def leader_segments(site: Site) -> str:
    """A LeaderWorkerSet of four in segments of two, whose leader counts (5)."""
    annotations = {
        **wish(BLOCK),
        "kai.scheduler/segment-size": "2",
        "kai.scheduler/segment-topology-required-placement": RACK,
    }
    site.create(leader_worker_set("lead", 1, 4, annotations=annotations))
    seconds, pods = site.bound("lead-", 4)
    return f"bound after {seconds:.1f} s on {nodes_of(pods)}"


def other_topologies(site: Site) -> str:
    """A topology of another system beside KAI's: KAI's own name is written, the other one is refused (7)."""
    body = {
        "apiVersion": "bayplan.dev/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "ours"},
        "spec": {"levels": [{"nodeLabel": level} for level in LEVELS]},
    }
    site.applied(body)
    try:
        time.sleep(2)
        site.create(job("plain", 3, annotations={}))
        seconds, pods = site.bound("plain", 3)
        stored = site.api.get("/apis/batch/v1/namespaces/research/jobs/plain")
        assert stored["metadata"]["annotations"]["kai.scheduler/topology"] == TOPOLOGY
        wrong = job("wrong", 3, annotations={**wish(), "kai.scheduler/topology": "ours"})
        words = refused(lambda: site.create(wrong))
        return f"{len(pods)} bound after {seconds:.1f} s; refused: {in_words(words, 'ours')[:160]}"
    finally:
        site.kubectl("delete", "topologies.bayplan.dev", "ours")


def hung(site: Site) -> str:
    """Bayplan hangs: a pod without GPUs and its PodGroup do not wait for it (8)."""
    before = len(site.decisions())
    site.create(pod("warm", 0, spec={"schedulerName": HOME}))
    site.bound("warm", 1)
    groups = [line for line in site.decisions()[before:] if "PodGroup" in str(line.get("object", line))]
    assert not groups, groups
    process = site.bayplan.processes[0].popen
    process.send_signal(signal.SIGSTOP)
    try:
        begin = time.monotonic()
        site.create(pod("alone", 0, spec={"schedulerName": HOME}))
        created = time.monotonic() - begin
        seconds, _ = site.bound("alone", 1)
    finally:
        process.send_signal(signal.SIGCONT)
    assert created < 2, created
    return f"stored after {created:.2f} s, bound after {seconds:.1f} s"


def elastic(site: Site) -> str:
    """An elastic PyTorchJob of two to six workers starts with those that have room in its block."""
    for name in ("a", "b", "c"):
        site.create(job(f"fill-{name}", 4))
        site.bound(f"fill-{name}", 4)
    spec = {"elasticPolicy": {"minReplicas": 2, "maxReplicas": 6, "rdzvBackend": "c10d"}}
    site.create(training_job("elastic", 6, master=False, spec=spec, annotations=wish(BLOCK)))
    seconds, pods = site.bound("elastic-", 4)
    return f"4 of 6 bound after {seconds:.1f} s on {nodes_of(pods)}"


def elastic_whole(site: Site) -> str:
    """The same with room for all six."""
    spec = {"elasticPolicy": {"minReplicas": 2, "maxReplicas": 6, "rdzvBackend": "c10d"}}
    site.create(training_job("elastic", 6, master=False, spec=spec, annotations=wish(BLOCK)))
    seconds, pods = site.bound("elastic-", 6)
    return f"bound after {seconds:.1f} s on {nodes_of(pods)}"


def node_loss(site: Site) -> str:
    """A node is deleted under a gang: the lost pod comes back in its rack."""
    site.create(job("trains", 2))
    _, pods = site.bound("trains", 2)
    lost = nodes_of(pods)[1]
    node = site.api.get(f"/api/v1/nodes/{lost}")
    begin = time.monotonic()
    site.api.delete(f"/api/v1/nodes/{lost}")
    for entry in pods:
        if entry["spec"]["nodeName"] == lost:
            site.api.delete(f"/api/v1/namespaces/research/pods/{entry['metadata']['name']}", grace=0)
    try:
        wait_until(
            lambda: len(set(nodes_of(alive(site.pods("trains")))) - {lost}) == 2,
            f"both on nodes that are there: {site.reasons('trains')}",
            BOUND_SECONDS,
        )
        pods = alive(site.pods("trains"))
        assert len(racks_of(pods)) == 1, nodes_of(pods)
        return f"both bound {time.monotonic() - begin:.1f} s later on {nodes_of(pods)}"
    finally:
        metadata = {key: node["metadata"][key] for key in ("name", "labels")}
        site.api.create("/api/v1/nodes", {"metadata": metadata, "status": node["status"]})


def over_limit(site: Site) -> str:
    """A gang over the limit of its KAI queue is told with KAI's words, and releases its hold."""
    amounts = {"quota": 8, "limit": 8, "overQuotaWeight": 1}
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    spec = {
        "parentQueue": "default-parent-queue",
        "resources": {"gpu": amounts, "cpu": unlimited, "memory": unlimited},
    }
    site.applied(
        {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "small"}, "spec": spec}
    )
    try:
        time.sleep(2)
        output = site.apply(job("beyond", 2, labels={"kai.scheduler/queue": "small"}))
        assert output.status == 0, output.err
        warned = " ".join(output.err.split())
        begin = time.monotonic()
        wait_until(lambda: bool(site.events("Unbound")), "what KAI says", 150)
        seconds, warning_text = time.monotonic() - begin, site.events("Unbound")[-1]
        return f"warned: {warned[:160]}; told after {seconds:.0f} s: {warning_text[:200]}"
    finally:
        site.kubectl("delete", "queues.scheduling.run.ai", "small")


def never(site: Site) -> str:
    """Five whole nodes required in racks of four are refused."""
    words = refused(lambda: site.create(job("large", 5)))
    return in_words(words, "5", "rack")[:300]


def deleted_topology(site: Site) -> str:
    """Who deletes the Topology hears which gangs use it (15)."""
    site.create(job("uses", 2))
    site.bound("uses", 2)
    output = site.kubectl("delete", "topologies.kai.scheduler", TOPOLOGY, "--dry-run=server")
    return in_words(output.err, "research/Job/uses")[:240]


def doctor(site: Site) -> str:
    """`bayplan doctor` finds KAI with its Topology and queues."""
    _, text = site.run("doctor")
    line = in_words(text, "kai-scheduler")
    for word in ("KAI has no", "is not there", "no pod that runs it"):
        assert word not in line, line
    return line[-300:]


def only_watched(site: Site) -> str:
    """In audit mode KAI's workloads run as without Bayplan, and nothing is held."""
    template = pod_template(8, schedulerName=HOME)
    labels = {"kai.scheduler/queue": "default-queue"}
    stored = site.create(job("seen", 3, template=template, labels=labels))
    assert not any(key.startswith("bayplan.dev/") for key in stored["metadata"].get("annotations", {}))
    seconds, _ = site.bound("seen", 3)
    assert not site.held(), site.held()
    return f"bound after {seconds:.1f} s, nothing written, nothing held"


SCENARIOS: tuple[Scenario, ...] = (
    doctor, one_rack, kinds, jobs_in_order, never_in_order, exclusive, exclusive_waits, waves, retry,
    preemption, preemption_for_a_set, waits_for_its_turn, segments, leader_segments, other_topologies, hung,
    elastic, elastic_whole, node_loss, over_limit, never, deleted_topology,
)  # fmt: skip
OBSERVED: tuple[Scenario, ...] = (doctor, only_watched)
