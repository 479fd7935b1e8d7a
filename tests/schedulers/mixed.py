"""So many gangs of mixed kinds, sizes, levels and priorities, one after the other: how each of them ends.

A gang's pods run together for a second to four, then all of them succeed, and its objects go. A gang that is
larger than any rack that it requires is to be refused, or, where it comes pod by pod and nobody knows the
others, to wait and be told so. Every other one is to run, or to be evicted for one of a higher class where
its pods have no owner. At the end nothing may be held.
"""

from __future__ import annotations

import os
import random
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from tests.e2e.api import ApiError, Json
from tests.e2e.processes import wait_until
from tests.schedulers.kai import HOME
from tests.schedulers.nodes import BLOCK, GPUS, HOSTNAME, RACK, TOPOLOGY
from tests.schedulers.site import GONE_SECONDS, HOSTS, Site, nodes_of
from tests.schedulers.workloads import (
    QUEUE,
    deployment,
    group,
    job,
    job_set,
    leader_worker_set,
    pod,
    pod_template,
    training_job,
)

GANG = "gang"
"""The label by which a gang's pods are known."""
PATIENCE = 240.0
"""Seconds in which something has to begin or to end; after that the rest counts as stuck."""
NEVER_SECONDS = 60.0
"""The same where all that is left can never run."""
PAUSE = 0.3
TRIES = 20
"""How often a gang is applied again where Bayplan says 429 or 409, as a user or a controller would."""


@dataclass(slots=True)
class Gang:
    """One of them. `fits` is false where its required level can never hold it."""

    name: str
    description: str
    objects: list[Json]
    pods: int
    seconds: float
    fits: bool
    applied: float = 0.0
    bare: bool = False
    """Its pods have no owner."""
    ran: float = 0.0
    evicted: int = 0
    end: str = ""


@dataclass(slots=True)
class Course:
    """What has been seen of all gangs."""

    site: Site
    gangs: list[Gang] = field(default_factory=list)
    moved: float = field(default_factory=time.monotonic)
    """When something last began or ended."""

    def apply(self, gang: Gang) -> None:
        """Its objects are made; refused is an end."""
        gang.applied = time.monotonic()
        self.gangs.append(gang)
        for body in gang.objects:
            if body["kind"] == "Pod" and gang.objects[0]["kind"] == "PodGroup" and body is gang.objects[1]:
                time.sleep(1)  # a pod that comes before its group is known is a gang of one
            for attempt in range(TRIES):
                try:
                    self.site.create(body)
                    break
                except ApiError as error:
                    if error.status in (409, 429, 500, 503, 504) and attempt < TRIES - 1:
                        time.sleep(1)
                        self.look()
                        continue
                    gang.end = f"refused: {error}"
                    self.remove(gang)
                    return

    def look(self) -> None:
        """Gangs of which all pods run have run; those that have run long enough end."""
        by_gang: dict[str, list[Json]] = {}
        for entry in self.site.api.items("/api/v1/namespaces/research/pods"):
            by_gang.setdefault(entry["metadata"].get("labels", {}).get(GANG, ""), []).append(entry)
        now = time.monotonic()
        for gang in self.gangs:
            if gang.end:
                continue
            own = [
                entry for entry in by_gang.get(gang.name, ()) if "deletionTimestamp" not in entry["metadata"]
            ]
            phases = Counter(entry["status"].get("phase") for entry in own)
            if not own and gang.bare:
                gang.end, self.moved = "evicted", now  # nobody makes pods again that have no owner
                continue
            if phases["Running"] == gang.pods and not gang.ran:
                gang.ran = self.moved = now
            elif gang.ran and phases["Running"] + phases["Succeeded"] < gang.pods:
                gang.ran, gang.evicted, self.moved = 0.0, gang.evicted + 1, now
            if gang.ran and now - gang.ran > gang.seconds:
                with suppress(ApiError):
                    self.site.finish(entry for entry in own if entry["status"].get("phase") == "Running")
                    gang.end, self.moved = "ran", now
        for gang in self.gangs:
            if gang.end == "ran" and now - gang.ran > gang.seconds + 3 and gang.objects:
                self.remove(gang)

    def remove(self, gang: Gang) -> None:
        """Its objects go."""
        for body in gang.objects:
            self.site.remove(body)
        gang.objects = []

    def waits(self) -> list[Gang]:
        """Those that have not come to their end."""
        return [gang for gang in self.gangs if not gang.end]

    def patience(self) -> float:
        """For how many seconds nothing may move at the end, until what waits is taken to wait for ever."""
        return PATIENCE if any(gang.fits or not gang.bare for gang in self.waits()) else NEVER_SECONDS


