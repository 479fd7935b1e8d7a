"""The controller in a cluster: real API server, controllers and scheduler; `bayplan serve --kubeconfig`."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from planner.model.reservation import reservation_id
from tests.e2e.api import Json
from tests.e2e.binaries import ROOT
from tests.e2e.kubelet import STRATEGIC
from tests.e2e.processes import wait_until
from tests.e2e.replicas import RACK, Replicas, events, job, racks_of, reservations
from tests.e2e.serving import PODS, empty, pods, replicas_of, running
from tests.e2e.stage import Cluster
from webhook.kube.ledger.documents import is_next

JOBS = "/apis/batch/v1/namespaces/research/jobs"
DEPLOYMENTS = "/apis/apps/v1/namespaces/research/deployments"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture(scope="module")
def serving(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """Three racks of three nodes, and two replicas that the API server calls."""
    with replicas_of(cluster, tmp_path_factory.mktemp("replicas"), 3, 3) as replicas:
        yield replicas


@pytest.fixture(autouse=True)
def clean(serving: Replicas) -> Iterator[None]:
    """After each test, deletes all applied objects and waits until the reservations are gone."""
    yield
    empty(serving.api, JOBS)


def test_a_job_is_planned_held_claimed_and_bound_where_the_plan_put_it(serving: Replicas) -> None:
    """The reservation is an object with the Job's UID; its pods lie in its rack; the Job tells so."""
    stored = serving.api.create(JOBS, job("train", 3))
    assert "research/Job/train" in reservations(serving.api)
    claimed = "the claim, once a watch tells of the Job"
    wait_until(
        lambda: reservations(serving.api)["research/Job/train"]["status"]["state"] == "claimed", claimed
    )
    held = reservations(serving.api)["research/Job/train"]
    assert held["status"]["ownerUID"] == stored["metadata"]["uid"]
    assert stored["metadata"]["annotations"]["bayplan.dev/reservation"] == held["metadata"]["name"]
    assert racks_of(running(serving, "train", 3)) == {held["status"]["where"]}
    wait_until(lambda: "Reserved" in dict(events(serving.api, "Job", "train")), "the event")


def test_a_dry_run_gives_the_same_and_reserves_nothing(serving: Replicas) -> None:
    """`kubectl apply --dry-run=server`: the place is in the answer, and not in the book."""
    stored = serving.api.create(JOBS, job("dry", 3), dryRun="All")
    assert "admitted" in stored["metadata"]["annotations"]["bayplan.dev/placement"]
    assert reservations(serving.api) == {}


def test_a_deleted_job_gives_its_place_back(serving: Replicas) -> None:
    """Within seconds, without a DELETE webhook."""
    serving.api.create(JOBS, job("short", 3))
    running(serving, "short", 3)
    started = time.monotonic()
    serving.api.delete(f"{JOBS}/short")
    wait_until(lambda: not reservations(serving.api), "the place to be free")
    print(f"\nreleased {time.monotonic() - started:.1f} s after the deletion")


def test_a_finished_job_gives_its_place_back(serving: Replicas, cluster: Cluster) -> None:
    """When its pods have succeeded and the Job says that it is complete."""
    serving.api.create(JOBS, job("done", 2))
    for pod in running(serving, "done", 2):
        cluster.kubelet.finish(pod)
    wait_until(lambda: not reservations(serving.api), "the place to be free", 60)
    wait_until(lambda: "Released" in dict(events(serving.api, "Job", "done")), "the event")


def test_a_failed_job_is_remembered_in_the_history_of_its_rack(serving: Replicas, cluster: Cluster) -> None:
    """The leader writes it into the ConfigMap that every replica reads: three tenths off the average."""
    installed = yaml.safe_load((ROOT / "manifests" / "36-history.yaml").read_text())
    installed["metadata"]["namespace"] = serving.namespace
    serving.api.create(f"/api/v1/namespaces/{serving.namespace}/configmaps", installed)
    body = job("fails", 2)
    body["spec"] |= {"backoffLimit": 0}
    serving.api.create(JOBS, body)
    where = reservations(serving.api)["research/Job/fails"]
    for pod in running(serving, "fails", 2):
        cluster.kubelet.finish(pod, "Failed")
    wait_until(lambda: history(serving), "the history", 60)
    rack = "/".join((where["spec"]["topology"], where["status"]["where"]))
    assert history(serving) == {rack: 0.7}


