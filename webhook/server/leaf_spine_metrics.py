"""The metrics of nod-ai's leaf-spine scheduler under their original names, so that existing dashboards work.

Histograms by placement strategy ("balanced" if a gang names none), in seconds:
`topology_scheduler_latency_seconds` is a whole mutating call that planned a gang, from its first byte to its
answer; `topology_scheduler_placement_duration_seconds` is the part that decides and reserves, divided by the
number of gangs. Gauges by topology and domain (`planner.leafspine.usage`), computed at each scrape:
`topology_domain_utilization_ratio`, `topology_gpu_allocation_ratio`,
`topology_scheduler_domain_fragmentation_ratio`. The counter `topology_placement_decisions_total` has strategy
and result: success, queued or failure. `topology_scheduler_recovery_duration_seconds` is not here: only the
leader exports it (`webhook.kube.controller.recovery_metrics`).
"""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from planner.cluster.snapshot import Snapshot
from planner.leafspine.usage import domain_uses
from webhook.placement.workload_plan import WorkloadPlan

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds in seconds. The scheduler's target, a placement in under 0.5 s, is one of them."""


_RESULT = {"admitted": "success", "queued": "queued", "rejected": "failure"}


_DOMAIN = ["topology", "domain"]


@dataclass(frozen=True, slots=True)
class TopologyMetrics:
    """The leaf-spine metrics: two histograms, a counter and three gauges."""

    latency: Histogram
    placement: Histogram
    decisions: Counter
    utilization: Gauge
    allocation: Gauge
    fragmentation: Gauge

    def observe(self, plan: WorkloadPlan, latency: float, placement: float) -> None:
        """Counts one mutating call that planned gangs; `latency` and `placement` are its seconds."""
        for placed in plan.placed:
            strategy = placed.group.fabric.strategy or "balanced"
            self.decisions.labels(strategy, _RESULT[placed.answer.decision]).inc()
            self.placement.labels(strategy).observe(placement / len(plan.placed))
        if plan.placed:
            self.latency.labels(plan.first.group.fabric.strategy or "balanced").observe(latency)

    def look(self, snapshot: Snapshot | None) -> None:
        """Sets the gauges to the values of the snapshot's domains, and removes all other series."""
        for gauge in (self.utilization, self.allocation, self.fragmentation):
            gauge.clear()
        for use in domain_uses(snapshot) if snapshot is not None else ():
            domain = "/".join(value or "-" for value in use.path)
            self.utilization.labels(use.topology, domain).set(use.utilization)
            self.allocation.labels(use.topology, domain).set(use.allocation)
            self.fragmentation.labels(use.topology, domain).set(use.fragmentation)


def topology_metrics(registry: CollectorRegistry) -> TopologyMetrics:
    """Returns new metrics in this registry."""
    return TopologyMetrics(
        Histogram(
            "topology_scheduler_latency_seconds",
            "Time to answer a call that planned a gang",
            ["strategy"],
            buckets=BUCKETS,
            registry=registry,
        ),
        Histogram(
            "topology_scheduler_placement_duration_seconds",
            "Time to decide on a gang and reserve its place",
            ["strategy"],
            buckets=BUCKETS,
            registry=registry,
        ),
        Counter(
            "topology_placement_decisions",
            "Gangs planned, by result: success, queued, failure",
            ["strategy", "result"],
            registry=registry,
        ),
        Gauge(
            "topology_domain_utilization_ratio",
            "Share of a domain's GPUs that are allocated or held",
            _DOMAIN,
            registry=registry,
        ),
        Gauge(
            "topology_gpu_allocation_ratio",
            "Share of a domain's GPUs that pods requested or gangs reserved",
            _DOMAIN,
            registry=registry,
        ),
        Gauge(
            "topology_scheduler_domain_fragmentation_ratio",
            "Share of a domain's nodes that are partly used",
            _DOMAIN,
            registry=registry,
        ),
    )
