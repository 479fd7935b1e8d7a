"""Lists the files in a folder: for clusters, manifests, policies and test cases alike. Does not read them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

SUFFIXES = (".yaml", ".yml", ".json")
"""The suffixes of the files that are read in a folder."""


def files_below(folder: str | Path, wanted: Callable[[str], bool]) -> list[Path]:
    """Returns the files in a folder with a wanted name, recursively, apart from hidden files and folders.

    Symlinks to folders are followed, each folder is listed once, and a folder's files come before its
    subfolders, both sorted. A ConfigMap mount keeps its files behind a hidden `..data` symlink and shows them
    beside it again, so skipping hidden names lists each file once.

    Raises `OSError` for a folder that cannot be read, because its files would otherwise be missing unnoticed.
    """
    files: list[Path] = []
    visited: set[str] = set()
    for root, folders, names in os.walk(folder, followlinks=True, onerror=_cannot_be_read):
        place = os.path.realpath(root)
        fresh = place not in visited  # mounts use symlinks to folders, which may form a cycle
        visited.add(place)
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if fresh else []
        if fresh:
            files += [Path(root, name) for name in sorted(names) if not name.startswith(".") and wanted(name)]
    return files


def _cannot_be_read(error: OSError) -> None:
    if Path(str(error.filename)).name != "lost+found":  # on top of each ext file system, for root alone
        raise error
