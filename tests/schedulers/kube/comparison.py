"""The run: each random gang's plan beside what kube-scheduler does with the gang's Jobs.

A difference is kept in a folder: `bayplan plan -c cluster.json -f gang.json --reserve nodes` plans it again,
and `difference.txt` says what was planned and what kube-scheduler did. SEED, the number in the gang's name,
and GANGS=5 run its cluster again.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.e2e.api import Json
from tests.e2e.binaries import find
from tests.e2e.controlplane import ControlPlane
from tests.e2e.fleet import namespace
from tests.e2e.kubectl import Kubectl
from tests.e2e.kubelet import Kubelet
from tests.schedulers.kube.cluster import Cluster, Decided, nodes_not_ready
from tests.schedulers.kube.gang import THEMES, Gang, random_gang
from tests.schedulers.kube.random_constraints import TEAMS
from tests.schedulers.kube.random_devices import device_classes, random_slices
from tests.schedulers.kube.random_nodes import random_nodes
from tests.schedulers.kube.random_pods import running_pods, runtime_classes
from tests.schedulers.kube.random_volumes import storage_classes
from tests.schedulers.kube.volume_provisioner import VolumeProvisioner
from tests.schedulers.table import Row
from webhook.cli.decisions.plan_output import PlannedGang
from webhook.policy.engine.device_selectors import read_cluster

GANGS_OF_A_WORLD = 5
STAY = 0.4
"""How many of the gangs that run as planned go on running beside the next ones."""
NO_DEVICES = "cannot allocate all claims"
"""Why a pod waits for which kube-scheduler has no devices. If other pods of the gang started, these may have
devices that the plan had for the pod: the plan only knows that devices can be assigned to all claims, while
kube-scheduler allocates the first ones that match (docs/decisions/0023). Then it is no difference.
"""
ORDERS = 4
"""In how many orders the pods of a gang are created one by one that did not start all at once."""


@dataclass(slots=True)
class Course:
    """What has been seen of the gangs of one theme."""

    counts: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def row(self, theme: str, version: str) -> Row:
        """What the table says of them."""
        counts = [f"{count} {name}" for name, count in sorted(self.counts.items())]
        end = "; ".join([*counts, *self.differences])
        return Row(f"kube-scheduler: gangs with {theme}", version, self.seconds, end, not self.differences)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A cluster, and the folder for files about differences."""

    cluster: Cluster
    folder: Path

    def world(self, seed: int, theme: str, course: Course) -> None:
        """All gangs of one random cluster, one after the other."""
        chance, world = Random(seed), f"w{seed}"
        nodes = random_nodes(chance, world)
        names = [node["metadata"]["name"] for node in nodes]
        slices = random_slices(chance, names) if theme == "devices" else []
        with self.cluster.with_nodes(nodes, running_pods(chance, world, names)):
            self.cluster.create(slices)
            staying: list[Gang] = []
            try:
                for number in range(GANGS_OF_A_WORLD):
                    gang = random_gang(chance, world, number, theme, names)
                    if self._starts_as_planned(gang, course) and chance.random() < STAY:
                        staying.append(gang)
                    else:
                        self.cluster.end(gang)
            finally:
                for gang in staying:
                    self.cluster.end(gang)
                self.cluster.remove(slices)

    def _starts_as_planned(self, gang: Gang, course: Course) -> bool:
        """Compares a gang; true if it was admitted, and its pods run on the nodes of the plan."""
        if self.cluster.refuses(gang):
            course.counts["invalid"] += 1
            return False
        self.cluster.create(gang.needed)
        before = self.cluster.picture()
        plans = gang.plan(read_cluster([("cluster", before)]))
        admitted = all(planned.answer.decision == "admitted" for planned in plans)
        free = self.cluster.decide(gang.jobs)
        started = free.all(gang.size)
        course.counts[f"{'' if admitted else 'not '}admitted, {'' if started else 'not '}started"] += 1
        course.features.update(set(gang.features()))
        if started and not admitted and not free.uses(nodes_not_ready(before)):
            self._differs(gang, before, plans, free, course, "started without a plan")
        return admitted and self._start_as_planned(gang, before, plans, course)

    def _start_as_planned(self, gang: Gang, before: Json, plans: list[PlannedGang], course: Course) -> bool:
        """Confines the gang's pods to the nodes of the plan. If kube-scheduler does not start all of them, it
        is asked again for one pod after the other, each on one node, in several orders: it may have put pods
        of one kind on nodes of which the plan has fewer, or have given them devices that others need.
        """
        chance, pods = Random(gang.name), gang.confined_pods(plans)
        self._renew(gang)
        decided = self.cluster.decide(gang.confined(plans))
        if decided.all(gang.size):
            return True
        for _ in range(ORDERS):
            self._renew(gang)
            decided = self.cluster.decide_one_by_one(gang, pods)
            if decided.all(gang.size):
                course.counts["started in another order"] += 1
                return True
            chance.shuffle(pods)
        if NO_DEVICES in decided.why and any(decided.nodes.values()):
            course.counts["with other devices"] += 1
            self._keep(gang, before, plans, decided, "devices allocated otherwise")
        else:
            self._differs(gang, before, plans, decided, course, "not started as planned")
        return False

    def _renew(self, gang: Gang) -> None:
        self.cluster.end(gang)
        self.cluster.create(gang.needed)

    def _differs(
        self,
        gang: Gang,
        before: Json,
        plans: list[PlannedGang],
        decided: Decided,
        course: Course,
        difference: str,
    ) -> None:
        self._keep(gang, before, plans, decided, difference)
        course.differences.append(f"{gang.name} {difference}")

    def _keep(
        self, gang: Gang, before: Json, plans: list[PlannedGang], decided: Decided, difference: str
    ) -> None:
        """Writes the cluster and the gang as they were, for `bayplan plan`."""
        folder = self.folder / gang.name
        folder.mkdir(parents=True, exist_ok=True)
        manifests = {"apiVersion": "v1", "kind": "List", "items": gang.jobs}
        answers = "\n".join(f"{p.answer.decision}: {p.answer.message} {p.answer.assignments}" for p in plans)
        text = f"{difference}\n{answers}\nkube-scheduler: {decided.nodes} {decided.why}\n"
        (folder / "cluster.json").write_text(json.dumps(before, indent=1))
        (folder / "gang.json").write_text(json.dumps(manifests, indent=1))
        (folder / "difference.txt").write_text(text)
        print(f"{folder}: {text}", file=sys.stderr, flush=True)


