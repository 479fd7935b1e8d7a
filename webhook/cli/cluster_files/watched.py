"""Cluster files that are read again when they change."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError
from webhook.admission.configuration.settings import DEFAULT_SETTINGS, Settings
from webhook.admission.environment import Environment
from webhook.cli.cluster_files.reading import read_cluster_files
from webhook.files.reader import SUFFIXES


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
