"""The metric of recoveries: how soon a gang that lost a node has a place again."""

from __future__ import annotations

from prometheus_client import Histogram

RECOVERY_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""The upper bounds of the buckets, in seconds; the target for recovery is 30 s."""


def recovery_histogram() -> Histogram:
    """Returns a histogram of the seconds from a lost node to the gang's new reservation, without a
    registry.
    """
    return Histogram(
        "topology_scheduler_recovery_duration_seconds",
        "How long a gang that lost a node waited for another place (the leader's)",
        buckets=RECOVERY_BUCKETS,
        registry=None,
    )