def recoveries(serving: Replicas) -> float:
    """How often a gang was given other nodes, according to the replicas' metrics."""
    text = "\n".join(serving.metrics(port) for port in serving.ports)
    counts = re.findall(r"^topology_scheduler_recovery_duration_seconds_count (\S+)$", text, re.MULTILINE)
    assert len(counts) == len(serving.ports)
    return sum(map(float, counts))


def history(serving: Replicas) -> dict[str, float]:
    """The stored history of ended gangs, by leaf."""
    folder = f"/api/v1/namespaces/{serving.namespace}/configmaps"
    stored = serving.api.get(f"{folder}/topology-scheduler-history")
    by_leaf: dict[str, float] = yaml.safe_load((stored.get("data") or {}).get("history.yaml", "")) or {}
    return by_leaf


def test_queued_gangs_are_let_in_by_priority_then_age_when_a_place_frees_up(serving: Replicas) -> None:
    """Three racks are taken; of three that wait each gets in when one ends, the older first."""
    for number in range(3):
        serving.api.create(JOBS, job(f"first-{number}", 3))
        running(serving, f"first-{number}", 3)
    for name in ("old", "young"):
        stored = serving.api.create(JOBS, job(name, 3))
        assert '"queued"' in stored["metadata"]["annotations"]["bayplan.dev/placement"]
        wait_until(lambda name=name: len(pods(serving, name)) == 3, "its pods")
        time.sleep(1.1)  # creation times have seconds
    wait_until(lambda: any(r == "Queued" for r, _ in events(serving.api, "Job", "young")), "its position")
    wait_until(
        lambda: any("position 2 of 2" in message for _, message in events(serving.api, "Job", "young")),
        "its position",
    )
    serving.api.delete(f"{JOBS}/first-1")
    assert racks_of(running(serving, "old", 3)) == {"r2"}
    held = reservations(serving.api)["research/Job/old"]
    assert held["status"]["where"] == "r2"
    stored = serving.api.get(f"{JOBS}/old")
    assert stored["metadata"]["annotations"]["bayplan.dev/reservation"] == held["metadata"]["name"]
    wait_until(lambda: "Admitted" in dict(events(serving.api, "Job", "old")), "the event")
    assert {pod["spec"].get("nodeName") for pod in pods(serving, "young")} == {None}
    serving.api.delete(f"{JOBS}/first-0")
    assert racks_of(running(serving, "young", 3)) == {"r1"}


def test_a_small_gang_is_let_in_past_a_large_one_only_beside_its_place(serving: Replicas) -> None:
    """The first that waits would take all racks, so nobody passes it although nodes are free."""
    serving.api.create(JOBS, job("busy", 3))
    running(serving, "busy", 3)
    serving.api.create(JOBS, job("whole", 9, required=""))
    wait_until(lambda: any("position 1" in m for _, m in events(serving.api, "Job", "whole")), "to wait")
    held = reservations(serving.api)
    assert set(held) == {"research/Job/busy"}


def test_a_more_urgent_gang_is_let_in_before_an_older_one(serving: Replicas) -> None:
    """Priority first, then age: the younger gang of a higher PriorityClass gets the rack that frees up."""
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    serving.api.create(classes, {"metadata": {"name": "urgent"}, "value": 1000})
    try:
        for number in range(3):
            serving.api.create(JOBS, job(f"first-{number}", 3))
            running(serving, f"first-{number}", 3)
        serving.api.create(JOBS, job("patient", 3))
        time.sleep(1.1)  # creation times have seconds
        serving.api.create(JOBS, job("hurried", 3, priorityClassName="urgent"))
        wait_until(lambda: len(pods(serving, "hurried")) == 3, "its pods")
        wait_until(
            lambda: any("position 2 of 2" in m for _, m in events(serving.api, "Job", "patient")), "both"
        )
        serving.api.delete(f"{JOBS}/first-1")
        assert racks_of(running(serving, "hurried", 3)) == {"r2"}
        assert {pod["spec"].get("nodeName") for pod in pods(serving, "patient")} == {None}
        wait_until(
            lambda: any("position 1 of 1" in m for _, m in events(serving.api, "Job", "patient")), "turn"
        )
    finally:
        serving.api.delete(f"{classes}/urgent")


