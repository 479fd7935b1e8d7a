"""What the webhook's replicas tell of themselves in their metrics: policies, reloads, the certificate.

They are read through the API server (`pods/proxy`), by the port of the probes, so that a page on somebody's
machine can read them too.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from webhook.kube.api.client import Api, ApiError, Json
from webhook.ui.picture import Health, HealthLine, PolicyCounts

PORT = 8081
"""Of the probes and metrics, in plain HTTP (40-deployment.yaml)."""
SELECTOR = "app.kubernetes.io/name=bayplan"
DAY = 86_400.0
NEAR_DAYS = 7
"""A certificate that ends sooner was not renewed in time, as the alert BayplanCertificateEnds has it."""
RESULTS = {"refused": "fail", "warned": "warn", "failed": "error", "changed": "changed", "passed": "pass"}
"""What replicas count, by what the page calls it."""


@dataclass(frozen=True, slots=True)
class ReplicaTales:
    """What all replicas told together. `policies` is counted over the whole cluster since they started."""

    policies: tuple[PolicyCounts, ...] = ()
    revisions: tuple[str, ...] = ()
    health: tuple[HealthLine, ...] = ()


async def replica_tales(api: Api, namespace: str, now: float) -> ReplicaTales:
    """Ask each replica that runs. Where that is not allowed, or none answers, health says so."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    try:
        listed, _ = await api.list(pods, labelSelector=SELECTOR)
    except ApiError:
        return ReplicaTales()
    names = [pod["metadata"]["name"] for pod in listed if _runs(pod)]
    answers = await asyncio.gather(*(_metrics(api, f"{pods}/{name}:{PORT}/proxy/metrics") for name in names))
    texts = {name: answer for name, answer in zip(names, answers, strict=True) if isinstance(answer, str)}
    errors = [answer for answer in answers if isinstance(answer, ApiError)]
    tales = tales_of(texts, now)
    if not errors:
        return tales
    words = f"{len(errors)} of {len(names)} replicas do not tell their metrics: {errors[0]}"
    return ReplicaTales(
        tales.policies, tales.revisions, (*tales.health, HealthLine("metrics", "warning", words))
    )


def tales_of(metrics: Mapping[str, str], now: float) -> ReplicaTales:
    """What the metrics of replicas, by name, come to. Pure."""
    if not metrics:
        return ReplicaTales()
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
    return ReplicaTales(
        tuple(policies), tuple(sorted(revisions)), (_reloads(stale, revisions), *_certificate(ends, now))
    )


def _reloads(stale: list[str], revisions: set[str]) -> HealthLine:
    """Whether all replicas serve the newest policies, parameters and files, and the same."""
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
    """All samples; none of a text that is no metrics, for anybody may run a pod with such a label."""
    try:
        return [sample for family in text_string_to_metric_families(text) for sample in family.samples]
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
