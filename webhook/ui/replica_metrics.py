"""Reads the metrics of the webhook's replicas: policies, reloads and the certificate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from webhook.kube.api.client import Api, ApiError
from webhook.kube.replicas import ask_replicas
from webhook.ui.picture import Health, HealthLine, PolicyCounts

DAY = 86_400.0
NEAR_DAYS = 7
"""Number of days before its expiry at which a certificate that is not renewed gets a warning; the same as in
the alert `BayplanCertificateEnds`.
"""
RESULTS = {"refused": "fail", "warned": "warn", "failed": "error", "changed": "changed", "passed": "pass"}
"""The outcome on the page, by the value of the label `answer` of the metric
`bayplan_policy_answers_total`.
"""


@dataclass(frozen=True, slots=True)
class ReplicaSummary:
    """The combined metrics of all replicas. `policies`: the counts of results since the replicas started,
    all under the namespace "", because the metrics do not distinguish namespaces.
    """

    policies: tuple[PolicyCounts, ...] = ()
    revisions: tuple[str, ...] = ()
    health: tuple[HealthLine, ...] = ()


async def replica_summary(api: Api, namespace: str, now: float) -> ReplicaSummary:
    """Reads and combines the metrics of all running replicas. `now`: seconds since the epoch.

    If some cannot be read, `health` has a warning. If the pods may not be listed, the result is empty.
    """
    try:
        replicas = await ask_replicas(api, namespace, "metrics")
    except ApiError:
        return ReplicaSummary()
    texts = {name: str(answer.get("text", "")) for name, answer in replicas.answers.items()}
    summary, errors = summary_of(texts, now), list(replicas.errors.values())
    if not errors:
        return summary
    words = f"{len(errors)} of {len(texts) + len(errors)} replicas do not tell their metrics: {errors[0]}"
    return ReplicaSummary(
        summary.policies, summary.revisions, (*summary.health, HealthLine("metrics", "warning", words))
    )


def summary_of(metrics: Mapping[str, str], now: float) -> ReplicaSummary:
    """Returns the combined metrics of replicas. `metrics`: Prometheus text by pod name. Pure."""
    if not metrics:
        return ReplicaSummary()
    counts: dict[str, Counter[str]] = {}
    revisions: set[str] = set()
    ends: list[float] = []
    stale: list[str] = []
    for name, text in metrics.items():
        for sample in _samples(text):
            if sample.name == "bayplan_policy_answers_total":
                row = counts.setdefault(sample.labels.get("policy", ""), Counter())
                row[RESULTS.get(sample.labels.get("answer", ""), "pass")] += int(sample.value)
            elif sample.name == "bayplan_policy_set_info" and sample.value:
                revisions.add(sample.labels.get("revision", ""))
            elif sample.name == "bayplan_reload_failed" and sample.value:
                stale.append(name)
            elif sample.name == "bayplan_certificate_expiry_timestamp_seconds":
                ends.append(sample.value)
    policies = (PolicyCounts(policy, {"": dict(row)}) for policy, row in sorted(counts.items()))
    return ReplicaSummary(
        tuple(policies), tuple(sorted(revisions)), (_reloads(stale, revisions), *_certificate(ends, now))
    )


def _reloads(stale: list[str], revisions: set[str]) -> HealthLine:
    """Returns a line that says whether all replicas use the newest policies, parameters and cluster files,
    and the same policies. `stale`: the pods that could not load the newest ones.
    """
    if stale:
        words = (
            f"not taken up by {', '.join(stale)}: the newest policies, parameters or cluster files are bad"
        )
        return HealthLine("reload", "problem", f"{words}; `bayplan doctor` and the log tell why")
    if len(revisions) > 1:
        return HealthLine("reload", "warning", f"replicas serve {len(revisions)} sets of policies")
    return HealthLine("reload", "ok", "the newest policies and parameters are in force")


def _certificate(ends: list[float], now: float) -> Iterable[HealthLine]:
    if ends:
        days = (min(ends) - now) / DAY
        state: Health = "problem" if days <= 0 else "warning" if days < NEAR_DAYS else "ok"
        words = f"ends in {days:.0f} days" if days > 0 else f"ended {-days:.0f} days ago"
        yield HealthLine("certificate", state, f"the serving certificate {words}")


def _samples(text: str) -> Iterable[Sample]:
    """Returns the samples in the text that are finite numbers; none if it is invalid, because any pod may
    have the label of `SELECTOR`.
    """
    try:
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        return [sample for sample in samples if isfinite(sample.value)]
    except (ValueError, KeyError, IndexError):
        return []