def run(site: Site, make: Callable[[random.Random, int], Gang], system: str) -> str:
    """All gangs of a seed, until each has ended or nothing has moved for long."""
    count, seed = int(os.environ.get("GANGS", "200")), int(os.environ.get("SEED", "16"))
    chance = random.Random(seed)
    course = Course(site)
    begin = time.monotonic()
    for number in range(count):
        course.apply(make(chance, number))
        until = time.monotonic() + chance.choice((0.0, 0.3, 1.0))
        course.look()
        while time.monotonic() < until:
            time.sleep(PAUSE)
            course.look()
        if number % 20 == 19:
            print(f"{system}: {number + 1} applied, {len(course.waits())} wait", file=sys.stderr, flush=True)
        while len(course.waits()) > 40:
            time.sleep(PAUSE)
            course.look()
            if time.monotonic() - course.moved > PATIENCE:
                break
    course.moved = time.monotonic()
    while course.waits() and time.monotonic() - course.moved < course.patience():
        time.sleep(PAUSE)
        course.look()
    for gang in course.gangs:  # of the last ones the objects are still there, and hold what they use
        if gang.end:
            course.remove(gang)
    return _summary(site, course, time.monotonic() - begin, seed)


def _summary(site: Site, course: Course, seconds: float, seed: int) -> str:
    ran = [gang for gang in course.gangs if gang.end == "ran"]
    evicted = [gang for gang in course.gangs if gang.end == "evicted"]
    right = [gang for gang in course.gangs if gang.end.startswith("refused") and not gang.fits]
    wrong = [gang for gang in course.gangs if gang.end.startswith("refused") and gang.fits]
    wrong += [gang for gang in ran if not gang.fits]
    queued = [gang for gang in course.waits() if gang.bare and not gang.fits]
    stuck = [gang for gang in course.waits() if gang not in queued]
    for gang in course.waits():
        word = "QUEUED" if gang in queued else "STUCK"
        reasons = f"{nodes_of(site.pods(gang.name))}; {site.reasons(gang.name)}"
        print(f"{word} {gang.name} {gang.description}: {reasons}", file=sys.stderr, flush=True)
    idle = _idle_holds(site, course)
    for gang in wrong:
        print(f"WRONG {gang.name} {gang.description}: {gang.end}", file=sys.stderr, flush=True)
    for gang in list(course.gangs):
        course.remove(gang)
    waits = sorted(gang.ran - gang.applied for gang in ran)
    text = (
        f"seed {seed}: of {len(course.gangs)} gangs {len(ran)} ran, {len(evicted)} were evicted for good, "
        f"{len(right)} rightly refused, {len(queued)} rightly queued, {len(wrong)} wrongly, "
        f"{len(stuck)} stuck, in {seconds:.0f} s; "
        f"waits {statistics.median(waits or [0]):.1f} s in the middle, {max(waits or [0]):.1f} s at most"
    )
    assert not wrong, f"{text}; wrong: {[(gang.name, gang.description, gang.end[:200]) for gang in wrong]}"
    assert not idle, f"{text}; held for gangs that are at their end: {idle}"
    assert not stuck, f"{text}; stuck: {[(gang.name, gang.description) for gang in stuck]}"
    return text


def _idle_holds(site: Site, course: Course) -> list[str]:
    """What is held for nobody who waits, once the controller has had its time to see who is gone."""
    waiting = {gang.name for gang in course.waits()}

    def idle() -> list[str]:
        return [gang for gang in site.held() if waiting.isdisjoint(re.split("[/-]", gang))]

    with suppress(TimeoutError):
        wait_until(lambda: not idle(), "holds of gangs that are at their end to go", GONE_SECONDS)
    return idle()


