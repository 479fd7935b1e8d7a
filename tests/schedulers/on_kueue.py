"""Scenarios beside the real Kueue: in a queue whose flavor has a topology, and in one that counts quota."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps

from tests.e2e.api import Json
from tests.e2e.processes import wait_until
from tests.schedulers.nodes import BLOCK, POOL, RACK, SHARED_POOL
from tests.schedulers.site import BOUND_SECONDS, Site, alive, in_words, nodes_of, racks_of, refused
from tests.schedulers.table import Scenario
from tests.schedulers.workloads import QUEUE, job, job_set, leader_worker_set, pod, training_job

TOPOLOGY_QUEUE, PLAIN = "topology", "plain"
CLASS = "priorityClassName"


def queued(queue: str) -> Json:
    """The label that puts a workload into a queue, and a rack that it requires of whatever nodes it gets."""
    wish = {"kai.scheduler/topology-required-placement": RACK}
    return {"labels": {QUEUE: queue}, "annotations": wish}


def in_both(scenario: Callable[[Site, str], str]) -> tuple[Scenario, Scenario]:
    """The scenario in each of the two queues."""

    def of(queue: str) -> Scenario:
        @wraps(scenario)
        def played(site: Site) -> str:
            return scenario(site, queue)

        first = (scenario.__doc__ or "").strip().partition("\n")[0].rstrip(".")
        played.__doc__ = f"{first} [{queue}]"
        return played

    return of(TOPOLOGY_QUEUE), of(PLAIN)


def one_rack(site: Site, queue: str) -> str:
    """A Job of three nodes in one rack (9)."""
    site.create(job("train", 3, **queued(queue)))
    seconds, pods = site.bound("train", 3)
    assert len(racks_of(pods)) == 1, nodes_of(pods)
    return f"bound after {seconds:.1f} s on {nodes_of(pods)}"


def takes_turns(site: Site, queue: str) -> str:
    """Three Jobs of a whole rack where two fit: the third waits for its turn (9)."""
    for name in ("first", "second", "third"):
        site.create(job(name, 4, **queued(queue)))
    wait_until(
        lambda: len(nodes_of(alive(site.pods()))) >= 8, f"two to be bound: {site.reasons('')}", BOUND_SECONDS
    )
    started = {pod["metadata"]["labels"]["job-name"] for pod in site.pods() if pod["spec"].get("nodeName")}
    assert len(started) == 2, started
    (last,) = {"first", "second", "third"} - started
    (holder, _) = sorted(started)
    site.finish(site.pods(holder))
    seconds, pods = site.bound(last, 4)
    assert len(racks_of(pods)) == 1, nodes_of(pods)
    return f"the third bound {seconds:.1f} s after one had ended"


def selector_and_affinity(site: Site, queue: str) -> str:
    """What is bound carries no pin that contradicts Kueue's own node selector (9)."""
    site.create(job("agrees", 2, **queued(queue)))
    _, pods = site.bound("agrees", 2)
    for body in pods:
        terms = body["spec"].get("affinity", {}).get("nodeAffinity", {})
        selector = body["spec"].get("nodeSelector", {})
        if queue == TOPOLOGY_QUEUE:
            assert selector.get("kubernetes.io/hostname") == body["spec"]["nodeName"], selector
            assert "requiredDuringSchedulingIgnoredDuringExecution" not in terms, terms
    wait_until(lambda: any(held for held in site.held().values()), "its place to be held", 30)
    nodes = sorted({node for held in site.held().values() for node in held})
    assert nodes == sorted(set(nodes_of(pods))), (nodes, nodes_of(pods))
    return f"held where it is bound: {nodes}"


