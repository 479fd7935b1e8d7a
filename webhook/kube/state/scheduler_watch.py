"""Records which scheduling systems a watched cluster has, by the kinds that it serves and by pods.

The caller holds the lock of the snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.manifests.schedulers.systems import DEFINITION, SYSTEM_OF
from webhook.kube.api.client import Json


class SchedulerWatch:
    """The kinds of scheduling systems that the API server serves, and the pods that indicate each system: a
    pod runs the system, or names it as its scheduler.
    """

    def __init__(self) -> None:
        self._served: dict[str, None] = {}
        self._pods: dict[str, dict[str, None]] = {}
        self._shows: dict[str, tuple[str, ...]] = {}

    def kind_found(self, group: str, kind: str, plural: str, served: bool) -> bool:
        """Records whether a kind is served; returns whether that changes the known systems."""
        name = f"{plural}.{group}"
        if (group, kind) not in SYSTEM_OF or (name in self._served) == served:
            return False
        if served:
            self._served[name] = None
        else:
            del self._served[name]
        return True

    def pod_changed(self, key: str, shows: tuple[str, ...]) -> bool:
        """Records the systems that a pod indicates, () for a deleted pod; returns whether that changes the
        known systems.
        """
        former = self._shows.pop(key, ())
        if shows:
            self._shows[key] = shows
        if shows == former:
            return False
        before = set(self._pods)
        for name in former:
            self._pods[name].pop(key)
            if not self._pods[name]:
                del self._pods[name]
        for name in shows:
            self._pods.setdefault(name, {})[key] = None
        return before != set(self._pods)

    def definitions(self) -> list[Json]:
        """Returns a CustomResourceDefinition for each served kind, as a file with a cluster's objects has."""
        head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": DEFINITION}
        return [{**head, "metadata": {"name": name}} for name in self._served]

    def pods(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yields, for each system that any pod indicates, the key of one such pod, and the system in a
        tuple.
        """
        return ((next(iter(keys)), (name,)) for name, keys in self._pods.items())
