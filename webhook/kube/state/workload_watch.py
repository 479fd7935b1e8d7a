"""Watches the workloads and unbound pods of the cluster, and returns the gangs that wait for a place.

Every replica watches them. Only the leader's controller acts on them, but every replica must know which gangs
wait, so that a new gang does not take a place before them (`webhook.placement.queue`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import partial

from planner.model.errors import InputError, Where
from planner.model.names import kind_of, namespace_of
from planner.model.podgroup import PodGroup
from webhook.admission.configuration.settings import Settings, default_settings
from webhook.kube.api.client import Api, Json
from webhook.kube.api.discovery import served_path
from webhook.kube.api.reflector import Reflector
from webhook.kube.api.store import Store
from webhook.kube.api.watches import Watches
from webhook.kube.state.gangs import (
    MAX_OWNERS,
    WATCHED,
    Entry,
    Unbound,
    Work,
    as_chosen,
    regrouped,
    unbound_from,
    work_from,
)
from webhook.kube.state.gathering import gangs_of, members_of
from webhook.placement.fair_order import WaitingGang
from webhook.workloads import Workload, WorkloadKind
from webhook.workloads.shared_gangs.pod_groups import POD_GANGS, PodGroups, joinable

UNBOUND = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"
"""Field selector for unbound pods that have not ended."""


MOST_READ = 4096
"""Maximum number of cached objects that name PodGroups."""


class QueueWatch(Watches):
    """Watches workloads and unbound pods; `start` it, and `close` it after use.

    `on_change` is called after each change. `groups`: returns the PodGroups that objects may name, the same
    mapping until one changes.
    """

    def __init__(
        self, api: Api, on_change: Callable[[], None], groups: Callable[[], PodGroups] = dict
    ) -> None:
        self._api = api
        self._groups = groups
        self._grouped = _Grouped({})
        self._on_change = on_change
        self._lock = threading.Lock()
        self._served: dict[WorkloadKind, str] = {}
        """The API path of each kind's objects; "" if the kind is not served."""
        self._by_uid: dict[str, Work | Unbound] = {}
        self._say_they_wait = 0
        """The number of workloads that say that they wait, and of pods with Bayplan's gate."""
        self._works: list[Store[Work]] = [
            Store(partial(self._read, row=row), row.name, self._changed, self._lock) for row in WATCHED
        ]
        self._by_kind: dict[str, list[Store[Work]]] = {}
        for row, store in zip(WATCHED, self._works, strict=True):
            self._by_kind.setdefault(row.name, []).append(store)
        self._pods: Store[Unbound] = Store(unbound_from, "Pod", self._changed, self._lock)
        self.in_force: Callable[[], Callable[[str], Settings]] = lambda: default_settings
        """Returns the current settings, as a function of the namespace; they are the defaults for what stored
        gangs do not state.
        """
        self._changes = 0
        self._last_queue: tuple[int, tuple[WaitingGang, ...]] = (-1, ())
        """The number of changes at which the queue was computed, and the queue."""
        works = (
            Reflector(api, f"{row.resource}.{row.group}", store, find=partial(self._find, row))
            for row, store in zip(WATCHED, self._works, strict=True)
        )
        pods = Reflector(api, "/api/v1/pods", self._pods, query={"fieldSelector": UNBOUND})
        super().__init__([pods, *works])

    def paths(self) -> dict[str, list[str]]:
        """Returns the API paths of the objects of each watched kind that is served, pods included."""
        paths = {"Pod": ["/api/v1/pods"]}
        for row, path in self._served.items():
            if path:
                paths.setdefault(row.name, []).append(path)
        return paths

    def shows(self, kind: str, key: str, version: str) -> bool:
        """Returns whether the workload or unbound pod NAMESPACE/NAME was last seen in this resource version.

        Thread-safe.
        """
        stores = [self._pods] if kind == "Pod" else self._by_kind.get(kind, [])
        with self._lock:
            return any(store.version(key) == version for store in stores)

    def works(self, namespace: str = "") -> tuple[Work, ...]:
        """Returns the workloads of a namespace ("" for all) that are gangs, or stand between a gang and its
        pods.
        """
        with self._lock:
            works = tuple(work for store in self._works for work in store.items.values())
        return self._as_gangs(works, namespace)

    def unbound(self, namespace: str = "") -> tuple[Unbound, ...]:
        """Returns the unbound pods of a namespace, "" for all."""
        with self._lock:
            pods = tuple(self._pods.items.values())
        return self._as_gangs(pods, namespace)

    def _as_gangs(self, entries: Iterable[Entry], namespace: str) -> tuple[Entry, ...]:
        grouped, choose = self._in_groups(), _chosen(self.in_force())
        wanted = (entry for entry in entries if namespace in ("", entry.ref.namespace))
        return tuple(as_chosen(grouped.of(entry), choose) for entry in wanted)

    def members(self, gang: str) -> tuple[Workload, ...]:
        """Returns the stored objects of a gang of several objects, apart from those that have ended.
        Thread-safe.
        """
        namespace = namespace_of(gang)
        works = [work for work in self.works(namespace) if not (work.finished or work.leaving)]
        return tuple(member.workload for member in members_of(gang, works, self.unbound(namespace)))

    def rechosen(self) -> None:
        """Records that the settings have changed, so that the queue is computed again."""
        self._count_change()

    def queue(self) -> tuple[WaitingGang, ...]:
        """Returns the waiting gangs, unordered. Some may hold a place already: only the book shows that.
        Thread-safe.
        """
        self._in_groups()
        # `_changes` is read before the objects: a change meanwhile makes the next call compute again.
        changes, (change, queue) = self._changes, self._last_queue
        if change != changes:
            # Without a stored object that says it waits, no gang does (`Gang.waits`). Otherwise each of many
            # pods that are created at once would cause all of them to be gathered into gangs again.
            queue = self._waiting() if self._say_they_wait else ()
            self._last_queue = changes, queue
        return queue

    def _waiting(self) -> tuple[WaitingGang, ...]:
        gangs = gangs_of(self.works(), self.unbound()).values()
        return tuple(WaitingGang(gang.group, gang.created) for gang in gangs if gang.waits)

    def skips(self, owner: str) -> bool:
        """Returns whether the workload NAMESPACE/KIND/NAME, or one above it, opted out of planning.
        Thread-safe.
        """
        with self._lock:
            for _ in range(MAX_OWNERS):
                work = self._work(owner)
                if work is None or work.skip:
                    return work is not None
                owner = work.controller
        return False

    def topmost(self, owner: str) -> str:
        """Returns the topmost known owner of the workload NAMESPACE/KIND/NAME, or the workload itself.
        Thread-safe.
        """
        with self._lock:
            for _ in range(MAX_OWNERS):
                work = self._work(owner)
                if work is None or not work.controller:
                    break
                owner = work.controller
        return owner

    def has_pod(self, key: str) -> bool:
        """Returns whether the pod NAMESPACE/NAME exists and is unbound. Thread-safe."""
        with self._lock:
            return self._pods.knows(key)

    def knows(self, owner: str) -> bool:
        """Returns whether the workload NAMESPACE/KIND/NAME has been seen; True for kinds that are not
        watched. Thread-safe.
        """
        namespace, kind, name = owner.split("/", 2)
        stores = self._by_kind.get(kind, [])
        with self._lock:
            return not stores or any(store.knows(f"{namespace}/{name}") for store in stores)

    def is_stored(self, gang: str, uid: str) -> bool:
        """Returns whether an object with this UID is stored that may be the gang's and is not being deleted.

        The object must have the namespace and the kind in the gang's name; for gangs of pods or several
        objects, any kind. Thread-safe.
        """
        with self._lock:
            entry = self._by_uid.get(uid)
        if entry is None or entry.ref.namespace != namespace_of(gang):
            return False
        if isinstance(entry, Unbound):
            return kind_of(gang) in POD_GANGS
        return kind_of(gang) in (*POD_GANGS, entry.ref.kind) and not entry.leaving

    def _work(self, owner: str) -> Work | None:
        namespace, kind, name = owner.split("/", 2) if owner else ("", "", "")
        items = (store.items.get(f"{namespace}/{name}") for store in self._by_kind.get(kind, []))
        return next((work for work in items if work is not None), None)

    async def _find(self, row: WorkloadKind) -> str:
        self._served[row] = await served_path(self._api, row.group, row.resource)
        return self._served[row]

    def _read(self, item: Json, where: Where, row: WorkloadKind) -> Work | None:
        version = self._served[row].removeprefix("/apis/").rpartition("/")[0]
        return work_from(item, where, version, row.name)

    def _changed(self, _: str, former: Work | Unbound | None, entry: Work | Unbound | None) -> None:
        if former is not None:
            self._by_uid.pop(former.ref.uid, None)
            self._say_they_wait -= _says_it_waits(former)
        if entry is not None:
            self._by_uid[entry.ref.uid] = entry
            self._say_they_wait += _says_it_waits(entry)
        self._count_change()

    def _count_change(self) -> None:
        self._changes += 1
        self._on_change()

    def _in_groups(self) -> _Grouped:
        """Returns the reader of stored objects for the current PodGroups; new PodGroups count as a change."""
        groups = self._groups()
        if groups is not self._grouped.groups:
            self._grouped = _Grouped(groups)
            self._changes += 1
        return self._grouped


