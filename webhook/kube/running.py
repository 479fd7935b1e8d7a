"""Reads everything that runs in a cluster once: the snapshot, what policies look up, and the workloads.

The snapshot is built by the same watches as in a server. If the user may not read some resources, the rest is
returned with a list of what is missing.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import orjson

from planner.cluster.snapshot import Snapshot
from planner.model.cached_property import cached_property
from planner.model.errors import InputError, Where
from planner.model.pod import BoundPod
from webhook.admission.configuration.settings import Settings
from webhook.admission.environment import Environment, no_access
from webhook.kube.api.client import Api, ApiError, Json
from webhook.kube.api.discovery import served_path
from webhook.kube.api.reflector import Reflector
from webhook.kube.runtime import ClusterRuntime
from webhook.kube.state.gangs import MAX_OWNERS, finished
from webhook.policy.model.policy import PolicySet
from webhook.workloads import KINDS, WorkloadKind
from webhook.workloads.left_alone import is_left_alone
from webhook.workloads.stored import controller_of, controller_row

FIRST_LOOK_SECONDS = 120.0
"""Maximum seconds until every watch has listed its resource: 100,000 pods are read in less than a minute."""


LISTS = 3
"""Maximum number of attempts for a list that expires between two of its pages."""


LIVE = "status.phase!=Succeeded,status.phase!=Failed"
"""Field selector for pods that have not ended."""


WRITTEN_BY_THE_SERVER = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
)
"""Metadata fields that the API server sets, and that no manifest states."""


WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/bayplan"
"""The path of Bayplan's mutating webhooks, which define for which objects Bayplan is called."""


ON_ITS_NODE = "Node"
"""The kind of the controller of a static pod's mirror pod. The kubelet runs the static pod whatever happens
to its mirror in the API server.
"""


@dataclass(frozen=True, slots=True)
class RunningObject:
    """The manifest of a workload that no controller of a known kind has created. A workload that has such a
    controller is planned with it, and gets no `RunningObject`.

    `name`: NAMESPACE/KIND/NAME. `text`: the manifest as JSON; ten thousand parsed objects would take most of
    a gigabyte. `pods`: NAMESPACE/NAME of the pods that it owns, directly or through other objects.
    """

    name: str
    text: bytes
    pods: tuple[str, ...] = ()

    def manifest(self) -> Json:
        """Returns the object as it would be applied again: without status and what the API server set."""
        document: Json = orjson.loads(self.text)
        return document


@dataclass(frozen=True)
class RunningCluster:
    """A cluster that was read once. `snapshot` contains the reservations. `unread`: API paths that the user
    may not read. `webhooks`: Bayplan's mutating webhook configuration, None if it is not installed or not
    readable.
    """

    snapshot: Snapshot
    environment: Environment
    objects: tuple[RunningObject, ...]
    unread: tuple[str, ...] = ()
    webhooks: Json | None = None

    @cached_property
    def _bound(self) -> Mapping[str, BoundPod]:
        return {pod.name: pod for pod in self.snapshot.pods}

    def without(self, obj: RunningObject, gangs: Iterable[str]) -> Snapshot:
        """Returns the cluster without an object's pods and without the reservations of its gangs, so that
        the object can be planned as if it were new. `gangs`: the names of its gangs.
        """
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
    namespace: str,
    settings: Settings,
) -> AsyncIterator[RunningCluster]:
    """Yields the cluster of a kubeconfig, with the workloads of all namespaces or of one.

    The environment can be used until the end of the context. Raises `InputError` if the cluster cannot be
    reached, or its nodes may not be read.
    """
    side = await ClusterRuntime.connect(kubeconfig, in_cluster=False, settings=settings)
    try:
        yield await _read(side, policies, namespace)
    except ApiError as error:
        raise InputError(f"cannot be read: {error}", Where(kubeconfig or side.api.host)) from None
    finally:
        await side.close()


async def _read(side: ClusterRuntime, policies: PolicySet, namespace: str) -> RunningCluster:
    await side.api.get("/api/v1/nodes", limit="1")  # fails at once if the address or credentials are wrong
    side.follow(policies)
    unread = [reflector.path for reflector in await await_lists(side)]
    reading = _Reading(side.api, namespace)
    objects = tuple([obj async for obj in reading.objects()])
    snapshot = side.snapshot()
    assert snapshot is not None, "all was read, or is done without"
    now = side.api.now()
    # These objects are stored already: no user requests them, and no gang is queued before them.
    environment = replace(
        side.environment(), access=no_access, waiting=tuple, now=now
    ).with_policy_parameters(policies)
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


async def await_lists(side: ClusterRuntime) -> list[Reflector]:
    """Waits until every watch has listed its resource; returns those whose resource the user may not list,
    which counts as empty. Without an installation, reservations are not served, and count as none.

    Raises `InputError` if the others are not complete within `FIRST_LOOK_SECONDS`.
    """
    without: list[Reflector] = []
    try:
        async with asyncio.timeout(FIRST_LOOK_SECONDS):
            while side.waiting():
                for reflector in side.reflectors():
                    if reflector.synced.is_set():
                        continue
                    if reflector.forbidden:
                        without.append(reflector)
                    if reflector.forbidden or reflector.missing:
                        reflector.go_without()
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise InputError(f"was not read within {FIRST_LOOK_SECONDS:g} s: {side.waiting()}") from None
    return without


class _Reading:
    """Lists the workloads of a cluster, kind by kind. `forbidden`: the paths that may not be listed."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self.forbidden: list[str] = []

    async def objects(self) -> AsyncIterator[RunningObject]:
        """Yields each workload that no controller of a known kind created, with the pods below it."""
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
    """What is kept of a listed object. `owner`: NAMESPACE/KIND/NAME of its controller, if that is of a known
    kind, else "". `text`: its manifest as JSON; empty if it has such an owner, which is planned instead.
    """

    name: str
    owner: str
    text: bytes


def _entry(item: Json) -> _ListedObject | None:
    """Returns what is kept of an object; None if it has ended, is being deleted, or is ignored by Bayplan."""
    metadata = item["metadata"]
    namespace, kind = metadata.get("namespace", ""), item["kind"]
    if metadata.get("deletionTimestamp") or (kind != "Pod" and finished(item)):
        return None
    controller = controller_of(item)
    owner_kind = str(controller.get("kind", ""))
    if is_left_alone(namespace, owner_kind) or owner_kind == ON_ITS_NODE:
        return None
    asked = controller_row(item) is not None
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
    """Returns the topmost owner of an object, or the object itself. `above`: the owners of owned objects."""
    return list(_owners(name, above))[-1]


def _owners(name: str, above: Mapping[str, str]) -> Iterator[str]:
    for _ in range(MAX_OWNERS):
        yield name
        if name not in above:
            return
        name = above[name]
