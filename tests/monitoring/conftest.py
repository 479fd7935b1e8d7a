"""Prometheus and promtool, where they can be had: `make monitoring`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder that holds both."""
    folder = os.environ.get("BAYPLAN_PROMETHEUS", "")
    if not folder:
        pytest.skip("BAYPLAN_PROMETHEUS names no folder with prometheus and promtool: `make monitoring`")
    return Path(folder)
