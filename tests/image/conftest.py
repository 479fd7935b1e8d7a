"""The image's root file system, where it could be built: `make try-image`."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session")
def root() -> str:
    """The folder that it is in."""
    folder = os.environ.get("BAYPLAN_IMAGE", "")
    if not folder:
        pytest.skip("BAYPLAN_IMAGE names no folder with the image's root file system: `make try-image`")
    return folder