def test_a_small_gang_starts_beside_the_place_of_one_that_waits_and_does_not_delay_it(
    serving: Replicas,
) -> None:
    """Two racks are busy, and the first that waits wants those two: the third is free for a later gang."""
    for name in ("busy-1", "busy-2"):
        serving.api.create(JOBS, job(name, 3))
        running(serving, name, 3)
    wanted = {"key": RACK, "operator": "In", "values": ["r1", "r2"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    serving.api.create(JOBS, job("wide", 6, required="", affinity=affinity))
    wait_until(lambda: any("position 1" in m for _, m in events(serving.api, "Job", "wide")), "to wait")
    serving.api.create(JOBS, job("small", 2))
    assert racks_of(running(serving, "small", 2)) == {"r3"}
    for name in ("busy-1", "busy-2"):
        assert {pod["spec"].get("nodeName") for pod in pods(serving, "wide")} == {None}
        serving.api.delete(f"{JOBS}/{name}")
    assert racks_of(running(serving, "wide", 6)) == {"r1", "r2"}
    assert racks_of(pods(serving, "small")) == {"r3"}


@pytest.mark.parametrize("how", ["cordoned", "not ready", "gone", "unlabelled"])
def test_a_gang_that_loses_a_node_is_replanned_with_one_pod_moved(serving: Replicas, how: str) -> None:
    """Its rack has a third node: the pod goes there, the others stay, within 30 seconds of the mark."""
    serving.api.create(JOBS, job("train", 2))
    before = {pod["spec"]["nodeName"] for pod in running(serving, "train", 2)}
    planned = {
        assignment["node"]
        for assignment in reservations(serving.api)["research/Job/train"]["spec"]["assignments"]
    }
    lost = sorted(planned)[0]
    assert before <= {f"{lost.partition('-')[0]}-n{host}" for host in (1, 2, 3)}
    former = serving.api.get(f"/api/v1/nodes/{lost}")
    started = time.monotonic()
    mark(serving, lost, how)
    try:
        wait_until(lambda: lost not in assigned(serving, "train"), "the gang to be replanned", 30)
        took = time.monotonic() - started
        after = assigned(serving, "train")
        assert len(after - planned) == 1
        assert {node.partition("-")[0] for node in after} == {lost.partition("-")[0]}
        wait_until(lambda: "Replanned" in dict(events(serving.api, "Job", "train")), "the event")
        (message,) = {m for r, m in events(serving.api, "Job", "train") if r == "Replanned"}
        assert f"lost {lost}" in message
        assert "1 of 2 pods go to" in message
        assert recoveries(serving) > 0
        print(f"\n{how}: replanned after {took:.1f} s: {message}")
    finally:
        heal(serving, former)


def test_no_gpu_pod_of_others_lands_on_a_node_that_a_gang_holds_unused(serving: Replicas) -> None:
    """Two of a rack's three nodes are used. A pod that insists on the rack waits; the pods of a gang that is
    only advised, and of a Deployment, go elsewhere, although there is room for both."""
    serving.api.create(JOBS, job("train", 2))
    (rack,) = racks_of(running(serving, "train", 2))
    insists = job("insists", 1, required="", nodeSelector={RACK: rack})
    stored = serving.api.create(JOBS, insists)
    assert '"queued"' in stored["metadata"]["annotations"]["bayplan.dev/placement"]
    advised = job("advised", 3)
    advised["metadata"]["annotations"]["bayplan.dev/reserve"] = "none"
    serving.api.create(JOBS, advised)
    others = running(serving, "advised", 3)
    assert rack not in racks_of(others)
    for pod in others:
        (term,) = pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
        assert set(term["matchExpressions"][0]["values"]) == {f"{rack}-n{host}" for host in (1, 2, 3)}
    body = deployment("web", 3)
    serving.api.create(DEPLOYMENTS, body)
    try:
        web = {"labelSelector": "app=web"}
        wait_until(
            lambda: sum("nodeName" in pod["spec"] for pod in serving.api.items(PODS, **web)) == 3,
            "the Deployment to run",
            60,
        )
        assert rack not in racks_of(serving.api.items(PODS, **web))
    finally:
        serving.api.delete(f"{DEPLOYMENTS}/web")


def deployment(name: str, replicas: int) -> Json:
    """A Deployment whose pods take a whole node each, independently of each other."""
    template = job(name, 1)["spec"]["template"]
    template["spec"]["restartPolicy"] = "Always"
    template["metadata"] = {"labels": {"app": name}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "research"},
        "spec": spec,
    }


JOB_BACKOFF = 180.0
"""Seconds. The Job controller makes a fourth lost pod anew after 80 (10, doubled with each)."""


@pytest.mark.parametrize("labelled", [True, False], ids=["labelled", "nameless"])
@pytest.mark.parametrize(("mode", "count"), [("nodes", 2), ("domain", 1)])
def test_a_gang_pinned_to_hosts_leaves_a_lost_one_and_its_new_pods_follow_twice(
    serving: Replicas, mode: str, count: int, labelled: bool
) -> None:
    """By hostname label or, without that, by name. Its Job's template tells the first hosts for ever."""
    names = [f"r1-n{host}" for host in (1, 2, 3)]
    if not labelled:
        for name in names:
            host_label(serving, name, None)
    body = job("hosts", count)
    body["metadata"]["annotations"]["bayplan.dev/reserve"] = mode
    try:
        serving.api.create(JOBS, body)
        running(serving, "hosts", count)
        for _ in range(2):
            (lost, *_) = sorted(assigned(serving, "hosts"))
            mark(serving, lost, "cordoned")
            left(serving, "hosts", lost)
            now = assigned(serving, "hosts")
            assert len(now) == count
            assert racks_of(pods(serving, "hosts")) == {"r1"}
            for pod in pods(serving, "hosts"):
                if pod["spec"].get("nodeName") not in now:
                    serving.api.delete(f"{PODS}/{pod['metadata']['name']}", grace=0)
            wait_until(partial(on, serving, "hosts", now), f"the new pods to run on {now}", JOB_BACKOFF)
            if mode == "nodes":
                serving.api.merge(f"/api/v1/nodes/{lost}", {"spec": {"unschedulable": None}})
    finally:
        for name in names:
            host_label(serving, name, name)
            serving.api.merge(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None}})


