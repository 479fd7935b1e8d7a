"""Reports of the same decisions in several formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from webhook.cli.decisions import report
from webhook.cli.decisions.mutate import MutationResult


@pytest.fixture(scope="module")
def decided() -> dict[str, Sequence[MutationResult]]:
    """The decisions of the tests of a module that take `each_decided_once`, by what was decided on."""
    return {}


@pytest.fixture
def each_decided_once(decided: dict[str, Sequence[MutationResult]], monkeypatch: pytest.MonkeyPatch) -> None:
    """`bayplan report` decides on the same manifests once, whatever the format. For tests of a module that
    have the same cluster and policies: only manifests and `--together` may differ.
    """
    decide_all = report.decide_all

    def once(policies: Any, snapshot: Any, documents: Any, *around: Any, **options: Any) -> Any:
        key = repr((documents, sorted(options.items())))
        if key not in decided:
            decided[key] = decide_all(policies, snapshot, documents, *around, **options)
        return decided[key]

    monkeypatch.setattr(report, "decide_all", once)
