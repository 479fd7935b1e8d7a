"""Keeps what was read of the objects of one resource; invalid objects are left out, with the reason."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from planner.model.errors import InputError, Where
from webhook.kube.api.client import Event, Json

log = logging.getLogger("bayplan")


Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class ReadObject(Generic[Read]):
    """What was read of one object. `value` is None if the object is left out, for the reason `why` ("" if
    that is not a fault).

    `is_old`: the store has read this version before, and keeps what it has.
    """

    key: str
    version: str
    value: Read | None = None
    why: str = ""
    is_old: bool = False


class Store(Generic[Read]):
    """What was read of the objects of one resource, by NAMESPACE/NAME (or NAME). `read` returns None for an
    object that is left out.

    `on_change` is called each time a value changes, with the key, the former value and the new one; None
    stands for no value. All changes happen under `lock`, so a thread that holds the lock never sees half a
    list.
    """

    def __init__(
        self,
        read: Callable[[Json, Where], Read | None],
        kind: str,
        on_change: Callable[[str, Read | None, Read | None], None],
        lock: threading.Lock,
    ) -> None:
        self.items: dict[str, Read] = {}
        self.bad: dict[str, str] = {}
        """Why invalid objects are left out, by key."""
        self._versions: dict[str, str] = {}
        self._read = read
        self._kind = kind
        self._on_change = on_change
        self._lock = lock

    def knows(self, key: str) -> bool:
        """Returns whether the object exists as far as the watch has shown, even if it is left out. The caller
        holds the lock.
        """
        return key in self._versions

    def version(self, key: str) -> str:
        """Returns the last resource version of the object that was seen, "" if the object does not exist. The
        caller holds the lock.
        """
        return self._versions.get(key, "")

    def read(self, item: Json) -> ReadObject[Read]:
        """Returns what was read of an object; a version that is in the store is not read again."""
        key, version = key_of(item), str(item["metadata"].get("resourceVersion", ""))
        if version and self._versions.get(key) == version:
            return ReadObject(key, version, is_old=True)
        where = Where(object=f"{self._kind} {key}")
        try:
            return ReadObject(key, version, self._read(item, where))
        except InputError as error:
            return ReadObject(key, version, why=str(error))
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            return ReadObject(key, version, why=f"{where}: {error!r}")

    def replaced(self, lines: Iterable[ReadObject[Read]], version: int) -> None:
        """Replaces all objects by those of a list."""
        fresh = {line.key: line for line in lines}
        with self._lock:
            for key in [key for key in self._versions if key not in fresh]:
                self._drop(key)
            for line in fresh.values():
                self._take(line)

    def changed(self, event: Event) -> None:
        """Applies one added, changed or deleted object."""
        line = self.read(event.object)
        with self._lock:
            if event.type == "DELETED":
                self._drop(line.key)
            else:
                self._take(line)

    def _take(self, line: ReadObject[Read]) -> None:
        if line.is_old:
            return
        if line.why and self.bad.get(line.key) != line.why:
            log.warning("left out: %s", line.why)
        if line.value is None:
            self._drop(line.key)
        elif (former := self.items.get(line.key)) != line.value:
            self.items[line.key] = line.value
            self._on_change(line.key, former, line.value)
        self.bad.pop(line.key, None)
        if line.why:
            self.bad[line.key] = line.why
        self._versions[line.key] = line.version

    def _drop(self, key: str) -> None:
        self._versions.pop(key, None)
        self.bad.pop(key, None)
        if (former := self.items.pop(key, None)) is not None:
            self._on_change(key, former, None)


def key_of(item: Json) -> str:
    """Returns NAMESPACE/NAME, or NAME for a cluster-scoped object."""
    metadata = item["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