def compared(word: str, home: Path) -> Iterator[Row]:
    """A row for each theme with the word in its name of which gangs were compared. GANGS and SEED: how many
    gangs, and the seed of the first cluster; a cluster has `GANGS_OF_A_WORLD`, and the next one the next seed
    of these themes.
    """
    count, first = int(os.environ.get("GANGS", "200")), int(os.environ.get("SEED", "16"))
    courses = {theme: Course() for theme in THEMES if word in theme}
    fitting = (seed for seed in itertools.count(first) if _theme(seed) in courses)
    seeds = list(itertools.islice(fitting, -(-count // GANGS_OF_A_WORLD))) if courses else []
    home.mkdir(parents=True, exist_ok=True)
    programs = find()
    with ControlPlane(programs, home / "control-plane") as plane:
        cluster = Cluster(plane.api, Kubectl(programs["kubectl"], plane.kubeconfig))
        for name, team in TEAMS.items():
            namespace(plane.api, name)
            plane.api.merge(f"/api/v1/namespaces/{name}", {"metadata": {"labels": {"team": team}}})
        cluster.create([*storage_classes(), *runtime_classes(), *device_classes()])
        comparison = Comparison(cluster, home / "differences")
        with Kubelet(plane.api), VolumeProvisioner(plane.api):
            for seed in seeds:
                theme = _theme(seed)
                _run(comparison, seed, theme, courses[theme])
    for theme in dict.fromkeys(map(_theme, seeds)):
        course = courses[theme]
        print(theme, dict(course.features.most_common()), file=sys.stderr, flush=True)
        yield course.row(theme, f"kubernetes {programs.minor}")


def _theme(seed: int) -> str:
    return THEMES[seed % len(THEMES)]


def _run(comparison: Comparison, seed: int, theme: str, course: Course) -> None:
    """One cluster; what ends it early is a difference, too."""
    begin = time.monotonic()
    try:
        comparison.world(seed, theme, course)
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        course.differences.append(f"seed {seed} {type(error).__name__}: {error}"[:300])
    course.seconds += time.monotonic() - begin
    print(f"kube-scheduler: seed {seed}", theme, dict(course.counts), file=sys.stderr, flush=True)
