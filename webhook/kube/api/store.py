"""The objects of one resource as they are read: what cannot be read is left out, with its reason."""

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
class Line(Generic[Read]):
    """One object as it was read. `value` None: left out, for the reason `why` ("" where that is no fault).

    `is_old`: this version of it was read before, and nothing is to be done.
    """

    key: str
    version: str
    value: Read | None = None
    why: str = ""
    is_old: bool = False


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
        self._versions: dict[str, str] = {}
        self._read = read
        self._kind = kind
        self._stirred = stirred
        self._lock = lock

    def knows(self, key: str) -> bool:
        """Whether the object was seen, be it left out. The caller holds the lock."""
        return key in self._versions

    def read(self, item: Json) -> Line[Read]:
        """What is kept of an object; one whose version was read before is not read again."""
        key, version = key_of(item), str(item["metadata"].get("resourceVersion", ""))
        if version and self._versions.get(key) == version:
            return Line(key, version, is_old=True)
        where = Where(object=f"{self._kind} {key}")
        try:
            return Line(key, version, self._read(item, where))
        except InputError as error:
            return Line(key, version, why=str(error))
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            return Line(key, version, why=f"{where}: {error!r}")

    def replaced(self, lines: Iterable[Line[Read]], version: int) -> None:
        """These are all objects now."""
        fresh = {line.key: line for line in lines}
        with self._lock:
            for key in [key for key in self._versions if key not in fresh]:
                self._drop(key)
            for line in fresh.values():
                self._take(line)

    def changed(self, event: Event) -> None:
        """One object came, changed or went."""
        line = self.read(event.object)
        with self._lock:
            if event.type == "DELETED":
                self._drop(line.key)
            else:
                self._take(line)

    def _take(self, line: Line[Read]) -> None:
        if line.is_old:
            return
        if line.why and self.bad.get(line.key) != line.why:
            log.warning("left out: %s", line.why)
        if line.value is None:
            self._drop(line.key)
        elif self.items.get(line.key) != line.value:
            self.items[line.key] = line.value
            self._stirred(line.key)
        self.bad.pop(line.key, None)
        if line.why:
            self.bad[line.key] = line.why
        self._versions[line.key] = line.version

    def _drop(self, key: str) -> None:
        self._versions.pop(key, None)
        self.bad.pop(key, None)
        if self.items.pop(key, None) is not None:
            self._stirred(key)


def key_of(item: Json) -> str:
    """NAMESPACE/NAME, or NAME of what lies in no namespace."""
    metadata = item["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
