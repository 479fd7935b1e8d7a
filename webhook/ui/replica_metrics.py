"""Reads the metrics of the webhook's replicas: policies, reloads and the certificate.

The metrics are read through the API server (`pods/proxy`) from the port of the probes, so that a page on a
user's machine can read them too.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from webhook.kube.api.client import Api, ApiError, Json
from webhook.ui.picture import Health, HealthLine, PolicyCounts

PORT = 8081
"""The port on which replicas serve probes and metrics in plain HTTP (manifests/40-deployment.yaml)."""
SELECTOR = "app.kubernetes.io/name=bayplan"
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
    pods = f"/api/v1/namespaces/{namespace}/pods"
    try:
        listed, _ = await api.list(pods, labelSelector=SELECTOR)
    except ApiError:
        return ReplicaSummary()
    names = [pod["metadata"]["name"] for pod in listed if _runs(pod)]
    answers = await asyncio.gather(*(_metrics(api, f"{pods}/{name}:{PORT}/proxy/metrics") for name in names))
    texts = {name: answer for name, answer in zip(names, answers, strict=True) if isinstance(answer, str)}
    errors = [answer for answer in answers if isinstance(answer, ApiError)]
    summary = summary_of(texts, now)
    if not errors:
        return summary
    words = f"{len(errors)} of {len(names)} replicas do not tell their metrics: {errors[0]}"
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


def _runs(pod: Mapping[str, Any]) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase == "Running" and "deletionTimestamp" not in pod["metadata"]


async def _metrics(api: Api, path: str) -> str | ApiError:
    try:
        answer: Json = await api.get(path)
    except ApiError as error:
        return error
    return str(answer.get("text", ""))
