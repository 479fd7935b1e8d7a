"""Reads cluster files, and reads them again when they change."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from planner.cluster.snapshot import Snapshot
from planner.model.errors import InputError
from webhook.admission.configuration.settings import DEFAULT_SETTINGS, Settings
from webhook.admission.environment import Environment
from webhook.cli.cluster_files.reading import read_cluster_files
from webhook.files.reader import files_of


class ClusterFiles:
    """The `ClusterSource` of a cluster in files. After an invalid change, the last valid snapshot stays in
    use. Thread-safe.
    """

    def __init__(self, paths: Sequence[str], settings: Settings = DEFAULT_SETTINGS) -> None:
        """Reads the files. `settings`: those in force if the files set none. Raises `InputError` for files
        that cannot be read.
        """
        self._paths = tuple(paths)
        self._settings = settings
        self._lock = threading.Lock()
        self._stamps = stamps(self._paths)
        self._snapshot, self._environment = self._read()
        self._problem = ""

    def snapshot(self) -> Snapshot:
        """Returns the snapshot, after reading the files again if one of them has changed."""
        with self._lock:
            current = stamps(self._paths)
            if current != self._stamps:
                self._stamps = current
                try:
                    self._snapshot, self._environment = self._read()
                    self._problem = ""
                except InputError as error:
                    self._problem = str(error)
            return self._snapshot

    def environment(self) -> Environment:
        """Returns the environment of decisions as of the last snapshot: the namespaces and parameters in the
        files.
        """
        return self._environment

    def knows_owner(self, owner: str) -> bool:
        """Returns True: no watch event can add an owner later."""
        return True

    def knows_namespace(self, name: str) -> bool:
        """Returns True: no watch event can add a namespace later."""
        return True

    def problem(self) -> str:
        """Returns why the newest version of the files is not in use; "" if it is."""
        return self._problem

    def waiting(self) -> str:
        """Returns "": the files are read at the start, so there is nothing to wait for."""
        return ""

    def _read(self) -> tuple[Snapshot, Environment]:
        return read_cluster_files(self._paths, self._settings)


def stamps(paths: Iterable[str]) -> tuple[tuple[str, int, int], ...]:
    """Returns name, modification time (ns) and size in bytes of each file, to find out whether one has
    changed.
    """
    files = [file for path in paths for file in _cluster_files(path)]
    stats = []
    for file in files:
        try:
            stat = os.stat(file)
        except OSError:
            continue
        stats.append((file, stat.st_mtime_ns, stat.st_size))
    return tuple(stats)


def _cluster_files(path: str) -> list[str]:
    try:
        return files_of(path) if Path(path).is_dir() else [path]
    except InputError:  # reading the files again says so
        return []