def suspended(site: Site, queue: str) -> str:
    """A suspended Job without quota holds nothing, and no level where the flavor has none (11)."""
    for name in ("full-a", "full-b"):
        site.create(job(name, 4, **queued(queue)))
    site.bound("full-a", 4)
    site.bound("full-b", 4)
    stored = site.create(job("waits", 4, **queued(queue)))
    assert stored["spec"]["suspend"] is True, "Kueue suspends it"
    annotations = stored["spec"]["template"]["metadata"].get("annotations", {})
    level = annotations.get("kueue.x-k8s.io/podset-required-topology")
    assert level == (RACK if queue == TOPOLOGY_QUEUE else None), annotations
    time.sleep(3)
    assert not any("waits" in gang for gang in site.held()), site.held()
    _, text = site.run("why", "research/Job/waits")
    warning_text = in_words(text, "Kueue")
    for name in ("full-a", "full-b"):
        site.finish(site.pods(name))
    seconds, _ = site.bound("waits", 4)
    return f"bound {seconds:.1f} s after room was free; while it waited: {warning_text[:160]}"


def kinds(site: Site, queue: str) -> str:
    """A JobSet of two jobs, a PyTorchJob of a master and two workers."""
    site.create(job_set("set", {"a": 1, "b": 2}, **queued(queue)))
    first, pods = site.bound("set-", 3)
    assert len(racks_of(pods)) == 1, nodes_of(pods)
    site.create(training_job("torch", 2, **queued(queue)))
    second, pods = site.bound("torch-", 3)
    assert len(racks_of(pods)) == 1, nodes_of(pods)
    return f"JobSet bound after {first:.1f} s, PyTorchJob after {second:.1f} s, each in a rack"


def pod_group(site: Site, queue: str) -> str:
    """A group of three pods in one rack."""
    _create_trio(site, queue)
    seconds, pods = site.bound("trio", 3)
    assert len(racks_of(pods)) == 1, nodes_of(pods)
    return f"bound after {seconds:.1f} s in one rack"


def _create_trio(site: Site, queue: str) -> None:
    key = "kai.scheduler/topology-required-placement"
    if queue == TOPOLOGY_QUEUE:
        key = "kueue.x-k8s.io/podset-required-topology"
    labels = {QUEUE: queue, "kueue.x-k8s.io/pod-group-name": "trio"}
    annotations = {"kueue.x-k8s.io/pod-group-total-count": "3", key: RACK}
    for number in range(3):
        site.create(pod(f"trio-{number}", labels=labels, annotations=annotations))


def quota_told(site: Site) -> str:
    """A group of pods without quota holds nothing, and is told with the words of Kueue's Workload (11)."""
    for name in ("full-a", "full-b"):
        site.create(job(name, 4, **queued(PLAIN)))
        site.bound(name, 4)
    _create_trio(site, PLAIN)
    begin = time.monotonic()

    def words() -> list[str]:
        return [text for text in site.events("Unbound") if "quota" in text]

    wait_until(lambda: bool(words()), f"what Kueue says: {site.reasons('trio')}", 180)
    seconds, text = time.monotonic() - begin, words()[-1]
    assert not any("trio" in gang for gang in site.held()), site.held()
    site.finish(site.pods("full-a"))
    bound, pods = site.bound("trio", 3)
    assert len(racks_of(pods)) == 1, nodes_of(pods)
    return f"told after {seconds:.0f} s: {text[:200]}; bound {bound:.1f} s after there was quota"


def leaders(site: Site, queue: str) -> str:
    """A LeaderWorkerSet of two groups of two, each in a rack."""
    return _bound_by_group(site, queue, leader_worker_set("serve", 2, 2, **queued(queue)))