def test_jobs_of_one_pod_group_are_claimed_replanned_and_told_as_one_gang(serving: Replicas) -> None:
    """The controller reads them as admission does. It knew no gang of the PodGroup's name: the place
    stayed on a node that was lost, and nobody was told."""
    groups, gang = "/apis/scheduling.run.ai/v2alpha2/namespaces/research/podgroups", "research/PodGroup/serve"
    constraint = {"topology": "racks", "requiredTopologyLevel": RACK}
    spec = {"minMember": 2, "topologyConstraint": constraint}
    metadata = {"name": "serve", "namespace": "research"}
    body = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": metadata}
    serving.api.create(groups, {**body, "spec": spec})
    try:
        wait_until(lambda: joins(serving, gang), "the replicas to know the PodGroup")
        for name in ("prefill", "decode"):
            serving.api.create(JOBS, member(name))
        wait_until(lambda: reservations(serving.api)[gang]["status"]["state"] == "claimed", "the claim")
        (lost,) = {pod["spec"]["nodeName"] for pod in running(serving, "decode", 1)}
        (other,) = {pod["spec"]["nodeName"] for pod in running(serving, "prefill", 1)}
        former = serving.api.get(f"/api/v1/nodes/{lost}")
        mark(serving, lost, "cordoned")
        try:
            wait_until(lambda: lost not in seats_of(serving, gang), "the gang to be replanned", 30)
            after = seats_of(serving, gang)
            assert other in after
            assert {node.partition("-")[0] for node in after} == {other.partition("-")[0]}
            for name in ("prefill", "decode"):
                wait_until(partial(tells, serving, name, after), f"{name} to be told", 30)
        finally:
            heal(serving, former)
    finally:
        serving.api.delete(f"{groups}/serve")


def member(name: str) -> Json:
    """A Job of one pod that belongs to the PodGroup `serve`."""
    body = job(name, 1)
    body["metadata"]["annotations"] = {"bayplan.dev/reserve": "nodes"}
    body["spec"]["template"]["metadata"] = {"annotations": {"pod-group-name": "serve"}}
    return body


def joins(serving: Replicas, gang: str) -> bool:
    """Returns whether every replica assigns such a Job to that gang: the API server may ask any of them."""
    probes = [serving.api.create(JOBS, member("probe"), dryRun="All") for _ in range(8)]
    names = {item["metadata"]["annotations"].get("bayplan.dev/reservation") for item in probes}
    return names == {reservation_id(gang)}


def seats_of(serving: Replicas, gang: str) -> set[str]:
    """The nodes that a gang's reservation assigns."""
    return {seat["node"] for seat in reservations(serving.api)[gang]["spec"]["assignments"]}


def tells(serving: Replicas, name: str, nodes: set[str]) -> bool:
    """Returns whether the Job's annotation names these nodes."""
    note = serving.api.get(f"{JOBS}/{name}")["metadata"]["annotations"]["bayplan.dev/placement"]
    return set(json.loads(note).get("nodes", ())) == nodes


