"""Everything that runs in a cluster now, looked at once: the picture, what policies look up, the workloads.

The picture is that of a server which watches; who may not read all of it makes do with the rest, and is told.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import orjson

from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError, Where
from planner.model.pod import BoundPod
from webhook.admission.configuration.settings import DEFAULT_SETTINGS, Settings
from webhook.admission.environment import Environment, no_access
from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.api.reflector import Reflector, served_path
from webhook.kube.runtime import ClusterRuntime
from webhook.kube.state.gangs import finished
from webhook.kube.state.workload_watch import MAX_OWNERS
from webhook.policy.model.policy import PolicySet
from webhook.workloads import KINDS, WorkloadKind
from webhook.workloads.kinds import row_of
from webhook.workloads.left_alone import is_left_alone
from webhook.workloads.stored import controller_of

FIRST_LOOK_SECONDS = 120.0
"""How long all lists together may take: 100,000 pods are read in less than a minute."""


LISTS = 3
"""How often a list is begun that goes stale between two of its pages."""


LIVE = "status.phase!=Succeeded,status.phase!=Failed"
"""Pods that have not ended."""


WRITTEN_BY_THE_SERVER = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
)
"""Metadata that no manifest states."""


WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/bayplan"
"""Those of an installation; what they match is what Bayplan is asked about."""


ON_ITS_NODE = "Node"
"""The controller of a static pod's mirror: the kubelet runs it, whatever the API server says."""


@dataclass(frozen=True, slots=True)
class RunningObject:
    """A workload of which no owner is asked, as a manifest: NAMESPACE/KIND/NAME and its JSON.

    As text, for ten thousand parsed objects would take most of a gigabyte. `pods`: NAMESPACE/NAME of those
    that it made, through whatever stands between, or of itself.
    """

    name: str
    text: bytes
    pods: tuple[str, ...] = ()

    def manifest(self) -> Json:
        """The object as it would be applied anew: without status and what the server wrote."""
        document: Json = orjson.loads(self.text)
        return document


@dataclass(frozen=True)
class RunningCluster:
    """`snapshot` has the book of reservations in it. `unread`: what the user may not read, each with why.
    `webhooks`: Bayplan's mutating configuration there, None where it is not installed, or not to be read."""

    snapshot: Snapshot
    environment: Environment
    objects: tuple[RunningObject, ...]
    unread: tuple[str, ...] = ()
    webhooks: Json | None = None

    @cached_property
    def _bound(self) -> Mapping[str, BoundPod]:
        return {pod.name: pod for pod in self.snapshot.pods}

    def without(self, obj: RunningObject, gangs: Iterable[str]) -> Snapshot:
        """The cluster as if the object had never been applied: without its pods, and what its gangs hold."""
        left = self.snapshot
        for gang in gangs:
            left = left.without(gang)
        for name in obj.pods:
            if pod := self._bound.get(name):
                left = left.without_pod(pod)
        return left


@asynccontextmanager
async def running_cluster(
    kubeconfig: str | None,
    policies: PolicySet,
    now: float,
    namespace: str = "",
    settings: Settings = DEFAULT_SETTINGS,
) -> AsyncIterator[RunningCluster]:
    """The cluster that a kubeconfig names, with the workloads of all namespaces or of one, as of now.

    What the environment looks up serves until the end of the context. Raises `InputError` where the cluster
    cannot be reached, or its nodes may not be read.
    """
    side = await ClusterRuntime.connect(kubeconfig, in_cluster=False, controls=False, settings=settings)
    try:
        yield await _read(side, policies, now, namespace)
    except ApiError as error:
        raise InputError(f"cannot be read: {error}", Where(kubeconfig or side.api.host)) from None
    finally:
        await side.close()


async def _read(side: ClusterRuntime, policies: PolicySet, now: float, namespace: str) -> RunningCluster:
    await side.api.get("/api/v1/nodes", limit="1")  # tells at once what is wrong with address or credentials
    side.follow(policies)
    unread = [reflector.path for reflector in await done_without(side)]
    reading = _Reading(side.api, namespace)
    objects = tuple([obj async for obj in reading.objects()])
    snapshot = side.snapshot()
    assert snapshot is not None, "all was read, or is done without"
    # Nobody applies these objects, so there is no user to ask about, and nobody is before them in a queue.
    environment = replace(side.environment(), access=no_access, waiting=tuple, now=now).beside(policies)
    book = side.ledger.watched(now)
    unread = list(dict.fromkeys((*unread, *reading.forbidden)))
    webhooks = await _webhooks(side.api)
    return RunningCluster(snapshot.with_book(book), environment, objects, tuple(unread), webhooks)


