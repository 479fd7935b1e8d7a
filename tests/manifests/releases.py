"""The releases whose replicas may be beside those of this one: docs/upgrade.md names the oldest too."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
BESIDE = "7f9f8d103791ee1a224298100abdc055f6db3079"
"""The commit from which on the book of reservations is kept in etcd's order of writes. No release is tagged
yet; it is moved only where replicas of two releases could break an invariant."""
BEFORE = "43a0f1d6a638246c254faaa2c28baf7dea699f52"
"""The newest commit that was handed out when this one was begun: an upgrade comes from there."""


def text_then(path: str) -> str | None:
    """A file as it was then; None where the checkout's history does not reach so far."""
    done = subprocess.run(
        ["git", "show", f"{BESIDE}:{path}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return None if done.returncode else done.stdout
