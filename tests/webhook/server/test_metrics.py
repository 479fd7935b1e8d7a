"""The text of /metrics."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from webhook.policy.model.policy import PolicySet
from webhook.server.metrics import metrics
from webhook.server.standing_metrics import Standing

SECONDS = 0.3


class Stop:
    """A sequence without elements, at which a scrape stops until another one has come to its own."""

    def __init__(self, reached: threading.Event, other: threading.Event) -> None:
        self.reached, self.other = reached, other

    def __iter__(self) -> Iterator[Any]:
        self.reached.set()
        self.other.wait(SECONDS)
        return iter(())


def test_a_scrape_beside_another_one_has_all_gauges() -> None:
    """Two Prometheus servers scrape each replica: an alert must not end because they do so at once."""
    shown, at_exemptions, at_waiting = metrics(), threading.Event(), threading.Event()
    policies = PolicySet(exemptions=Stop(at_exemptions, at_waiting))  # type: ignore[arg-type]
    waits = Standing(0.0, waiting=Stop(at_waiting, threading.Event()))  # type: ignore[arg-type]
    with ThreadPoolExecutor() as threads:
        first = threads.submit(shown.exposition, policies, {}, True, Standing(0.0, waiting=()))
        at_exemptions.wait()
        threads.submit(shown.exposition, PolicySet(), {}, True, waits)
        text = first.result().decode()
    assert 'bayplan_waiting_gangs{age="older"} 0.0' in text
    assert 'bayplan_policy_set_info{revision=""} 1.0' in text