class _Grouped:
    """Reads the gangs of stored objects that name a PodGroup, once for these PodGroups, and caches them."""

    def __init__(self, groups: PodGroups) -> None:
        self.groups = groups
        self._joinable = joinable(groups)
        self._read: dict[int, tuple[Work | Unbound, Work | Unbound]] = {}

    def of(self, entry: Entry) -> Entry:
        """Returns a workload or pod with the gang that its PodGroups define; unchanged if it names none that
        users wrote for objects to join (`joinable`).
        """
        names = entry.source.names if entry.source is not None else ()
        if not any((entry.ref.namespace, name) in self._joinable for name in names):
            return entry
        # By id, because hashing a large entry is slow. The cache keeps the entry, so its id is not reused.
        stored, read = self._read.get(id(entry), (None, None))
        if stored is not entry or read is None:
            read = self._read_again(entry)
            if len(self._read) >= MOST_READ:
                self._read.clear()
            self._read[id(entry)] = entry, read
        return read  # type: ignore[return-value]

    def _read_again(self, entry: Entry) -> Entry:
        try:
            return regrouped(entry, self._joinable)
        except InputError:  # admission has reported it, and left the object without its group
            return entry


def _says_it_waits(entry: Work | Unbound) -> bool:
    return entry.gated if isinstance(entry, Unbound) else entry.queued


def _chosen(settings: Callable[[str], Settings]) -> Callable[[PodGroup], PodGroup]:
    """Returns a function that adds to a gang its namespace's defaults for what the gang does not state."""
    return lambda group: settings(namespace_of(group.name)).reserve.of(group)