async def _webhooks(api: Api) -> Json | None:
    try:
        return await api.find(WEBHOOKS)
    except ApiError as error:
        if error.status != 403:
            raise
        return None


async def done_without(side: ClusterRuntime) -> list[Reflector]:
    """Wait until all was read once; what the user may not read is done without, and given.

    Raises `InputError` where the rest does not come.
    """
    without: list[Reflector] = []
    try:
        async with asyncio.timeout(FIRST_LOOK_SECONDS):
            while side.waiting():
                for reflector in side.reflectors():
                    if reflector.forbidden and not reflector.synced.is_set():
                        reflector.go_without()
                        without.append(reflector)
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise InputError(f"was not read within {FIRST_LOOK_SECONDS:g} s: {side.waiting()}") from None
    return without


class _Reading:
    """The workloads of a cluster, kind by kind; `forbidden` are those that may not be listed."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self.forbidden: list[str] = []

    async def objects(self) -> AsyncIterator[RunningObject]:
        """Each object of which no owner is asked, with the pods below it."""
        entries = [entry for row in KINDS.values() for entry in await self._listed(row)]
        above = {entry.name: entry.owner for entry in entries if entry.owner}
        below: dict[str, list[str]] = defaultdict(list)
        for entry in entries:
            namespace, kind, name = entry.name.split("/", 2)
            if kind == "Pod":
                below[_topmost(entry.name, above)].append(f"{namespace}/{name}")
        for entry in entries:
            if entry.text:
                yield RunningObject(entry.name, entry.text, tuple(below.get(entry.name, ())))

    async def _listed(self, row: WorkloadKind) -> list[_ListedObject]:
        path = await served_path(self._api, row.group, row.resource)
        if not path:
            return []
        version = path.split("/")[-2]
        if self._namespace:
            path = f"{path.removesuffix(row.resource)}namespaces/{self._namespace}/{row.resource}"
        typed = {"apiVersion": f"{row.group}/{version}" if row.group else version, "kind": row.name}
        query = {"fieldSelector": LIVE} if row.name == "Pod" else {}
        for attempt in range(LISTS):
            try:
                entries, _ = await self._api.list(path, lambda item: _entry({**typed, **item}), **query)
                return [entry for entry in entries if entry is not None]
            except ApiError as error:
                if error.status == 403:
                    self.forbidden.append(path)
                    return []
                if error.status != 410 or attempt + 1 == LISTS:
                    raise
        return []


@dataclass(frozen=True, slots=True)
class _ListedObject:
    """One listed object: `text` is "" where its owner was asked, or somebody else is."""

    name: str
    owner: str
    text: bytes


def _entry(item: Json) -> _ListedObject | None:
    """What is kept of an object, None where nothing is: it has ended, is leaving, or is left alone."""
    metadata = item["metadata"]
    namespace, kind = metadata.get("namespace", ""), item["kind"]
    if metadata.get("deletionTimestamp") or (kind != "Pod" and finished(item)):
        return None
    controller = controller_of(item)
    owner_kind = str(controller.get("kind", ""))
    if is_left_alone(namespace, owner_kind) or owner_kind == ON_ITS_NODE:
        return None
    asked = row_of(str(controller.get("apiVersion", "")), owner_kind) is not None
    owner = f"{namespace}/{owner_kind}/{controller['name']}" if asked else ""
    return _ListedObject(f"{namespace}/{kind}/{metadata['name']}", owner, b"" if asked else _as_applied(item))


def _as_applied(item: Json) -> bytes:
    metadata = {key: value for key, value in item["metadata"].items() if key not in WRITTEN_BY_THE_SERVER}
    spec: Any = item.get("spec")
    if item["kind"] == "Pod":
        spec = {key: value for key, value in (spec or {}).items() if key != "nodeName"}
    rest = {key: value for key, value in item.items() if key not in ("metadata", "spec", "status")}
    return orjson.dumps({**rest, "metadata": metadata, **({"spec": spec} if spec is not None else {})})


def _topmost(name: str, above: Mapping[str, str]) -> str:
    """The owner above all owners of an object, or itself."""
    return list(_owners(name, above))[-1]


def _owners(name: str, above: Mapping[str, str]) -> Iterator[str]:
    for _ in range(MAX_OWNERS):
        yield name
        if name not in above:
            return
        name = above[name]