def _shape(chance: random.Random) -> tuple[int, int, str, str, bool]:
    """Pods, GPUs of each, a level, required or preferred, and whether it can ever be."""
    gpus = chance.choice((1, 2, 4, 8, 8, 8))
    pods = chance.choice((1, 2, 2, 3, 4, 4, 5, 6))
    level = chance.choice((RACK, RACK, RACK, BLOCK, HOSTNAME, ""))
    how = chance.choice(("required", "required", "preferred"))
    rooms = {RACK: HOSTS, BLOCK: 2 * HOSTS, HOSTNAME: 1}.get(level, 4 * HOSTS)
    fits = how == "preferred" or not level or pods <= rooms * (GPUS // gpus)
    return pods, gpus, level, how, fits


def _annotations(level: str, how: str) -> dict[str, str]:
    if not level:
        return {}
    return {"kai.scheduler/topology": TOPOLOGY, f"kai.scheduler/topology-{how}-placement": level}


def kai_gang(chance: random.Random, number: int) -> Gang:
    """One for KAI, of six kinds and three classes."""
    name = f"g{number:03}"
    pods, gpus, level, how, fits = _shape(chance)
    kind = chance.choice(("Job", "Job", "JobSet", "PyTorchJob", "LeaderWorkerSet", "PodGroup", "Deployment"))
    klass = chance.choice(("train", "train", "train", "build", "inference"))
    labels, annotations = {"priorityClassName": klass}, _annotations(level, how)
    own = {GANG: name}
    metadata = {"labels": labels, "annotations": annotations}
    template = pod_template(gpus, labels=own)
    objects: list[Json]
    if kind == "Job":
        objects = [job(name, pods, template=template, **metadata)]
    elif kind == "JobSet" and pods > 1:
        body = job_set(name, {"a": 1, "b": pods - 1}, gpus, **metadata)
        for part in body["spec"]["replicatedJobs"]:
            part["template"]["spec"]["template"]["metadata"] = {"labels": own}
        objects = [body]
    elif kind == "PyTorchJob" and pods > 1:
        objects = [training_job(name, pods - 1, template=template, **metadata)]
    elif kind == "LeaderWorkerSet" and pods > 1:
        body = leader_worker_set(name, 1, pods, gpus, **metadata)
        body["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"] = {"labels": own}
        objects = [body]
    elif kind == "PodGroup":
        constraint = {"topology": TOPOLOGY, f"{how}TopologyLevel": level} if level else {}
        spec = {"topologyConstraint": constraint, "priorityClassName": klass}
        members = [
            pod(
                f"{name}-{n}",
                gpus,
                labels={**own, **labels},
                annotations={"pod-group-name": name},
                spec={"schedulerName": HOME},
            )
            for n in range(pods)
        ]
        objects = [group(name, pods, spec), *members]
    elif kind == "Deployment":
        fits = True  # its pods are each for themselves
        objects = [deployment(name, pods, template=template, **metadata)]
    else:
        kind, objects = "Job", [job(name, pods, template=template, **metadata)]
    description = f"{kind} {pods}x{gpus} {how} {level.rpartition('/')[2] or 'none'} {klass}"
    bare = objects[-1]["kind"] == "Pod"
    return Gang(name, description, objects, pods, chance.uniform(1, 4), fits, bare=bare)


def kueue_gang(chance: random.Random, number: int) -> Gang:
    """One for Kueue, of four kinds and two classes, in one of the two queues."""
    name = f"g{number:03}"
    pods, gpus, level, how, fits = _shape(chance)
    kind = chance.choice(("Job", "Job", "JobSet", "PyTorchJob", "pods"))
    klass, queue = chance.choice(("low", "low", "high")), chance.choice(("topology", "plain"))
    own = {GANG: name}
    metadata = {"labels": {QUEUE: queue}, "annotations": _annotations(level, how)}
    metadata["annotations"].pop("kai.scheduler/topology", None)
    template = pod_template(gpus, labels=own, priorityClassName=klass)
    objects: list[Json]
    if kind == "JobSet" and pods > 1:
        body = job_set(name, {"a": 1, "b": pods - 1}, gpus, **metadata)
        for part in body["spec"]["replicatedJobs"]:
            part["template"]["spec"]["template"] = {
                **template, "spec": {**template["spec"], "restartPolicy": "Never"}
            }  # fmt: skip
        objects = [body]
    elif kind == "PyTorchJob" and pods > 1:
        objects = [training_job(name, pods - 1, template=template, **metadata)]
    elif kind == "pods":
        labels = {**own, **metadata["labels"], "kueue.x-k8s.io/pod-group-name": name}
        annotations = {**metadata["annotations"], "kueue.x-k8s.io/pod-group-total-count": str(pods)}
        objects = [
            pod(
                f"{name}-{n}", gpus, labels=labels, annotations=annotations, spec={"priorityClassName": klass}
            )
            for n in range(pods)
        ]
    else:
        kind, objects = "Job", [job(name, pods, template=template, **metadata)]
    description = f"{kind} {pods}x{gpus} {how} {level.rpartition('/')[2] or 'none'} {klass} in {queue}"
    bare = objects[-1]["kind"] == "Pod"
    return Gang(name, description, objects, pods, chance.uniform(1, 4), fits, bare=bare)


def on_kai(site: Site) -> str:
    """Mixed gangs of six kinds and three classes on KAI."""
    return run(site, kai_gang, "kai")


def on_kueue(site: Site) -> str:
    """Mixed gangs of four kinds and two classes in both queues of Kueue."""
    return run(site, kueue_gang, "kueue")
