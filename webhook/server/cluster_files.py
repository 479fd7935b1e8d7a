"""Snapshots from cluster files, which are read again when they change."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError, Where
from webhook.admission.configuration.settings import DEFAULT_SETTINGS, Settings, everywhere
from webhook.admission.environment import Environment
from webhook.files.reader import SUFFIXES, Document, documents
from webhook.policy.engine.device_selectors import read_cluster


def read_cluster_files(
    paths: Sequence[str], settings: Settings = DEFAULT_SETTINGS
) -> tuple[Snapshot, Environment]:
    """The snapshot and environment that cluster files hold; `settings` serve where they say nothing. Raises
    `InputError` for what cannot be read.

    A cluster without nodes is an error too: a file that is just being written looks like that, and every
    workload would be rejected.
    """
    return read_cluster_documents(documents(paths), settings)


def read_cluster_documents(
    read_documents: Sequence[Document], settings: Settings = DEFAULT_SETTINGS
) -> tuple[Snapshot, Environment]:
    """The same of documents that were read already."""
    snapshot = read_cluster((document.file, document.value) for document in read_documents)
    if not snapshot.nodes:
        files = dict.fromkeys(document.file for document in read_documents)
        raise InputError("no Node in it; a cluster has at least one", Where(", ".join(files)))
    return snapshot, _environment(read_documents, settings)


def read_environment(paths: Sequence[str]) -> Environment:
    """The environment alone, also of files without nodes. Raises `InputError` for what cannot be read."""
    return _environment(documents(paths)) if paths else Environment()


def _environment(read_documents: Iterable[Document], settings: Settings = DEFAULT_SETTINGS) -> Environment:
    objects = objects_in(document.value for document in read_documents)
    return Environment.of_objects(objects, everywhere(settings))


def objects_in(values: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """The Kubernetes objects in documents: themselves, and the items of lists."""
    for value in values:
        if isinstance(value, dict) and isinstance(value.get("items"), list):
            yield from objects_in(value["items"])
        elif isinstance(value, dict):
            yield value


class ClusterFiles:
    """Cluster files as `kubectl get -o yaml` prints them; a bad change keeps the last good snapshot."""

    def __init__(self, paths: Sequence[str], settings: Settings = DEFAULT_SETTINGS) -> None:
        """Reads the files; `settings` serve where they say nothing. Raises `InputError` for what cannot be
        read at the start."""
        self._paths = tuple(paths)
        self._settings = settings
        self._lock = threading.Lock()
        self._seen = stamps(self._paths)
        self._snapshot, self._environment = self._read()
        self._problem = ""

    def snapshot(self) -> Snapshot:
        """The snapshot, read again if a file has changed."""
        with self._lock:
            seen = stamps(self._paths)
            if seen != self._seen:
                self._seen = seen
                try:
                    self._snapshot, self._environment = self._read()
                    self._problem = ""
                except InputError as error:
                    self._problem = str(error)
            return self._snapshot

    def environment(self) -> Environment:
        """Namespaces and parameters in the files that the snapshot was read from."""
        return self._environment

    def knows_owner(self, owner: str) -> bool:
        """Files tell of no owner later."""
        return True

    def knows_namespace(self, name: str) -> bool:
        """Nor of a namespace."""
        return True

    def problem(self) -> str:
        """The last bad change, "" when the newest files were good."""
        return self._problem

    def waiting(self) -> str:
        """Nothing: the files were read at the start."""
        return ""

    def _read(self) -> tuple[Snapshot, Environment]:
        return read_cluster_files(self._paths, self._settings)


def stamps(paths: Iterable[str]) -> tuple[tuple[str, int, int], ...]:
    """Name, time and size of each file, which differ once one of them has changed."""
    files = [file for path in paths for file in _cluster_files(Path(path))]
    stats = []
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            continue
        stats.append((str(file), stat.st_mtime_ns, stat.st_size))
    return tuple(stats)


def _cluster_files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES)
    return [path]
