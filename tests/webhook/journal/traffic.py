"""Recorded traffic: objects decided one after the other, each a line of a journal."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from planner.cluster.snapshot import Snapshot
from planner.model.reservation import Reservation
from tests.webhook.policy.helpers import check, loaded, mutating, patch, validating
from webhook.admission.configuration.settings import Settings, same_in_all_namespaces
from webhook.admission.decision import decide
from webhook.admission.decision_record import Phase
from webhook.admission.environment import Environment
from webhook.journal.differences import Differences
from webhook.journal.entries import HEAD, VERSION, entry_of, line_of
from webhook.journal.reader import JournalReader
from webhook.journal.replay import Replay
from webhook.policy.model.policy import PolicySet
from webhook.wire.request import from_object

Json = dict[str, Any]
ENFORCED = Environment(settings=same_in_all_namespaces(Settings(mode="enforce")))
EVERY = {
    "operations": ["CREATE"],
    "apiGroups": ["", "batch"],
    "apiVersions": ["v1"],
    "resources": ["pods", "jobs"],
}
IMAGES = "!has(object.spec.containers) || object.spec.containers.all(c, c.image.endsWith(':1'))"
NOTHING = loaded(validating(check("true"), name="nothing", rule=EVERY))
TAGGED = loaded(
    validating(check(IMAGES, message="the image has another tag than 1"), name="tags", rule=EVERY)
)
LABELLED = loaded(
    mutating(
        patch('[JSONPatch{op: "add", path: "/metadata/labels", value: {"team": "a"}}]'),
        name="team",
        rule=EVERY,
    )
)


def pod(name: str = "p", image: str = "busybox:1", namespace: str = "research", **spec: Any) -> Json:
    """A pod without GPUs."""
    body = {"containers": [{"name": "main", "image": image}], **spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": body,
    }


def job(name: str, pods: int, namespace: str = "research", **template: Any) -> Json:
    """A gang of pods that take a node of eight GPUs each."""
    amounts = {"nvidia.com/gpu": "8", "cpu": "1", "memory": "1Gi"}
    container = {"name": "main", "image": "train:1", "resources": {"limits": amounts, "requests": amounts}}
    spec = {"containers": [container], "restartPolicy": "Never", **template}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "annotations": {"bayplan.dev/gang": "true"},
        },
        "spec": {"parallelism": pods, "completions": pods, "template": {"spec": spec}},
    }


@dataclass
class Traffic:
    """Calls that were answered by `policies` in a cluster, as lines of a journal."""

    policies: PolicySet = NOTHING
    snapshot: Snapshot | None = None
    environment: Environment = ENFORCED
    lines: list[bytes] = field(default_factory=list)
    gone: tuple[str, ...] = ()
    """Reservations that end before the next call."""
    mutated: Json = field(default_factory=dict)
    """The last object as it left."""
    _world: Replay | None = None
    _seen: set[str] = field(default_factory=set)
    """Reservations that a line told of."""

    def call(self, obj: Json, second: float, phase: Phase = "mutate", operation: Any = "CREATE") -> Json:
        """One call at a second; the line that it leaves."""
        if self._world is None:
            self._world = Replay(self.policies, self.snapshot, self.environment)
        uid = f"{obj['metadata']['name']}-{second}"
        old = copy.deepcopy(obj) if operation == "UPDATE" else None
        request = from_object(copy.deepcopy(obj), operation, old_object=old, uid=uid)
        self._world.release_until(second, self.gone)
        let_in = [held for held in self._book() if held.id not in self._seen]
        decision = decide(request, self.policies, self._world.snapshot, phase, self.environment)
        line = line_of(second, phase, request, decision, self.gone, let_in)
        self.gone, self.mutated = (), copy.deepcopy(dict(decision.object or {}))
        self._world.answer(entry_of(orjson.loads(line)))
        self._seen = {held.id for held in self._book()} if operation != "DELETE" else self._seen
        self.lines.append(line)
        return dict(orjson.loads(line))

    def stored(self, obj: Json, second: float) -> None:
        """Both calls of an object that is let in."""
        self.call(obj, second)
        self.call(self.mutated, second, "validate")

    def held(self) -> list[str]:
        """Who holds a place now."""
        return [held.gang for held in self._book()]

    def _book(self) -> tuple[Reservation, ...]:
        assert self._world is not None
        return self._world.snapshot.reservations if self._world.snapshot else ()

    def file(self, path: Path) -> Path:
        """The journal."""
        path.write_bytes(orjson.dumps({HEAD: VERSION}) + b"\n" + b"".join(self.lines))
        return path


def replayed(
    path: Path, policies: PolicySet, snapshot: Snapshot | None = None, environment: Environment = ENFORCED
) -> tuple[Differences, Replay, list[str]]:
    """The journal decided again."""
    reader, differences, again = (
        JournalReader([str(path)]),
        Differences(),
        Replay(policies, snapshot, environment),
    )
    for entry in reader.entries():
        answer = again.answer(entry)
        if answer is not None:
            differences.add(entry, answer)
    return differences, again, reader.problems


def rules(differences: Differences) -> list[tuple[str, str, str, str]]:
    """Outcome, rule, policy and object of each result."""
    results = differences.report("r").results
    return [(result.result, result.rule, result.policy, result.object) for result in results]