def leaders_of_a_pool(site: Site, queue: str) -> str:
    """A LeaderWorkerSet of two groups of two whose template has the node labels of its flavor."""
    body = leader_worker_set("serve", 2, 2, **queued(queue))
    labels = {"pool": POOL if queue == TOPOLOGY_QUEUE else SHARED_POOL}
    body["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["nodeSelector"] = labels
    return _bound_by_group(site, queue, body)


def _bound_by_group(site: Site, queue: str, body: Json) -> str:
    """Each group is in one rack, on nodes that are held for it: with a topology those that Kueue assigned.
    Without one the scheduler chooses nodes in the rack, and the reservation follows a moment later.
    """
    site.create(body)
    seconds, pods = site.bound("serve", 4)
    holder = "KueueWorkload" if queue == TOPOLOGY_QUEUE else "LeaderWorkerSet"
    groups = [[entry for entry in pods if entry["metadata"]["name"].startswith(f"serve-{n}")] for n in (0, 1)]
    assert all(len(racks_of(own)) == 1 for own in groups), list(map(nodes_of, groups))

    def held() -> list[list[str]]:
        return sorted(nodes for gang, nodes in site.held().items() if holder in gang)

    wait_until(
        lambda: sorted(map(nodes_of, groups)) == held(), f"{list(map(nodes_of, groups))}: {held()}", 10
    )
    return f"bound after {seconds:.1f} s on {nodes_of(pods)}"


def leaders_evicted(site: Site, queue: str) -> str:
    """A group of a LeaderWorkerSet that Kueue evicts gives its rack back, and comes again."""
    body = leader_worker_set("serve", 2, 4, **queued(queue))
    body["spec"]["leaderWorkerTemplate"]["workerTemplate"] = _classed("low")
    site.create(body)
    first, _ = site.bound("serve", 8)
    site.create(job("urgent", 4, template=_classed("high"), **queued(queue)))
    seconds, pods = site.bound("urgent", 4)
    assert len(racks_of(pods)) == 1, nodes_of(pods)
    site.finish(pods)
    back, pods = site.bound("serve", 8)
    groups = [[entry for entry in pods if entry["metadata"]["name"].startswith(f"serve-{n}")] for n in (0, 1)]
    assert all(len(racks_of(own)) == 1 for own in groups), list(map(nodes_of, groups))
    return f"bound after {first:.1f} s; the Job {seconds:.1f} s later; the group {back:.1f} s after its end"


def preemption(site: Site, queue: str) -> str:
    """A Job of a higher PriorityClass on full quota evicts one that comes back when it has ended."""
    for name in ("low-a", "low-b"):
        site.create(job(name, 4, template=_classed("low"), **queued(queue)))
        site.bound(name, 4)
    site.create(job("urgent", 4, template=_classed("high"), **queued(queue)))
    seconds, _ = site.bound("urgent", 4)
    victims = [name for name in ("low-a", "low-b") if len(nodes_of(alive(site.pods(name)))) < 4]
    assert len(victims) == 1, victims
    site.finish(site.pods("urgent"))
    back, _ = site.bound(victims[0], 4)
    return f"bound after {seconds:.1f} s; the evicted one again {back:.1f} s after its end"


def _classed(name: str) -> Json:
    from tests.schedulers.workloads import pod_template

    return pod_template(8, priorityClassName=name)


def node_loss(site: Site, queue: str) -> str:
    """A node that is deleted under a Job of two in a rack."""
    site.create(job("trains", 2, **queued(queue)))
    _, pods = site.bound("trains", 2)
    lost = nodes_of(pods)[0]
    node = site.api.get(f"/api/v1/nodes/{lost}")
    site.api.delete(f"/api/v1/nodes/{lost}")
    begin = time.monotonic()
    for body in pods:
        if (
            body["spec"]["nodeName"] == lost
        ):  # the pod collector takes a while; a kubelet that is gone does not
            site.api.delete(f"/api/v1/namespaces/research/pods/{body['metadata']['name']}", grace=0)
    try:
        wait_until(
            lambda: (
                len(nodes_of(alive(site.pods("trains")))) == 2
                and lost not in nodes_of(alive(site.pods("trains")))
            ),
            f"both on nodes that are there: {site.reasons('trains')}",
            BOUND_SECONDS * 2,
        )
        pods = alive(site.pods("trains"))
        return f"both bound {time.monotonic() - begin:.0f} s later on {nodes_of(pods)}"
    finally:
        metadata = {key: node["metadata"][key] for key in ("name", "labels")}
        site.api.create("/api/v1/nodes", {"metadata": metadata, "status": node["status"]})


def elastic(site: Site, queue: str) -> str:
    """A Job that may start with fewer pods: Kueue admits the part that has quota."""
    site.create(job("full", 4, **queued(queue)))
    site.bound("full", 4)
    annotations = {"kueue.x-k8s.io/job-min-parallelism": "2"}
    spec = {"completionMode": "NonIndexed"}
    site.create(job("shrinks", 6, spec=spec, **{**queued(queue), "annotations": annotations}))
    seconds, pods = site.bound("shrinks", 2)
    parallelism = site.api.get("/apis/batch/v1/namespaces/research/jobs/shrinks")["spec"]["parallelism"]
    assert 2 <= parallelism <= 4, parallelism
    site.bound("shrinks", parallelism)
    return f"{parallelism} of 6 pods bound after {seconds:.1f} s, {len(pods)} pods there"


def never(site: Site, queue: str) -> str:
    """Five whole nodes required in racks of four are refused."""
    words = refused(lambda: site.create(job("large", 5, **queued(queue))))
    return in_words(words, "5", "rack")[:300]


def two_at_once(site: Site, queue: str) -> str:
    """A gang across racks beside one in a rack, in the block that both need."""
    annotations = {"kai.scheduler/topology-preferred-placement": BLOCK}
    site.create(job("wide", 6, **{**queued(queue), "annotations": annotations}))
    site.create(job("narrow", 4, **queued(queue)))
    begin = time.monotonic()
    site.bound("wide", 6)
    site.finish(site.pods("wide"))
    _, pods = site.bound("narrow", 4)
    assert len(racks_of(pods)) == 1, nodes_of(pods)
    return f"one after the other, both bound within {time.monotonic() - begin:.1f} s"


def doctor(site: Site) -> str:
    """`bayplan doctor` finds Kueue with its Topology, flavors and queues."""
    _, text = site.run("doctor")
    line = in_words(text, "kueue")
    for word in ("has no LocalQueue", "is not there", "no pod that runs it"):
        assert word not in line, line
    return line[-300:]


def only_watched(site: Site) -> str:
    """In audit mode Kueue's workloads run as without Bayplan, and nothing is held."""
    for queue in (TOPOLOGY_QUEUE, PLAIN):
        stored = site.create(job(f"seen-{queue}", 2, **queued(queue)))
        assert not any(key.startswith("bayplan.dev/") for key in stored["metadata"].get("annotations", {}))
        site.bound(f"seen-{queue}", 2)
    assert not site.held(), site.held()
    return "both bound, nothing written, nothing held"


def fenced_rack(site: Site) -> str:
    """With the taint fence: a Job in each queue is bound, the topology's flavor needs no toleration (10)."""
    own = queued(PLAIN)
    own["annotations"]["bayplan.dev/reserve"] = "domain"
    site.create(job("ours", 2, **own))
    _, pods = site.bound("ours", 2)
    (rack,) = racks_of(pods)

    def tainted() -> list[str]:
        nodes = site.api.items("/api/v1/nodes")
        return [
            node["metadata"]["name"]
            for node in nodes
            if any(taint["key"] == "bayplan.dev/reserved" for taint in node["spec"].get("taints", ()))
        ]

    wait_until(lambda: bool(tainted()), "the rack to be fenced", 60)
    site.create(job("placed", 3, **queued(TOPOLOGY_QUEUE)))
    seconds, placed = site.bound("placed", 3)
    site.create(job("beside", 2, **queued(PLAIN)))
    _, others = site.bound("beside", 2)
    assert rack not in racks_of(others), nodes_of(others)
    return f"{rack} fenced on {tainted()}; Kueue's own bound after {seconds:.1f} s on {nodes_of(placed)}"


SCENARIOS: tuple[Scenario, ...] = (
    doctor,
    *(
        played
        for scenario in (
            one_rack, takes_turns, selector_and_affinity, suspended, kinds, pod_group, leaders,
            leaders_of_a_pool, leaders_evicted, preemption, node_loss, elastic, never, two_at_once,
        )
        for played in in_both(scenario)
    ),
    quota_told,
)  # fmt: skip
OBSERVED: tuple[Scenario, ...] = (doctor, only_watched)
FENCED: tuple[Scenario, ...] = (fenced_rack,)
