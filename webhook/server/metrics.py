"""The content of /metrics. Each server has its own Prometheus registry, so that tests and reloads share no
counters.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from webhook.admission.decision_record import Decision
from webhook.policy.model.policy import PolicySet
from webhook.server.decision_log import answers
from webhook.server.leaf_spine_metrics import TopologyMetrics, topology_metrics
from webhook.server.standing_metrics import Standing, StandingMetrics, standing_metrics

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds in seconds of the buckets of `bayplan_decision_seconds`."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """The server's Prometheus metrics; `metrics` states the meaning of each."""

    registry: CollectorRegistry
    decisions: Counter
    outcomes: Counter
    policies: Counter
    seconds: Histogram
    plans: Counter
    tries: Counter
    bad_calls: Counter
    policy_set: Gauge
    exceptions: Gauge
    settings: Gauge
    reload_failed: Gauge
    topology: TopologyMetrics
    standing: StandingMetrics
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held by one scrape at a time: each removes the values of the gauges before it sets the current ones."""

    def observe(self, phase: str, decision: Decision, seconds: float, deciding: float) -> None:
        """Counts one answered call.

        `seconds`: from its start to its answer; `deciding`: the part of them for the decision and the ledger.
        """
        self.decisions.labels(phase, "true" if decision.response.allowed else "false", decision.mode).inc()
        if phase == "mutate" and decision.mode != "off":
            self.outcomes.labels(decision.outcome, decision.mode).inc()
        for policy, answer in answers(decision):
            self.policies.labels(policy, answer, decision.mode).inc()
        self.seconds.labels(phase).observe(seconds)
        self.tries.labels(phase).inc(decision.tries)
        if decision.plan is not None:
            for placed in decision.plan.placed:
                self.plans.labels(phase, placed.answer.decision, decision.mode).inc()
            if phase == "mutate":
                self.topology.observe(decision.plan, seconds, deciding)

    def exposition(
        self, policies: PolicySet, settings: Mapping[str, Any], healthy: bool, standing: Standing
    ) -> bytes:
        """Returns the text that Prometheus scrapes, after it has set the gauges to the current values.

        `settings`: as in /readyz, empty if unknown; `healthy`: no older data is in use
        (`Webhook.problems` is empty).
        """
        with self.lock:
            self.topology.look(standing.snapshot)
            self.standing.look(standing)
            self.policy_set.clear()
            self.policy_set.labels(policies.revision).set(1)
            self.exceptions.clear()
            for exemption in policies.exemptions:
                self.exceptions.labels(exemption.name).set(exemption.until)
            self.settings.clear()
            if settings:
                shown = settings["revision"], settings["mode"], settings["reserve.default"]
                self.settings.labels(*shown).set(1)
            self.reload_failed.set(0 if healthy else 1)
            return generate_latest(self.registry)


def metrics() -> Metrics:
    """Returns new metrics on a new registry."""
    registry = CollectorRegistry()

    def counter(name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"bayplan_{name}", meaning, labels, registry=registry)

    def gauge(name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(f"bayplan_{name}", meaning, labels, registry=registry)

    answered = "Admission calls answered, by the mode of their namespace"
    outcomes = (
        "What enforce makes of objects (refused, queued, changed, unchanged), done in mode enforce alone"
    )
    policies = (
        "What policies answered (changed, passed, refused, warned, failed, exempt, exemption-ended), done in "
        "mode enforce alone"
    )
    tries = "Decisions made; more than answers where others took a place meanwhile"
    ends = "When each PolicyException ends, in seconds since the epoch; less `time()` it is what is left"
    failed = "1 while the newest policies, parameters or cluster files are bad"
    took = "How long an answer took"
    return Metrics(
        registry,
        counter("decisions", answered, "phase", "allowed", "mode"),
        counter("outcomes", outcomes, "outcome", "mode"),
        counter("policy_answers", policies, "policy", "answer", "mode"),
        Histogram("bayplan_decision_seconds", took, ["phase"], buckets=BUCKETS, registry=registry),
        counter("plans", "Gangs planned: admitted, queued, rejected", "phase", "decision", "mode"),
        counter("decision_tries", tries, "phase"),
        counter("bad_calls", "Calls answered with a 4xx or 5xx", "status"),
        gauge("policy_set_info", "The policies that answer", "revision"),
        gauge("policy_exception_end_seconds", ends, "exception"),
        gauge("settings_info", "The settings that answer", "revision", "mode", "reserve_default"),
        gauge("reload_failed", failed),
        topology_metrics(registry),
        standing_metrics(registry),
    )
