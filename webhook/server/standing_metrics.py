"""Gauges that are computed at each scrape: queued gangs and unused reservations by age, the certificate's
expiry.

The age is a label with five values, so that a thousand queued gangs are five series.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Gauge

from planner.cluster.snapshot import Snapshot
from webhook.placement.fair_order import WaitingGang
from webhook.placement.hold import is_used

AGES = (("1m", 60.0), ("10m", 600.0), ("1h", 3600.0), ("1d", 86_400.0), ("older", float("inf")))
"""The value of the age label, and the seconds below which it applies, in increasing order."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The state that the gauges show, at the time `now`. Times are seconds since the epoch.

    `snapshot`: the cluster with its reservations, None if unknown. `waiting`: the queued gangs, None if
    unknown. `certificate_end`: when the serving certificate expires, 0 if none is served.
    """

    now: float
    snapshot: Snapshot | None = None
    waiting: Sequence[WaitingGang] | None = None
    certificate_end: float = 0.0


@dataclass(frozen=True, slots=True)
class StandingMetrics:
    """The Prometheus gauges."""

    waiting: Gauge
    unused: Gauge
    certificate: Gauge

    def look(self, standing: Standing) -> None:
        """Sets the gauges to the current values. What is unknown has none: a zero would end an alert."""
        self.waiting.clear()
        if standing.waiting is not None:
            _by_age(self.waiting, (standing.now - gang.created for gang in standing.waiting))
        self.unused.clear()
        snapshot = standing.snapshot
        if snapshot is not None:
            held = (hold for hold in snapshot.reservations if not is_used(snapshot, hold))
            _by_age(self.unused, (standing.now - hold.created for hold in held))
        self.certificate.clear()
        if standing.certificate_end:
            self.certificate.labels("serving").set(standing.certificate_end)


def _by_age(gauge: Gauge, seconds: Iterable[float]) -> None:
    counts = Counter(age_of(age) for age in seconds)
    for name, _ in AGES:
        gauge.labels(name).set(counts[name])


def age_of(seconds: float) -> str:
    """Returns the label value of an age in seconds."""
    return next(name for name, below in AGES if seconds < below)


def standing_metrics(registry: CollectorRegistry) -> StandingMetrics:
    """Returns new gauges in this registry."""
    return StandingMetrics(
        Gauge(
            "bayplan_waiting_gangs",
            "Gangs that wait for a place, by how long: below 1m, 10m, 1h, 1d, and older",
            ["age"],
            registry=registry,
        ),
        Gauge(
            "bayplan_unused_reservations",
            "Reservations of which no pod is bound to a node, by how long they are held",
            ["age"],
            registry=registry,
        ),
        Gauge(
            "bayplan_certificate_expiry_timestamp_seconds",
            "When the serving certificate ends, seconds since the epoch",
            ["certificate"],
            registry=registry,
        ),
    )
