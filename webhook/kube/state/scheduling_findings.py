"""Finds faults in the installation of schedulers beside Bayplan. Pure.

Checks that each system runs in a version that reads what Bayplan writes, that the objects to which its other
objects refer exist, and that no two systems queue the same workload.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.manifests.schedulers.scheduler_facts import FACTS_OF
from planner.manifests.schedulers.systems import SYSTEMS, schedulers_run_by
from planner.model.errors import Where
from planner.model.labels import RESERVED_TAINT
from planner.model.schedulers import KAI, KUEUE, RUNAI, SchedulersSeen
from planner.model.words import counted
from webhook.kube.state.findings import CheckFinding
from webhook.placement.taints import reserved_taint_value
from webhook.policy.model.packs import AUTO, SYSTEM_OF, fitting
from webhook.policy.model.parameters import PARAMETERS
from webhook.workloads.queues import KUEUE_QUEUE

Json = Mapping[str, Any]


IN_PARAMETERS = f"in the ConfigMap {PARAMETERS}"
SUBJECT = "scheduling"


GANGS_SINCE = (0, 13)
"""The first minor version of KAI that reads `kai.scheduler/batch-min-member`. With an older one, such as
v0.12, a Job is no gang.
"""


OTHER_QUEUES = ("kai.scheduler/queue", "runai/queue")
"""The labels that name a queue of KAI or Run:ai."""


@dataclass(frozen=True, slots=True)
class SchedulingObjects:
    """Objects as the API server lists them. `kueue_config`: Kueue's configuration as YAML, "" if unknown.
    `queued_jobs`: Jobs in a Kueue queue. `nodes` and `reservations`: empty unless Kueue is installed.
    """

    pods: Sequence[Json] = ()
    kueue_topologies: Sequence[Json] = ()
    flavors: Sequence[Json] = ()
    cluster_queues: Sequence[Json] = ()
    local_queues: Sequence[Json] = ()
    queued_jobs: Sequence[Json] = ()
    kueue_config: str = ""
    kai_queues: Sequence[Json] = ()
    nodes: Sequence[Json] = ()
    reservations: Sequence[Json] = ()


def scheduling_findings(seen: SchedulersSeen, objects: SchedulingObjects) -> list[CheckFinding]:
    """Returns a finding for each system that is installed, and one for each fault that keeps workloads
    waiting.
    """
    running = _running(objects.pods)
    shown = (system.name for system in SYSTEMS if system.name in seen.shown)
    findings = [_runs(name, seen.shown[name], running.get(name)) for name in shown]
    if KAI in seen.shown:
        findings += _kai(seen, running.get(KAI, ("", ""))[1])
        findings += [_warn(*row) for row in _queues_of_kai(objects.kai_queues)]
    if KUEUE in seen.shown:
        findings += [_warn(*row) for row in (*_kueue(objects), *_not_kept_out(objects))]
    findings += [_warn(*row) for row in _queued_twice(seen, objects)]
    return findings


def pack_finding(seen: SchedulersSeen, pack: str) -> CheckFinding:
    """Returns a finding that says whether the chosen policy pack fits the cluster, and which pack would."""
    subject, fits, system = "policy pack", fitting(seen.shown), SYSTEM_OF.get(pack, "")
    systems = sorted(set(seen.shown) & set(SYSTEM_OF.values()))
    shown_words = ", ".join(systems) or "none of KAI, Kueue and Run:ai"
    if pack == AUTO:
        chosen = "pack: kai, kueue or runai" if fits == AUTO else f"pack: {fits}"
        choice = f"{chosen} {IN_PARAMETERS} {'chooses' if fits == AUTO else 'says so outright'}"
        message = f"auto: policies write for what the cluster shows, {shown_words}; {choice}"
        return CheckFinding(subject, "ok", message)
    if system and system not in seen.shown:
        message = f"{pack}, but nothing in the cluster shows {system}; there is {shown_words}"
        return CheckFinding(subject, "warn", message, f"pack: {fits} {IN_PARAMETERS}")
    if pack == "plain" and fits != "plain":
        message = f"plain: policies write for no scheduling system, and there is {shown_words}"
        return CheckFinding(subject, "warn", message, f"pack: {fits} {IN_PARAMETERS}, unless plain is meant")
    return CheckFinding(subject, "ok", f"{pack} fits: there is {shown_words}")


def _warn(message: str, mend: str) -> CheckFinding:
    return CheckFinding(SUBJECT, "warn", message, mend)


def _running(pods: Iterable[Json]) -> dict[str, tuple[str, str]]:
    """Returns by system a running pod of it, NAMESPACE/NAME, and the version tag of its image ("" for
    none).
    """
    running: dict[str, tuple[str, str]] = {}
    for pod in pods:
        metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
        if (pod.get("status") or {}).get("phase") != "Running":
            continue
        where = Where("", f"Pod {metadata.get('name')}")
        for name in schedulers_run_by(spec, metadata.get("labels") or {}, where):
            key = f"{metadata.get('namespace')}/{metadata.get('name')}"
            running.setdefault(name, (key, _tag(spec)))
    return running


def _tag(spec: Json) -> str:
    """Returns the first image tag of the containers that looks like a version; "" for none."""
    images = (str(container.get("image") or "") for container in spec.get("containers") or [])
    tags = (re.search(r":(v?[0-9][^/@:]*)(@.*)?$", image) for image in images)
    return next((tag[1] for tag in tags if tag), "")


def _runs(name: str, sign: str, pod: tuple[str, str] | None) -> CheckFinding:
    if pod is None and sign.startswith("pod "):
        return CheckFinding(SUBJECT, "ok", f"{name} is there by {sign}")
    if pod is None:
        text = f"{name} is there by {sign}, and no pod that runs it is running: what is left to it waits"
        return _warn(text, "start it, or take its kinds and its objects away")
    facts = FACTS_OF.get(name)
    tried = f" ({'tried' if facts.tried else 'read'}: {facts.version})" if facts is not None else ""
    return CheckFinding(SUBJECT, "ok", f"{name} runs as {pod[0]}, version {pod[1] or 'not told'}{tried}")


def _kai(seen: SchedulersSeen, version: str) -> Iterator[CheckFinding]:
    number = re.match(r"v?([0-9]+)\.([0-9]+)", version)
    if number is not None and (int(number[1]), int(number[2])) < GANGS_SINCE:
        text = f"KAI {version} does not read kai.scheduler/batch-min-member: its Jobs are no gangs"
        yield _warn(text, f"KAI {'.'.join(map(str, GANGS_SINCE))} or newer")
    if not seen.topologies.get(KAI):
        text = "KAI has no Topology: levels are kept by the plan and the pods' affinity alone"
        yield _warn(text, "create a kai.scheduler/v1alpha1 Topology; `bayplan topology propose` prints it")


def _queues_of_kai(queues: Sequence[Json]) -> Iterator[tuple[str, str]]:
    """Yields a finding if KAI has no queue, and for each queue whose parent does not exist.

    KAI ignores such a queue and everything below it, and only logs that (KAI-Scheduler d5bc503a,
    pkg/scheduler/cache/cluster_info/queue.go).
    """
    if not queues:
        text = "KAI has no Queue, and starts no pod without one"
        yield text, "create a scheduling.run.ai/v2 Queue and its parent; `bayplan generate kai` prints them"
    for queue in queues:
        parent = str(_spec(queue).get("parentQueue") or "")
        if parent and parent not in _names(queues):
            text = f"KAI's Queue {_name(queue)} is below the Queue {parent}, which is not there"
            yield f"{text}: KAI leaves it out", f"create {parent}"


def _kueue(objects: SchedulingObjects) -> Iterator[tuple[str, str]]:
    topologies, flavors = _names(objects.kueue_topologies), _names(objects.flavors)
    if not objects.local_queues:
        yield (
            "Kueue has no LocalQueue, so no workload can be queued",
            "create one in each namespace that uses Kueue",
        )
    for queue in objects.local_queues:
        parent = str(_spec(queue).get("clusterQueue") or "")
        if parent not in _names(objects.cluster_queues):
            yield (
                f"Kueue's LocalQueue {_key(queue)} is of the ClusterQueue {parent}, which is not there",
                f"create {parent}",
            )
    for queue in objects.cluster_queues:
        groups = _spec(queue).get("resourceGroups") or []
        for name in dict.fromkeys(
            flavor.get("name") for group in groups for flavor in group.get("flavors") or []
        ):
            if name not in flavors:
                text = f"Kueue's ClusterQueue {_name(queue)} has the flavor {name}, which is not there"
                yield text, f"create the ResourceFlavor {name}"
    for flavor in objects.flavors:
        wanted = str(_spec(flavor).get("topologyName") or "")
        if wanted and wanted not in topologies:
            text = f"Kueue's ResourceFlavor {_name(flavor)} names the Topology {wanted}, which is not there"
            yield text, f"create it, or take one of {', '.join(sorted(topologies)) or 'none'}"
        if any(_tolerates_reserved(item) for item in _spec(flavor).get("tolerations") or []):
            text = f"Kueue's ResourceFlavor {_name(flavor)} tolerates {RESERVED_TAINT}, and so others' racks"
            yield text, "take that toleration away"


def _not_kept_out(objects: SchedulingObjects) -> Iterator[tuple[str, str]]:
    """Yields a finding if gangs hold racks that Kueue may use.

    Kueue's Topology-Aware Scheduling considers bound pods and taints, but no reservations. A node affinity
    that keeps queued workloads out of reserved racks is not possible either: their templates are stored
    before the reservation is made (Kueue ff69552e, pkg/cache/scheduler/tas_flavor_snapshot.go and
    tas_nodes_cache.go).
    """
    placing = [_name(flavor) for flavor in objects.flavors if _spec(flavor).get("topologyName")]
    held = [
        str(_spec(item).get("gang")) for item in objects.reservations if _spec(item).get("mode") == "domain"
    ]
    if placing and held and not any(map(_is_fenced, objects.nodes)):
        text = (
            f"Kueue places the pods of ResourceFlavor {placing[0]} by topology, and may use nodes that "
            f"{counted(len(held), 'gang holds', 'gangs hold')} unused, as {held[0]} does: no node is fenced"
        )
        yield text, "serve with --fence taint, or give flavors with a Topology node pools of their own"


def _is_fenced(node: Json) -> bool:
    return bool(reserved_taint_value(_spec(node).get("taints") or []))


def _tolerates_reserved(toleration: Json) -> bool:
    return str(toleration.get("key") or "") in ("", RESERVED_TAINT)


def _queued_twice(seen: SchedulersSeen, objects: SchedulingObjects) -> Iterator[tuple[str, str]]:
    others = [name for name in (KAI, RUNAI, "volcano") if name in seen.shown]
    if KUEUE not in seen.shown or not others:
        return
    if re.search(r"^manageJobsWithoutQueueName:\s*true\b", objects.kueue_config, re.MULTILINE):
        text = f"Kueue queues every workload (manageJobsWithoutQueueName), those of {others[0]} too"
        yield text, "set it to false, or bound it by managedJobsNamespaceSelector"
    twice = [job for job in objects.queued_jobs if _of_another_queue(job, others)]
    if twice:
        text = f"{len(twice)} Jobs are queued by Kueue and {others[0]}, as {_key(twice[0])}"
        yield text, f"name a queue of one of them: the label {KUEUE_QUEUE}, or {' or '.join(OTHER_QUEUES)}"


def _of_another_queue(job: Json, others: Sequence[str]) -> bool:
    pod = ((_spec(job).get("template") or {}).get("spec")) or {}
    labels = (job.get("metadata") or {}).get("labels") or {}
    return pod.get("schedulerName") in others or any(label in labels for label in OTHER_QUEUES)


def _spec(item: Json) -> Json:
    return item.get("spec") or {}


def _name(item: Json) -> str:
    return str((item.get("metadata") or {}).get("name"))


def _key(item: Json) -> str:
    return f"{(item.get('metadata') or {}).get('namespace')}/{_name(item)}"


def _names(items: Iterable[Json]) -> set[str]:
    return {_name(item) for item in items}
