"""A random gang of one or two Jobs: what it needs, its plan, and its Jobs on the nodes of the plan."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from planner.cluster.snapshot import Snapshot
from tests.e2e.api import Json
from tests.schedulers.kube.random_constraints import JOB_NAME, REQUIRED, random_labels
from tests.schedulers.kube.random_devices import with_claims
from tests.schedulers.kube.random_nodes import HOST
from tests.schedulers.kube.random_pods import random_spec
from tests.schedulers.kube.random_volumes import with_volumes
from webhook.admission.environment import Environment
from webhook.cli.decisions.plan import plan_each
from webhook.cli.decisions.plan_output import PlannedGang
from webhook.files.reader import Document

THEMES = ("constraints", "volumes", "devices")
"""What a gang's pods have much of."""


@dataclass(slots=True)
class Gang:
    """Its Jobs, and the volumes, claims and templates that these name."""

    name: str
    jobs: list[Json]
    needed: list[Json] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many pods its Jobs create together."""
        return sum(job["spec"]["parallelism"] for job in self.jobs)

    @property
    def job_names(self) -> list[str]:
        """The names of its Jobs."""
        return [job["metadata"]["name"] for job in self.jobs]

    @property
    def specs(self) -> list[Json]:
        """The pod specs of its Jobs."""
        return [job["spec"]["template"]["spec"] for job in self.jobs]

    def plan(self, snapshot: Snapshot) -> list[PlannedGang]:
        """The plan of `bayplan plan --reserve nodes`: one for all its pods, or one for each pod."""
        documents = [Document(self.name, index, copy.deepcopy(job)) for index, job in enumerate(self.jobs)]
        return list(plan_each(snapshot, documents, "nodes", Environment()))

    def confined(self, plans: Sequence[PlannedGang]) -> list[Json]:
        """Its Jobs, the pods of each confined to the nodes that the plan has for them."""
        places, jobs = self._places(plans), copy.deepcopy(self.jobs)
        for job, pod_sets in zip(jobs, self._pod_sets(plans), strict=True):
            nodes = {node for name in pod_sets for node in places[name]}
            _confine(job["spec"]["template"]["spec"], nodes)
        return jobs

    def pods(self) -> list[Json]:
        """The pods of its Jobs as the Job controller makes them."""
        return [_pod(job, number) for job in self.jobs for number in range(job["spec"]["parallelism"])]

    def confined_pods(self, plans: Sequence[PlannedGang]) -> list[Json]:
        """Its pods, each confined to a node of its own of the plan's."""
        places, pods = self._places(plans), self.pods()
        by_job = {
            job["metadata"]["name"]: names
            for job, names in zip(self.jobs, self._pod_sets(plans), strict=True)
        }
        for pod in pods:
            names = by_job[pod["metadata"]["labels"][JOB_NAME]]
            _confine(pod["spec"], {next(places[name].pop() for name in names if places[name])})
        return pods

    def _pod_sets(self, plans: Sequence[PlannedGang]) -> list[set[str]]:
        """By Job the PodSets of the plan with its pods."""
        pod_sets = [pod_set for planned in plans for pod_set in planned.group.pod_sets]
        return [
            {each.name for each in pod_sets if each.shape.labels[JOB_NAME] == name} for name in self.job_names
        ]

    @staticmethod
    def _places(plans: Sequence[PlannedGang]) -> dict[str, list[str]]:
        """By PodSet the node of each of its pods."""
        nodes: dict[str, list[str]] = defaultdict(list)
        for planned in plans:
            for place in planned.answer.assignments:
                nodes[place.pod_set] += [place.node] * place.count
        return nodes

    def features(self) -> Iterator[str]:
        """What its pods have, in the words of their fields."""
        yield "two Jobs" if len(self.jobs) > 1 else self.jobs[0]["spec"]["completionMode"]
        for spec in self.specs:
            yield from _spec_features(spec)
        for item in self.needed:
            yield item["kind"]
            yield from _claim_features(item["spec"])


def random_gang(chance: Random, world: str, number: int, theme: str, nodes: list[str]) -> Gang:
    """A gang with a name of its own in its world."""
    gang = Gang(f"{world}-g{number}", [])
    jobs = chance.choice((1, 1, 1, 2))
    for part in range(jobs):
        name = f"{gang.name}-{'ab'[part]}"
        pods = chance.choice((1, 1, 2, 3, 4))
        spec = random_spec(chance, world, plain=theme != "constraints")
        if theme == "volumes":
            gang.needed += with_volumes(chance, spec, name, nodes, pods)
        elif theme == "devices":
            gang.needed += with_claims(chance, spec, name)
        gang.jobs.append(_job(name, pods, spec, random_labels(chance)))
    if jobs > 1:
        keys = {"bayplan.dev/gang": gang.name, "bayplan.dev/gang-size": str(gang.size)}
        for job in gang.jobs:
            job["metadata"]["annotations"] = keys
    elif chance.random() < 0.15 and "ReadWriteOncePod" not in str(gang.needed):
        gang.jobs[0]["spec"]["completionMode"] = "NonIndexed"
    return gang


def _job(name: str, pods: int, spec: Json, labels: Json) -> Json:
    template = {"metadata": {"labels": labels}, "spec": {**spec, "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "research"},
        "spec": {"completions": pods, "parallelism": pods, "completionMode": "Indexed", "template": template},
    }


def _pod(job: Json, number: int) -> Json:
    template, name = copy.deepcopy(job["spec"]["template"]), job["metadata"]["name"]
    labels = {**template["metadata"]["labels"], JOB_NAME: name, "job-name": name}
    metadata = {"name": f"{name}-{number}", "namespace": "research", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _confine(spec: Json, nodes: set[str]) -> None:
    within = {"key": HOST, "operator": "In", "values": sorted(nodes)}
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    for term in affinity.setdefault(REQUIRED, {"nodeSelectorTerms": [{}]})["nodeSelectorTerms"]:
        if term or len(affinity[REQUIRED]["nodeSelectorTerms"]) == 1:  # an empty term selects nothing
            term.setdefault("matchExpressions", []).append(within)


def _spec_features(spec: Json) -> Iterator[str]:
    affinity = spec.get("affinity", {})
    for name, rules in affinity.items():
        yield from (name if rule == REQUIRED else "preferences" for rule in rules)
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        if "ports" in container:
            yield "host ports"
        if "example.com/device" in container.get("resources", {}).get("limits", {}):
            yield "extended resource"
    names = ("initContainers", "topologySpreadConstraints", "tolerations", "runtimeClassName", "nodeSelector")
    yield from (name for name in names if spec.get(name))
    if "resources" in spec:
        yield "pod-level resources"
    text = str(spec)
    for name in ("matchLabelKeys", "mismatchLabelKeys", "namespaceSelector", "ephemeral'"):
        if name in text:
            yield name.rstrip("'")


def _claim_features(spec: Json) -> Iterator[str]:
    text = str(spec)
    words = (
        "firstAvailable",
        "matchAttribute",
        "distinctAttribute",
        "allocationMode",
        "ReadWriteOncePod",
        "cel",
    )
    yield from (word for word in words if f"'{word}'" in text)