def left(serving: Replicas, name: str, node: str) -> None:
    """Waits until the gang of a Job is planned on other nodes."""
    wait_until(lambda: node not in assigned(serving, name), "the gang to be replanned", 30)


def on(serving: Replicas, name: str, nodes: set[str]) -> bool:
    """Returns whether the pods of a Job are bound to these nodes."""
    return {pod["spec"].get("nodeName") for pod in pods(serving, name)} == nodes


def host_label(serving: Replicas, name: str, value: str | None) -> None:
    """Sets or removes a node's hostname label."""
    labels = {"kubernetes.io/hostname": value}
    serving.api.merge(f"/api/v1/nodes/{name}", {"metadata": {"labels": labels}})


@pytest.mark.parametrize("mode", ["domain", "nodes"])
def test_a_reservation_that_somebody_deleted_is_made_again_where_the_pods_run(
    serving: Replicas, cluster: Cluster, mode: str
) -> None:
    """`kubectl delete reservation` under a running gang: within seconds it holds its place again."""
    body = job("train", 2)
    body["metadata"]["annotations"]["bayplan.dev/reserve"] = mode
    stored = serving.api.create(JOBS, body)
    bound = {pod["spec"]["nodeName"] for pod in running(serving, "train", 2)}

    def held_by_the_job() -> bool:
        held = reservations(serving.api)["research/Job/train"]
        return bool(held["status"].get("ownerUID") == stored["metadata"]["uid"])

    before: Json = {}

    def settled() -> bool:
        """Returns whether the Reservation is the gang's own, and keeps it in `before`: the Reservation of a
        proposal is deleted when the gang takes its place, so a later read may have none or another one.
        """
        held = reservations(serving.api)["research/Job/train"]
        before.update(held)
        is_own = bool(held["status"].get("ownerUID") == stored["metadata"]["uid"])
        return is_own and not is_next(held["metadata"]["name"], "research/Job/train")

    wait_until(settled, "the Job's own Reservation")
    output = cluster.kubectl("delete", "reservation", before["metadata"]["name"])
    assert output.status == 0, output.err
    wait_until(lambda: bool(reservations(serving.api)), "the reservation", 30)
    held = reservations(serving.api)["research/Job/train"]
    assert held["spec"]["domains"] == before["spec"]["domains"]
    assert {assignment["node"] for assignment in held["spec"]["assignments"]} == bound
    wait_until(held_by_the_job, "it to be the Job's")
    wait_until(lambda: "Replanned" in dict(events(serving.api, "Job", "train")), "the event")


def test_kubectl_shows_reservations_and_what_happened_to_a_gang(serving: Replicas, cluster: Cluster) -> None:
    """`kubectl get reservations` is worth reading, and `kubectl describe job` tells the gang's story."""
    serving.api.create(JOBS, job("story", 3))
    for number in range(2):
        serving.api.create(JOBS, job(f"other-{number}", 3))
    running(serving, "story", 3)
    wait_until(
        lambda: reservations(serving.api)["research/Job/story"]["status"]["state"] == "claimed", "its claim"
    )
    table = cluster.kubectl("get", "reservations").out.splitlines()
    assert table[0].split() == ["NAME", "GANG", "LEVEL", "DOMAIN", "NODES", "GPUS", "STATE", "AGE"]
    (row,) = (line.split() for line in table if "research/Job/story" in line)
    assert row[1:7] == ["research/Job/story", RACK, "r1", "3", "24", "claimed"]
    serving.api.create(JOBS, job("next", 3))
    wait_until(lambda: "Queued" in dict(events(serving.api, "Job", "next")), "it to wait")
    (rack,) = racks_of(pods(serving, "story"))
    for pod in pods(serving, "story"):
        cluster.kubelet.finish(pod)
    running(serving, "next", 3)
    mark(serving, f"{rack}-n1", "cordoned")
    try:
        wait_until(lambda: "Replanned" in dict(events(serving.api, "Job", "next")), "the event", 30)
    finally:
        serving.api.merge(f"/api/v1/nodes/{rack}-n1", {"spec": {"unschedulable": None}})
    wait_until(lambda: "Released" in dict(events(serving.api, "Job", "story")), "the event", 30)
    wait_until(lambda: "Reserved" in dict(events(serving.api, "Job", "next")), "the event", 30)
    descriptions = {
        name: cluster.kubectl("describe", "job", name, "-n", "research").out for name in ("story", "next")
    }
    event_lines = {
        name: [line for line in text.splitlines() if " bayplan " in line]
        for name, text in descriptions.items()
    }
    print("\n" + "\n".join(line for lines in event_lines.values() for line in lines))
    reasons = {name: {line.split()[1] for line in lines} for name, lines in event_lines.items()}
    assert reasons == {
        "story": {"Reserved", "Released"},
        "next": {"Queued", "Admitted", "Reserved", "Replanned"},
    }
    assert any("waits for" in line for line in event_lines["next"])


