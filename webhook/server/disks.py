"""Detects full disks before a write fails."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

LEAST_BYTES = 2**20
"""The number of free bytes below which a disk counts as full. A large gang's reservation, its journal entry
and a new certificate together need less.
"""


def full_disks(folders: Mapping[str, Path]) -> Iterator[str]:
    """Yields a sentence for each folder that is unreadable, or whose disk is full. `folders`: by a name of
    their content, which the sentences begin with.
    """
    for kept, folder in folders.items():
        try:
            disk = os.statvfs(folder)
        except OSError as error:
            yield f"{kept}: {folder} cannot be looked at: {error.strerror}"
            continue
        free = disk.f_bavail * disk.f_frsize
        if free < LEAST_BYTES:
            yield f"{kept}: the disk of {folder} is full, {free // 1024} KiB are left; free some space there"
        elif disk.f_files and not disk.f_favail:
            yield f"{kept}: the disk of {folder} takes no more files; delete some there"
