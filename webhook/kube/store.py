"""The objects of one resource as they are read: what cannot be read is left out, with its reason."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from planner.errors import InputError, Where
from webhook.kube.client import Event, Json

log = logging.getLogger("bayplan")
Read = TypeVar("Read")


class Store(Generic[Read]):
    """The objects of one resource, read: by NAMESPACE/NAME (or NAME). `read` gives None for what is left out.

    `stirred` is called with the key after each change of what was read. All is changed under `lock`: a
    thread that holds it sees no half of a list.
    """

    def __init__(
        self,
        read: Callable[[Json, Where], Read | None],
        kind: str,
        stirred: Callable[[str], None],
        lock: threading.Lock,
    ) -> None:
        self.items: dict[str, Read] = {}
        self.bad: dict[str, str] = {}
        """Why objects are left out, by key."""
        self._read = read
        self._kind = kind
        self._stirred = stirred
        self._lock = lock

    def replaced(self, items: Iterable[Json], version: int) -> None:
        """These are all objects now."""
        fresh = {key_of(item): item for item in items}
        with self._lock:
            for key in [key for key in (*self.items, *self.bad) if key not in fresh]:
                self._drop(key)
            for key, item in fresh.items():
                self._put(key, item)

    def changed(self, event: Event) -> None:
        """One object came, changed or went."""
        key = key_of(event.object)
        with self._lock:
            if event.type == "DELETED":
                self._drop(key)
            else:
                self._put(key, event.object)

    def _put(self, key: str, item: Json) -> None:
        where = Where(object=f"{self._kind} {key}")
        try:
            found = self._read(item, where)
        except (InputError, KeyError, TypeError, ValueError, RecursionError) as error:
            self._leave_out(key, str(error) if isinstance(error, InputError) else f"{where}: {error!r}")
            return
        self.bad.pop(key, None)
        if found is None:
            self._drop(key)
        elif self.items.get(key) != found:
            self.items[key] = found
            self._stirred(key)

    def _drop(self, key: str) -> None:
        self.bad.pop(key, None)
        if self.items.pop(key, None) is not None:
            self._stirred(key)

    def _leave_out(self, key: str, why: str) -> None:
        if self.bad.get(key) != why:
            log.warning("left out: %s", why)
        self._drop(key)
        self.bad[key] = why


def key_of(item: Json) -> str:
    """NAMESPACE/NAME, or NAME of what lies in no namespace."""
    metadata = item["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