def test_a_gang_whose_rack_is_lost_moves_and_its_new_pods_follow(serving: Replicas) -> None:
    """All nodes of its rack are cordoned: the pods that replace its own go to the new rack."""
    serving.api.create(JOBS, job("train", 2))
    running(serving, "train", 2)
    (rack,) = {node.partition("-")[0] for node in assigned(serving, "train")}
    names = [f"{rack}-n{host}" for host in (1, 2, 3)]
    try:
        for name in names:
            mark(serving, name, "cordoned")
        wait_until(
            lambda: rack not in {n.partition("-")[0] for n in assigned(serving, "train")}, "the move", 30
        )
        (new,) = {node.partition("-")[0] for node in assigned(serving, "train")}
        for pod in pods(serving, "train"):
            serving.api.delete(f"{PODS}/{pod['metadata']['name']}", grace=0)
        wait_until(lambda: racks_of(pods(serving, "train")) == {new}, "the new pods to run there", 60)
    finally:
        for name in names:
            serving.api.merge(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None}})


def test_the_leader_is_one_and_another_takes_over(serving: Replicas, cluster: Cluster) -> None:
    """Of two replicas one leads; when it is killed the other releases what finishes, within 30 seconds."""
    lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/bayplan-controller"

    def leader() -> int | None:
        holder = serving.api.get(lease)["spec"].get("holderIdentity") or ""
        pids = [f"_{process.popen.pid}_" for process in serving.processes]
        return next((number for number, pid in enumerate(pids) if pid in holder), None)

    wait_until(lambda: leader() is not None, "a leader")
    former = leader()
    assert former is not None
    serving.api.create(JOBS, job("last", 2))
    bound = running(serving, "last", 2)
    serving.kill(former)
    started = time.monotonic()
    for pod in bound:
        cluster.kubelet.finish(pod)
    wait_until(lambda: leader() == 1 - former, "another leader", 30)
    print(f"\nanother leader {time.monotonic() - started:.1f} s after a kill")
    wait_until(lambda: not reservations(serving.api), "it to release what finished", 30)
    serving.restart(former)
    wait_until(lambda: serving.is_ready(serving.ports[former]), "the replica to come back", 60)


def assigned(serving: Replicas, name: str) -> set[str]:
    """The nodes that the reservation of a Job's gang assigns."""
    held = reservations(serving.api).get(f"research/Job/{name}")
    return {assignment["node"] for assignment in held["spec"]["assignments"]} if held else set()


def mark(serving: Replicas, name: str, how: str) -> None:
    """Makes a node unavailable in one of four ways."""
    path = f"/api/v1/nodes/{name}"
    if how == "cordoned":
        serving.api.merge(path, {"spec": {"unschedulable": True}})
    elif how == "not ready":
        ready(serving, name, "False")
    elif how == "unlabelled":
        serving.api.merge(path, {"metadata": {"labels": {RACK: None}}})
    else:
        serving.api.delete(path)


def ready(serving: Replicas, name: str, status: str) -> None:
    """Sets the Ready condition of a node, as its kubelet or the node controller does."""
    condition = {"type": "Ready", "status": status, "reason": "Played", "message": "played"}
    path = f"/api/v1/nodes/{name}/status"
    serving.api.call("PATCH", path, {"status": {"conditions": [condition]}}, STRATEGIC)


def heal(serving: Replicas, former: Json) -> None:
    """Makes the node available again."""
    name = former["metadata"]["name"]
    fresh = {**former, "metadata": {"name": name, "labels": former["metadata"]["labels"]}}
    path = Path("/api/v1/nodes")
    if any(node["metadata"]["name"] == name for node in serving.api.items(str(path))):
        patch = {"metadata": {"labels": former["metadata"]["labels"]}, "spec": {"unschedulable": None}}
        serving.api.merge(f"{path}/{name}", patch)
        ready(serving, name, "True")
    else:
        serving.api.create(str(path), {**fresh, "spec": {}})
    wait_until(lambda: not serving.api.get(f"{path}/{name}")["spec"].get("taints"), "its taints to go")
